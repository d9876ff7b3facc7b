package storesvr

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/storesvr/disk"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

// started runs a store on the disk, as a process that begins now does.
func started(t *testing.T, now bubble.Clock, d *listDisk) *replica {
	t.Helper()
	d.meta.BootCount++
	d.meta.Commits++
	r, err := newReplica(Config{MaxLease: time.Second, Clock: now, Logger: slog.New(slog.DiscardHandler), Wall: time.Now}, d, d.meta, map[seq.Register]acceptor.State{section: {}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.close() })
	return r
}

// copied is a disk with what d has now.
func (d *listDisk) copied() *listDisk { return &listDisk{meta: d.meta} }

// members are three stores of one list, by name.
func memberDisks() map[string]*listDisk {
	list := []quorum.Member{{UUID: "u-a", Name: "a"}, {UUID: "u-b", Name: "b"}, {UUID: "u-c", Name: "c"}}
	disks := map[string]*listDisk{}
	for _, m := range list {
		disks[m.Name] = &listDisk{meta: disk.Meta{Key: []byte("key of " + m.Name), Members: disk.Members{Version: 1, List: list},
			Identity: disk.Identity{Cluster: "c1", UUID: m.UUID, Name: m.Name, N: 3, R: 2, W: 2, Names: []string{"a", "b", "c"}}}}
	}
	return disks
}

// renewing renews a session at the stores until the test ends.
func renewing(t *testing.T, now bubble.Clock, who seq.Session, stores ...quorum.Store) {
	t.Helper()
	named := make([]quorum.NamedStore, len(stores))
	for i, s := range stores {
		named[i] = quorum.NamedStore{Name: string(rune('a' + i)), UUID: "u-" + string(rune('a'+i)), Store: s}
	}
	ref := quorum.MemberList{Version: 1, Members: []quorum.Member{{UUID: "u-a"}, {UUID: "u-b"}, {UUID: "u-c"}}}.Ref("c1", 0)
	l, err := quorum.NewLeases(quorum.LeaseConfig{Ref: ref, Session: who, Secret: sessiontest.SecretOf(who), Name: who.String(), Addr: "here:1", Lease: time.Second, N: 3, W: 2, Clock: now}, named)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var ran sync.WaitGroup
	ran.Go(func() { _ = l.Run(ctx) })
	t.Cleanup(func() { cancel(); ran.Wait() })
}

// passing is a store that restarts: calls go to the process of now.
type passing struct {
	mu sync.Mutex
	r  *replica
}

func (p *passing) now() *replica {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.r
}

func (p *passing) Read(ctx context.Context, req quorum.ReadRequest) (quorum.Reply, error) {
	return p.now().Read(ctx, req)
}

func (p *passing) Prepare(ctx context.Context, req quorum.PrepareRequest) (quorum.Reply, error) {
	return p.now().Prepare(ctx, req)
}

func (p *passing) Step(ctx context.Context, req quorum.StepRequest) (quorum.Reply, error) {
	return p.now().Step(ctx, req)
}

func (p *passing) Renew(ctx context.Context, req quorum.RenewRequest) (quorum.RenewReply, error) {
	return p.now().Renew(ctx, req)
}

func (p *passing) Release(ctx context.Context, req quorum.ReleaseRequest) (string, error) {
	return p.now().Release(ctx, req)
}

// restart begins another process on the disk.
func (p *passing) restart(t *testing.T, now bubble.Clock, d *listDisk) {
	_ = p.now().close()
	r := started(t, now, d)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.r = r
}

// wrote has the store commit something, as each promise does.
func wrote(t *testing.T, r *replica, round uint64, who seq.Session) error {
	_, err := r.Prepare(t.Context(), quorum.PrepareRequest{Ref: r.describe().Ref, Session: who, Secret: sessiontest.SecretOf(who),
		Items: []quorum.PrepareItem{{Register: section, Round: round}}})
	return err
}

// votes has the store compare its disk with fellows that remember nothing of it.
func votes(t *testing.T, r *replica) *replica {
	t.Helper()
	if err := r.vouch("c1", r.describe().Nonce, []quorum.Claim{{Store: "u-c", By: "u-a"}, {Store: "u-c", By: "u-b"}}); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestNeitherOfTwoProcessesOfOneStoreVotes(t *testing.T) {
	for name, running := range map[string]bool{"the disk was copied while the store was down": false, "the disk was copied while the store ran": true} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				now, disks := bubble.NewClock(), memberDisks()
				a, b := started(t, now, disks["a"]), started(t, now, disks["b"])
				copied := disks["c"].copied()
				one := votes(t, started(t, now, disks["c"]))
				if running {
					copied = disks["c"].copied()
				}
				two := votes(t, started(t, now, copied))
				if err := errors.Join(wrote(t, one, 1, alice), wrote(t, two, 1, bob)); err != nil {
					t.Fatal(err) // both have promised what the other does not know
				}
				renewing(t, now, alice, a, b, one) // each session reaches another of the two
				renewing(t, now, bob, a, b, two)
				for round := uint64(2); one.describe().Voting || two.describe().Voting || !a.describe().Voting || !b.describe().Voting; round++ {
					<-time.After(200 * time.Millisecond)
					_, _ = wrote(t, one, round, alice), wrote(t, two, round, bob)
					if now.Now() > time.Minute {
						t.Fatalf("after a minute the two say %q and %q", one.describe().State, two.describe().State)
					}
				}
				for _, r := range []*replica{one, two} {
					if err := wrote(t, r, 1000, alice); !errors.Is(err, seq.ErrNotVoting) || !strings.Contains(err.Error(), "distrusted") {
						t.Errorf("one of the two says %v", err)
					}
				}
			})
		})
	}
}

// The disk of a store that runs is copied. Either process may be silent first; the other goes on
// only if the silent one promised nothing since.
func TestOfAStoreAndARunningCopyOfItOnlyOneIsBelieved(t *testing.T) {
	for wait := range 12 {
		bubble.Test(t, func(t *testing.T) {
			now, disks := bubble.NewClock(), memberDisks()
			a, b := started(t, now, disks["a"]), started(t, now, disks["b"])
			one := started(t, now, disks["c"])
			copied := disks["c"].copied()
			renewing(t, now, alice, a, b, one)
			<-time.After(time.Duration(wait) * 150 * time.Millisecond)
			two := started(t, now, copied)
			renewing(t, now, bob, a, b, two)
			var promised [2]uint64
			for round := uint64(1); now.Now() < 20*time.Second; round++ {
				<-time.After(100 * time.Millisecond)
				for i, r := range []*replica{one, two} {
					if wrote(t, r, round, []seq.Session{alice, bob}[i]) == nil {
						promised[i]++
					}
				}
			}
			for i, r := range []*replica{one, two} {
				other := []*replica{two, one}[i]
				if r.describe().Voting && (promised[1-i] > 0 || other.describe().Voting) {
					t.Errorf("waited %d: process %d votes, and the other promised %d times: %q", wait, i, promised[1-i], other.describe().State)
				}
			}
		})
	}
}

func TestAPlainRestartIsNeverTakenForASecondProcess(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		now, disks := bubble.NewClock(), memberDisks()
		var stores []quorum.Store
		var all []*passing
		for _, name := range []string{"a", "b", "c"} {
			p := &passing{r: started(t, now, disks[name])}
			all, stores = append(all, p), append(stores, p)
		}
		renewing(t, now, alice, stores...)
		renewing(t, now, bob, stores...)
		for round := range uint64(60) {
			<-time.After(time.Duration(50+37*round%400) * time.Millisecond)
			i := round % 3
			_ = wrote(t, all[i].now(), round, alice)
			all[i].restart(t, now, disks[[]string{"a", "b", "c"}[i]])
			if round%7 == 0 {
				all[i].restart(t, now, disks[[]string{"a", "b", "c"}[i]])
			}
		}
		<-time.After(10 * time.Second)
		for _, p := range all {
			if d := p.now().describe(); !d.Voting {
				t.Errorf("store %s: %s", d.Name, d.State)
			}
		}
	})
}

func TestTwoProcessesThatCountTheSameStartAreToldByTheirSeals(t *testing.T) {
	b := newVoter(t)
	own := b.core.claim()
	twin := own
	twin.Start++
	twin.StartSeal = startSealOf(b.core.witness.key, twin)
	forged, another := twin, twin
	forged.StartSeal = own.StartSeal
	another.Store = "u-b"
	for name, c := range map[string]quorum.Claim{"its own": own, "a forged one": forged, "one of another store": another} {
		if err := b.vouch("c1", 0, []quorum.Claim{c}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	twin.By = "u-b"
	if err := b.vouch("c1", 0, []quorum.Claim{twin}); !errors.Is(err, seq.ErrNotVoting) || !strings.Contains(err.Error(), "u-b") || !strings.Contains(err.Error(), "copied") {
		t.Errorf("a twin: %v", err)
	}
}
