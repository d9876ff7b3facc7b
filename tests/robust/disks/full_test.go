package disks

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

const mib = 1 << 20

// small is a file system of 4 MiB, with the database of a store on it.
func small(t *testing.T) (dir string) {
	t.Helper()
	at := t.TempDir()
	if err := syscall.Mount("tmpfs", at, "tmpfs", 0, fmt.Sprintf("size=%d", 4*mib)); err != nil {
		t.Skipf("mount a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		const detach = 2 // MNT_DETACH: also where a process that is ending still uses it
		if err := syscall.Unmount(at, detach); err != nil {
			t.Error(err)
		}
	})
	dir = filepath.Join(at, "a")
	initialise(t, dir)
	return dir
}

// fill leaves about so many bytes free.
func fill(t *testing.T, dir string, leave uint64) (filler string) {
	t.Helper()
	filler = filepath.Join(filepath.Dir(dir), "filler")
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	size := st.Bavail*uint64(st.Bsize) - leave
	if err := os.WriteFile(filler, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	return filler
}

func TestAStoreWhoseDiskIsNearlyFullRefusesWritesAndKeepsLeases(t *testing.T) {
	dir, c := small(t), &caller{}
	p := start(t, dir, nil, "--near-full", fmt.Sprint(mib))
	if !c.connect(t, p) {
		t.Fatalf("it ended: %s", p.log.String())
	}
	run(t, c, 2)
	renew := func() error {
		_, err := c.store.Renew(harness.Within(t), quorum.RenewRequest{Ref: c.ref, Session: session, Secret: secret, Name: "n", Addr: "n:1", Lease: time.Second})
		return err
	}
	if err := renew(); err != nil {
		t.Fatal(err)
	}
	filler := fill(t, dir, mib/2)
	for _, ask := range []func() error{func() error { return c.step(harness.Within(t)) }, func() error { return c.prepare(harness.Within(t)) }} {
		if err := ask(); !errors.Is(err, errVerdict) || !strings.Contains(err.Error(), quorum.VerdictFull.String()) {
			t.Errorf("got %v, want %v", err, quorum.VerdictFull)
		}
	}
	if err := renew(); err != nil {
		t.Errorf("renew on a full disk: %v", err)
	}
	if p.ended() {
		t.Fatalf("it ended: %s", p.log.String())
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.prepare(harness.Within(t)), c.step(harness.Within(t))); err != nil {
		t.Errorf("with room again: %v", err)
	}
	c.check(t)
}

// TestADiskThatIsFullInACommitEndsTheStore turns the early refusal off, so that the
// system itself says no.
func TestADiskThatIsFullInACommitEndsTheStore(t *testing.T) {
	dir, c := small(t), &caller{}
	p := start(t, dir, nil, "--near-full", "0")
	if !c.connect(t, p) {
		t.Fatalf("it ended: %s", p.log.String())
	}
	run(t, c, 4)
	filler := fill(t, dir, 16<<10)
	for round := uint64(1); !p.ended(); round++ {
		if err := document(t, c, round); err != nil {
			if errors.Is(err, errVerdict) {
				t.Fatalf("got %v, want no answer", err)
			}
			break
		}
	}
	p.wantEnd(t, "store cannot go on")
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	again(t, dir, c)
}

// document writes a large payload, for which the database must grow.
func document(t *testing.T, c *caller, round uint64) error {
	t.Helper()
	reply, err := c.store.Prepare(harness.Within(t), quorum.PrepareRequest{Ref: c.ref, Session: session, Secret: secret, Items: []quorum.PrepareItem{{Register: seq.RoutesRegister, Round: round}}})
	if err := verdict(reply, err); err != nil {
		return err
	}
	reply, err = c.store.Step(harness.Within(t), quorum.StepRequest{Ref: c.ref, Session: session, Secret: secret,
		Items: []quorum.StepItem{{Register: seq.RoutesRegister, Round: round, Max: round, Payload: make([]byte, 256<<10)}}})
	return verdict(reply, err)
}
