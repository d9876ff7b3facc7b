package processes

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

func connected(t *testing.T, c *localcluster.Cluster) *client.Client {
	t.Helper()
	sdk, err := client.New(harness.Within(t), client.Config{Addrs: c.Addrs(localcluster.RoleAlloc)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sdk.Close() })
	return sdk
}

// numbersFile has a line for each of so many UIDs.
func numbersFile(t *testing.T, n int) (path string, uids []seq.UID, floors []seq.Seq) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "numbers.txt")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(file)
	for i := range n {
		uids, floors = append(uids, seq.UID(i*37)), append(floors, seq.Seq(1+i%977))
		fmt.Fprintln(w, uint64(uids[i]), uint64(floors[i]))
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return path, uids, floors
}

func small(cfg *localcluster.Config) {
	cfg.Stores, cfg.Allocs, cfg.Sections, cfg.Step = 1, 2, 64, 1000
	cfg.Spaces = []string{"room:sections=64,step=1000", "few:sections=8"}
}

// A raise from a file that is killed again and again, at any moment, ends with every line done.
func TestARaiseFromAFileGoesOnWhereItWasKilled(t *testing.T) {
	c := start(t, small)
	path, uids, floors := numbersFile(t, 100_000)
	args := []string{"raise", "--file", path, "--addr", c.GRPC(), "-o", "json"}
	for i := range 6 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i+1)*40*time.Millisecond) // ends it by SIGKILL
		cmd := harness.Command(ctx, t, nil, "seqctl", args...)
		err := cmd.Run()
		cancel()
		if err == nil {
			break
		}
	}
	killOnceKept(t, path+".progress", args)
	got := run(t, "seqctl", args...)
	got.Want(t, 0)
	var last struct{ Lines, Refused, Resumed int }
	if err := json.Unmarshal([]byte(got.Stdout), &last); err != nil || last.Lines != len(uids) || last.Refused != 0 {
		t.Errorf("got %s", got.Stdout)
	}
	t.Logf("the last run went on behind %d lines", last.Resumed)
	if _, err := os.Stat(path + ".progress"); !os.IsNotExist(err) {
		t.Errorf("the progress of a raise that ended: %v", err)
	}
	sdk := connected(t, c)
	for at := 0; at < len(uids); at += seq.MaxBatch {
		values, err := sdk.Current(harness.Within(t), "", uids[at:at+seq.MaxBatch])
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range values {
			if v.Err != nil || v.Seq < floors[at+i] {
				t.Fatalf("uid %d is at %d (%v), want %d", uids[at+i], v.Seq, v.Err, floors[at+i])
			}
		}
	}
	// Progress of one file is none of another.
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	kept := fmt.Sprintf(`{"cluster":%q,"space":"user","offset":%d,"sha256":"00","lines":1}`, sdk.Caller().Table().ClusterID(), len(first)+1)
	for text, part := range map[string]string{kept: "another file", strings.Replace(kept, "user", "room", 1): `space "room"`, `{"cluster":"x"}`: `cluster "x"`} {
		if err := os.WriteFile(path+".progress", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, "seqctl", args...).Want(t, 1, part, "remove it")
	}
}

// killOnceKept kills a raise as soon as it has kept its progress, unless it has ended before.
func killOnceKept(t *testing.T, progress string, args []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(harness.Within(t))
	defer cancel()
	cmd := harness.Command(ctx, t, nil, "seqctl", args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	for {
		select {
		case <-ended:
			return
		case <-time.After(poll):
		}
		if _, err := os.Stat(progress); err == nil {
			cancel()
			<-ended
			return
		}
	}
}

// moving is a cluster with numbers of UIDs and string keys, and what was handed out.
type moving struct {
	t      *testing.T
	from   *localcluster.Cluster
	sdk    *client.Client
	handed map[client.Key]seq.Seq
}

func (m *moving) take(space string, from, to int) {
	m.t.Helper()
	for i := from; i < to; i++ {
		key := client.Key{UID: seq.UID(i * 1000)}
		if space != "" {
			key = client.StringKey(space, fmt.Sprintf("room \"%d\"", i))
		}
		got, err := m.sdk.Take(harness.Within(m.t), key, uint32(1+i%50))
		if err != nil {
			m.t.Fatal(err)
		}
		m.handed[key] = got.Last
	}
}

func (m *moving) seqctl(code int, args ...string) harness.Ended {
	m.t.Helper()
	got := run(m.t, "seqctl", args...)
	got.Want(m.t, code)
	return got
}

// above checks that the other cluster goes on above all that was handed out.
func (m *moving) above(to *client.Client) {
	m.t.Helper()
	for key, last := range m.handed {
		if got, err := to.Next(harness.Within(m.t), key); err != nil || got <= last {
			m.t.Fatalf("%v: %d was handed out, and the other cluster goes on with %d, %v", key, last, got, err)
		}
	}
}

func TestNumbersMoveToAnotherClusterAndNoneIsRepeated(t *testing.T) {
	m := &moving{t: t, from: start(t, small), handed: map[client.Key]seq.Seq{}}
	m.sdk = connected(t, m.from)
	m.take("", 0, 300)
	m.take("room", 0, 100)
	if err := m.from.Processes(localcluster.RoleAlloc)[0].Kill(); err != nil { // what it had in memory is gone
		t.Fatal(err)
	}
	m.take("", 200, 400)
	m.take("room", 50, 120)

	dir := t.TempDir()
	uids, rooms, busiest, names := filepath.Join(dir, "uids"), filepath.Join(dir, "rooms"), filepath.Join(dir, "busiest"), filepath.Join(dir, "names")
	var list strings.Builder
	for i := range 120 {
		fmt.Fprintf(&list, "%q\n", fmt.Sprintf("room \"%d\"", i))
	}
	if err := os.WriteFile(names, []byte(list.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	at := []string{"--addr", m.from.Addrs(localcluster.RoleAlloc)[1]}
	m.seqctl(0, append([]string{"export", "--uids", "--out", uids}, at...)...)
	m.seqctl(0, append([]string{"export", "--space", "room", "--keys", names, "--out", rooms}, at...)...)
	m.seqctl(0, append([]string{"export", "--space", "room", "--sections", "--out", busiest}, at...)...)
	m.seqctl(1, append([]string{"export", "--space", "room", "--uids"}, at...)...).Want(t, 1, "string keys", "--keys")
	m.seqctl(1, append([]string{"export", "--uids", "--out", uids}, at...)...).Want(t, 1, "exists")

	whole, err := os.ReadFile(uids)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"section ", " upper-bound\n", "\n399000 "} {
		if !strings.Contains(string(whole), part) {
			t.Errorf("%q is not in the export", part)
		}
	}
	to := start(t, small)
	there := []string{"--addr", to.GRPC()}
	cut := filepath.Join(dir, "cut")
	if err := os.WriteFile(cut, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	m.seqctl(1, append([]string{"raise", "--file", cut}, there...)...)
	// Sections of a space with another number of them are of other keys.
	m.seqctl(1, append([]string{"raise", "--space", "few", "--file", uids}, there...)...).Want(t, 1, "lines were refused")
	if text, err := os.ReadFile(uids + ".refused"); err != nil || !strings.Contains(string(text), `has 8 sections`) || !strings.Contains(string(text), "/64 ") {
		t.Errorf("what was refused: %s, %v", text, err)
	}
	m.seqctl(0, append([]string{"raise", "--file", uids}, there...)...)
	m.seqctl(0, append([]string{"raise", "--space", "room", "--file", rooms}, there...)...)
	m.above(connected(t, to))

	third := start(t, small)
	m.seqctl(0, "raise", "--file", uids, "--addr", third.GRPC())
	m.seqctl(0, "raise", "--space", "room", "--file", busiest, "--addr", third.GRPC())
	m.above(connected(t, third))
}
