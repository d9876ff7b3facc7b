package allocsvr

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/api"
	"github.com/seqsvr/seqsvr/allocsvr/arbiter"
	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

func TestThreeNodesShareTheSectionsAndCountFromOne(t *testing.T) {
	f := newFleet(t, seq.Space{Name: "user", Sections: 64, Step: 100})
	a, b, c := f.start("a", 3, ""), f.start("b", 3, ""), f.start("c", 3, "")
	f.serving(a, b, c)
	for _, n := range []*node{a, b, c} {
		if serving, _ := n.Census(); serving == 0 {
			t.Errorf("%s serves no section", n.name)
		}
	}
	for uid := seq.UID(0); uid < 500; uid += 7 {
		for want := seq.Seq(1); want <= 5; want++ {
			if got := f.next(uid); got != want {
				t.Fatalf("uid %d: got %d, want %d", uid, got, want)
			}
		}
	}
}

func TestACrashedNodesSectionsAreTakenOverAboveEverything(t *testing.T) {
	f := newFleet(t, seq.Space{Name: "user", Sections: 32, Step: 50})
	a, b, c := f.start("a", 3, ""), f.start("b", 3, ""), f.start("c", 3, "")
	f.serving(a, b, c)
	last := map[seq.UID]seq.Seq{}
	for uid := seq.UID(0); uid < 4000; uid += 64 {
		last[uid] = f.next(uid)
	}
	a.kill()
	f.mu.Lock()
	delete(f.nodes, "a")
	f.mu.Unlock()
	for uid, old := range last {
		got := f.next(uid)
		if got <= old {
			t.Errorf("uid %d: got %d after %d", uid, got, old)
		}
		if skipped := got - old - 1; skipped > 2*50 {
			t.Errorf("uid %d: skipped %d numbers, promised at most two steps", uid, skipped)
		}
	}
	f.serving(b, c)
}

func TestADrainedNodeHandsOverWithoutAGap(t *testing.T) {
	f := newFleet(t, seq.Space{Name: "user", Sections: 32, Step: 50})
	a, b := f.start("a", 2, ""), f.start("b", 2, "")
	f.serving(a, b)
	want := map[seq.UID]seq.Seq{}
	for uid := seq.UID(0); uid < 4000; uid += 64 {
		want[uid] = f.next(uid) + 1
	}
	admin := b.admin()
	if _, err := admin.Drain(context.Background(), drainRequest("a")); err != nil {
		t.Fatal(err)
	}
	f.until("a has nothing left", func() bool { return len(a.Owned()) == 0 })
	for uid, w := range want {
		if got := f.next(uid); got != w {
			t.Errorf("uid %d: got %d, want %d", uid, got, w)
		}
	}
}

func TestRequestsInTheMiddleOfHandOversSeeNoGapAndNoRepeat(t *testing.T) {
	f := newFleet(t, seq.Space{Name: "user", Sections: 16, Step: 40})
	f.lease = 10 * time.Second // a lease that lapses on a busy machine would be a takeover, with a gap
	a, b := f.start("a", 2, ""), f.start("b", 2, "")
	f.serving(a, b)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var wg sync.WaitGroup
	ends := make([]seq.Seq, 8)
	counts := make([]seq.Seq, 8)
	for k := range ends {
		wg.Go(func() {
			for ctx.Err() == nil {
				ends[k] = f.next(seq.UID(k * 64))
				counts[k]++
			}
		})
	}
	admin := a.admin()
	for round := range 3 {
		for _, undo := range []bool{false, true} {
			req := drainRequest("b")
			req.Undo = undo
			if _, err := admin.Drain(context.Background(), req); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			if undo {
				if _, err := admin.Rebalance(context.Background(), nil); err != nil {
					t.Fatal(err)
				}
				f.until("b has its share back", func() bool { return len(b.Owned()) > 0 })
			} else {
				f.until("b has nothing left", func() bool { return len(b.Owned()) == 0 })
			}
		}
	}
	cancel()
	wg.Wait()
	for k := range ends {
		if ends[k] != counts[k] {
			t.Errorf("uid %d: %d numbers taken, the last is %d: a gap", k*64, counts[k], ends[k])
		}
	}
}

// unsure are documents of which the first swap is written and called unknown.
type unsure struct {
	arbiter.Documents
	once sync.Once
}

func (u *unsure) SwapDocument(ctx context.Context, session seq.Session, reg seq.Register, old uint64, body []byte) (quorum.Document, error) {
	doc, err := u.Documents.SwapDocument(ctx, session, reg, old, body)
	u.once.Do(func() { err = errors.Join(err, quorum.ErrUnknownOutcome) })
	return doc, err
}

func TestAChangeOfTheTableWithAnUnknownOutcomeIsMadeAgain(t *testing.T) {
	f := newFleet(t, seq.Space{Name: "user", Sections: 4, Step: 40})
	a, b := f.start("a", 2, ""), f.start("b", 2, "")
	f.serving(a, b)
	other := unsureAdmin(f, a, b)
	if _, err := other.Drain(t.Context(), drainRequest("b")); err != nil {
		t.Fatal(err)
	}
	f.until("b has nothing left", func() bool { return len(b.Owned()) == 0 })
}

// unsureAdmin returns the Admin of a node that owns nothing, and whose first swap has an unknown outcome.
func unsureAdmin(f *fleet, a, b *node) *api.Admin {
	f.t.Helper()
	n, err := NewAlloc(Parts{Name: "c", Addr: "c", Cluster: "mem", Secret: seq.NewSecret(""), Lease: f.lease, Replicas: 3, Needed: 2,
		Mapping: f.stores.Mapping, Registers: a.group, Documents: &unsure{Documents: a.group}, Leases: keeper{b.leases},
		Clock: f.clock, Wall: time.Now, Logger: f.log, ExpectAllocs: 2, Weight: 100})
	if err != nil {
		f.t.Fatal(err)
	}
	return (&node{Alloc: n, group: a.group}).admin()
}

func TestAClusterStoppedInOrderGoesOnWithoutAGap(t *testing.T) {
	f := newFleet(t, seq.Space{Name: "user", Sections: 16, Step: 40})
	files := map[string]string{"a": filepath.Join(t.TempDir(), "a"), "b": filepath.Join(t.TempDir(), "b")}
	want := map[seq.UID]seq.Seq{}
	for round := range 3 {
		a, b := f.start("a", 2, files["a"]), f.start("b", 2, files["b"])
		f.serving(a, b)
		for uid := seq.UID(0); uid < 1000; uid += 50 {
			got := f.next(uid)
			if round > 0 && got != want[uid] {
				t.Errorf("round %d, uid %d: got %d, want %d", round, uid, got, want[uid])
			}
			want[uid] = got + 1
		}
		f.leave(a)
		f.leave(b)
	}
}

func TestOneStoreLessChangesNothing(t *testing.T) {
	f := newFleet(t, seq.Space{Name: "user", Sections: 8, Step: 10})
	a := f.start("a", 1, "")
	f.serving(a)
	for down := range 3 {
		f.stores.Stores[down].SetDown(true)
		for range 100 {
			f.next(5)
		}
		f.stores.Stores[down].Restart()
	}
	if got, want := f.next(5), seq.Seq(301); got != want {
		t.Errorf("got %d, want %d: a gap", got, want)
	}
}

func TestAStepOfUnknownOutcomeIsRepeatedAndNotUsedBefore(t *testing.T) {
	f := newFleet(t, seq.Space{Name: "user", Sections: 1, Step: 10})
	a := f.start("a", 1, "")
	f.serving(a)
	for _, s := range f.stores.Stores[:2] {
		s.SetDeaf(true)
	}
	space := &f.stores.Mapping.Spaces[0]
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	taken := make(chan section.Taken, 1)
	go func() { taken <- a.Take(ctx, space, seq.PlainAll(1), []uint32{25}) }()
	f.until("the step is on a disk, and its answer lost", func() bool {
		return f.stores.Stores[0].Max(seq.SectionRegister(0)) > 25
	})
	for _, v := range a.Views() {
		if v.Owned && v.Confirmed != 10 {
			t.Errorf("confirmed %d by one answer of three, want the old ceiling 10", v.Confirmed)
		}
	}
	select {
	case got := <-taken:
		if len(got.Faults) == 0 {
			t.Fatalf("got %d to %d by one answer of three", got.First[0], got.Last[0])
		}
		taken <- got
	default:
	}
	for _, s := range f.stores.Stores[:2] {
		s.SetDeaf(false)
	}
	if got := <-taken; len(got.Faults) > 0 && !errors.Is(got.Faults[0].Err, seq.ErrNoQuorum) && !errors.Is(got.Faults[0].Err, seq.ErrNoLease) {
		t.Errorf("got %v", got.Faults[0].Err)
	}
}

func TestWithoutAQuorumRequestsAreRefusedWithTheReasonAndGoOnLater(t *testing.T) {
	f := newFleet(t, seq.Space{Name: "user", Sections: 4, Step: 10})
	a := f.start("a", 1, "")
	f.serving(a)
	before := f.next(1)
	f.stores.Stores[0].SetDown(true)
	f.stores.Stores[1].SetDown(true)
	space := &f.stores.Mapping.Spaces[0]
	f.until("the lease has ended", func() bool {
		got := a.Take(context.Background(), space, seq.PlainAll(2), nil)
		return len(got.Faults) > 0 && errors.Is(got.Faults[0].Err, seq.ErrNoQuorum)
	})
	f.stores.Stores[1].Restart()
	if got := f.next(1); got <= before {
		t.Errorf("got %d after %d", got, before)
	}
}

func TestASequenceNeverPassesItsEnd(t *testing.T) {
	f := newFleet(t, seq.Space{Name: "user", Sections: 2, Step: 10})
	a := f.start("a", 1, "")
	f.serving(a)
	space := &f.stores.Mapping.Spaces[0]
	ctx := context.Background()
	if _, err := a.Raise(ctx, space, seq.Plain(7), uint64(seq.MaxSeq)-1, section.Reach{Force: true}); err != nil {
		t.Fatal(err)
	}
	if got := f.next(7); got != seq.MaxSeq {
		t.Errorf("got %d, want %d", got, seq.MaxSeq)
	}
	if got := a.Take(ctx, space, seq.PlainAll(7), nil); len(got.Faults) != 1 || !errors.Is(got.Faults[0].Err, seq.ErrOverflow) {
		t.Errorf("got %v, want ErrOverflow", got)
	}
	if _, err := a.Raise(ctx, space, seq.Plain(7), uint64(seq.MaxSeq)+1, section.Reach{Force: true}); !errors.Is(err, seq.ErrOverflow) {
		t.Errorf("got %v, want ErrOverflow", err)
	}
}

func TestRaiseNeverLowersAndIsDurableBeforeItAnswers(t *testing.T) {
	f := newFleet(t, seq.Space{Name: "user", Sections: 2, Step: 10})
	a := f.start("a", 1, "")
	f.serving(a)
	space := &f.stores.Mapping.Spaces[0]
	ctx := context.Background()
	for _, row := range []struct{ floor, want uint64 }{{1000, 1000}, {5, 1000}, {0, 1000}, {1001, 1001}} {
		got, err := a.Raise(ctx, space, seq.Plain(7), row.floor, section.Reach{})
		if err != nil || got != row.want {
			t.Errorf("raise to %d: got %d, %v, want %d", row.floor, got, err, row.want)
		}
		out := a.holder.Look(ctx, seq.SectionRegister(space.SectionOf(7)))
		if out.Max < row.want {
			t.Errorf("raise to %d answered with max %d at the stores", row.floor, out.Max)
		}
	}
	if got := f.next(7); got != 1002 {
		t.Errorf("got %d, want 1002", got)
	}
}

func TestCurrentSaysWhetherItIsExact(t *testing.T) {
	f := newFleet(t, seq.Space{Name: "user", Sections: 2, Step: 10})
	a := f.start("a", 1, "")
	f.serving(a)
	space := &f.stores.Mapping.Spaces[0]
	f.next(1)
	now, faults := a.Current(context.Background(), space, seq.PlainAll(1, 3))
	if len(faults) > 0 || now[0].Value != 1 || now[0].UpperBound || now[0].LastTaken == 0 || now[1].Value != 0 || now[1].UpperBound {
		t.Errorf("got %+v, %v", now, faults)
	}
	a.kill()
	b := f.start("b", 1, "")
	f.mu.Lock()
	delete(f.nodes, "a")
	f.mu.Unlock()
	f.serving(b)
	now, faults = b.Current(context.Background(), space, seq.PlainAll(1))
	if len(faults) > 0 || now[0].Value < 1 || !now[0].UpperBound {
		t.Errorf("after a crash: got %+v, %v, want an upper bound of at least 1", now, faults)
	}
}

func TestStrictAnswersNothingUnderADeposedEpoch(t *testing.T) {
	f := newFleet(t, seq.Space{Name: "user", Sections: 1, Step: 10, Mode: seq.Strict})
	a := f.start("a", 1, "")
	f.serving(a)
	f.next(1)
	// Another session gets promises behind the leases' back, as if a clock had lied.
	thief := seq.NewSession()
	for _, s := range f.stores.Stores {
		s.Steal(seq.SectionRegister(0), 99, thief)
	}
	space := &f.stores.Mapping.Spaces[0]
	got := a.Take(context.Background(), space, seq.PlainAll(1), nil)
	if len(got.Faults) == 0 {
		t.Errorf("got %d although the epoch was deposed", got.First[0])
	}
}

func TestUniqueOnlyGoesOnWithoutALeaseAndSaysSo(t *testing.T) {
	f := newFleet(t, seq.Space{Name: "user", Sections: 1, Step: 1_000_000, Mode: seq.UniqueOnly})
	a := f.start("a", 1, "")
	f.serving(a)
	for _, s := range f.stores.Stores {
		s.SetDown(true)
	}
	space := &f.stores.Mapping.Spaces[0]
	seen := map[uint64]bool{}
	f.until("an unordered answer", func() bool {
		got := a.Take(context.Background(), space, seq.PlainAll(1), nil)
		if len(got.Faults) > 0 {
			t.Fatalf("refused: %v", got.Faults[0].Err)
		}
		if seen[got.First[0]] {
			t.Fatalf("%d twice", got.First[0])
		}
		seen[got.First[0]] = true
		return got.Unordered
	})
}

func TestAFirstStepOfUnknownOutcomeLeavesNoGap(t *testing.T) {
	f := newFleet(t, seq.Space{Name: "user", Sections: 4, Step: 10})
	for _, s := range f.stores.Stores {
		s.LoseSteps(1)
	}
	a := f.start("a", 1, "")
	f.serving(a)
	for uid := seq.UID(0); uid < 4*64; uid += 64 {
		if got := f.next(uid); got != 1 {
			t.Errorf("uid %d: got %d, want 1: nothing was handed out before", uid, got)
		}
	}
}
