package owner

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/handover"
	"github.com/seqsvr/seqsvr/allocsvr/ownership/ownershiptest"
	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/internal/base/counters"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

func TestASectionIsSealedBeforeItsLeaseIsReleased(t *testing.T) {
	o := newOwner(t)
	o.must(4)
	released := false
	o.regs.OnRelease = func() {
		released = true
		if late := o.take(1); late.Settled() {
			t.Errorf("got %d after the release", late.Out().First[0])
		}
	}
	moved, err := o.away.handOver(t.Context(), quorum.SessionView{Session: otherSession, Name: "b", Addr: "b:1"}, []seq.SectionID{0})
	if err != nil || moved != 1 || !released {
		t.Fatalf("moved %d, released %v: %v", moved, released, err)
	}
	if len(o.peers.offered) != 1 || o.peers.offered[0].Epoch != o.epoch {
		t.Fatalf("offered %+v", o.peers.offered)
	}
	if got, _ := o.peers.offered[0].Table.Get(1); got != 4 {
		t.Errorf("the successor is told of %d, want 4", got)
	}
	if err := o.refused(o.take(1)); !errors.Is(err, seq.ErrNotOwner) {
		t.Errorf("afterwards: got %v, want ErrNotOwner", err)
	}
}

func TestASessionEndsOnlyOnceItsSectionsAreSealed(t *testing.T) {
	o := newOwner(t)
	ended := false
	o.regs.OnEnd = func() {
		ended = true
		if late := o.take(1); late.Settled() {
			t.Errorf("got %d after the session ended", late.Out().First[0])
		}
	}
	if err := o.Leave(t.Context(), ""); err != nil || !ended {
		t.Errorf("ended %v: %v", ended, err)
	}
}

func TestSealedCountersAreUsedOnlyDirectlyAfterTheirEpoch(t *testing.T) {
	sealed := seq.Epoch{Round: 7, Session: ownerSession}
	also := seq.Epoch{Round: 9, Session: ownerSession}
	rows := []struct {
		name     string
		accepted seq.Epoch
		max      uint64
		kept     bool
	}{
		{"nobody came between", sealed, 100, true},
		{"an own step of unknown outcome came between", also, 100, true},
		{"another session came between", seq.Epoch{Round: 8, Session: otherSession}, 100, false},
		{"another session came in the same round", seq.Epoch{Round: 7, Session: otherSession}, 100, false},
		{"the same session came again", seq.Epoch{Round: 8, Session: ownerSession}, 100, false},
		{"somebody came after the step of unknown outcome", seq.Epoch{Round: 10, Session: otherSession}, 100, false},
		{"the stores know of an older owner only", seq.Epoch{Round: 6, Session: otherSession}, 100, false},
		{"the stores know of no owner", seq.Epoch{}, 100, false},
		{"the counters are above the stores", sealed, 39, false},
	}
	for _, row := range rows {
		o := newOwner(t)
		table := counters.New(10)
		table.Take(1, 30, 40, 0)
		o.kept.Keep(handover.Sealed{ID: 0, Epoch: sealed, Also: []seq.Epoch{{Round: 8, Session: ownerSession + 9}, also}, Table: table})
		try := &attempt{o: o.Owner, c: o.c, epoch: seq.Epoch{Round: 20, Session: ownerSession}}
		kept := try.start(quorum.Outcome{State: quorum.Won, Accepted: row.accepted, Max: row.max})
		if kept != row.kept || (try.table == table) != row.kept {
			t.Errorf("%s: used %v, want %v", row.name, kept, row.kept)
		}
		if !row.kept && (try.table.Base() != row.max || try.table.Len() != 0 || try.max != row.max+ownerStep) {
			t.Errorf("%s: base %d with %d uids up to %d, want base %d, none, %d", row.name,
				try.table.Base(), try.table.Len(), try.max, row.max, row.max+ownerStep)
		}
		if _, _, again := o.kept.Use(0, anyCounters); again {
			t.Errorf("%s: the counters are kept for another time", row.name)
		}
	}
}

func anyCounters(handover.Sealed) bool { return true }

// The offer was not sealed by any node. Its epoch is the live owner's, which every status shows, and its
// counters would hand out numbers again.
func TestOfferedCountersAreUsedOnlyIfTheReleaseLeftTheirDigestAtTheStores(t *testing.T) {
	epoch := seq.Epoch{Round: 5, Session: otherSession}
	at := func(uid, last uint64) *counters.Table {
		table := counters.New(0)
		table.Take(uid, last, last, 0)
		return table
	}
	genuine := handover.Sealed{ID: 0, Epoch: epoch, Table: at(1, 30)}
	forged := handover.Sealed{ID: 0, Epoch: epoch, Table: at(1, 1)}
	for _, row := range []struct {
		name   string
		offers []handover.Sealed
		left   uint64
		kept   bool
	}{
		{"as released", []handover.Sealed{genuine}, genuine.Digest(), true},
		{"nothing was released", []handover.Sealed{genuine}, 0, false},
		{"forged, nothing was released", []handover.Sealed{forged}, 0, false},
		{"forged, others were released", []handover.Sealed{forged}, genuine.Digest(), false},
		{"forged before the owner's offer", []handover.Sealed{forged, genuine}, genuine.Digest(), true},
		{"of another epoch", []handover.Sealed{{ID: 0, Epoch: seq.Epoch{Round: 4, Session: otherSession}, Table: genuine.Table}}, genuine.Digest(), false},
	} {
		o := newOwner(t)
		if err := o.Accept(row.offers); err != nil {
			t.Fatal(err)
		}
		try := &attempt{o: o.Owner, c: o.c, epoch: seq.Epoch{Round: 20, Session: ownerSession}}
		kept := try.start(quorum.Outcome{State: quorum.Won, Accepted: epoch, Max: 100, Seal: row.left})
		if kept != row.kept || !kept && try.table.Base() != 100 {
			t.Errorf("%s: used %v from base %d, want %v or 100", row.name, kept, try.table.Base(), row.kept)
		}
	}
	for _, first := range []bool{true, false} {
		o := newOwner(t)
		if first {
			o.kept.Keep(genuine) // its own, of a hand-over that failed
		}
		if err := o.Accept([]handover.Sealed{forged}); err != nil {
			t.Fatal(err)
		}
		if !first {
			o.kept.Keep(genuine)
		}
		if got := o.kept.All(); len(got) != 1 || got[0].Digest() != genuine.Digest() {
			t.Errorf("kept before the offer %v: to be parked: %+v, want what this node sealed alone", first, got)
		}
		try := &attempt{o: o.Owner, c: o.c}
		if !try.start(quorum.Outcome{State: quorum.Won, Accepted: epoch, Max: 100}) || try.table != genuine.Table {
			t.Errorf("kept before the offer %v: a forged offer hides what the node sealed itself", first)
		}
	}
}

func TestANewOwnerStartsAtTheHighestPromiseAndConfirmsAStepAbove(t *testing.T) {
	o := newOwner(t)
	for _, top := range []uint64{0, 250, uint64(seq.MaxSeq) - 10, uint64(seq.MaxSeq)} {
		try := &attempt{o: o.Owner, c: o.c}
		try.start(quorum.Outcome{State: quorum.Won, Max: top})
		if want := min(top+ownerStep, uint64(seq.MaxSeq)); try.table.Base() != top || try.max != want {
			t.Errorf("after %d: base %d up to %d, want %d up to %d", top, try.table.Base(), try.max, top, want)
		}
	}
}

// heldElsewhere are stores where another session has every section.
type heldElsewhere struct{ *ownershiptest.Registers }

func (heldElsewhere) Probe(_ context.Context, _ seq.Session, regs []seq.Register) []quorum.Outcome {
	out := make([]quorum.Outcome, len(regs))
	for i := range out {
		out[i] = quorum.Outcome{State: quorum.Refused, Holder: otherSession, Remaining: ownerLease}
	}
	return out
}

// otherAt knows where that session is.
type otherAt struct{ ownershiptest.Leases }

const otherAddr = "127.0.0.1:8"

func (otherAt) Sessions() []quorum.SessionView {
	return []quorum.SessionView{{Session: otherSession, Name: "b", Addr: otherAddr}}
}

func TestCallersOfASectionStillToComeAreSentToTheNodeThatHasIt(t *testing.T) {
	for owner, want := range map[int16]string{0: otherAddr, 1: ""} {
		o := newOwner(t)
		o.holder.Registers, o.sessions = heldElsewhere{o.regs}, otherAt{}
		o.c.Drop(o.epoch, "")
		o.routes.Adopt(&seq.RouteTable{Version: 1, Sections: []seq.Placement{{Owner: owner, Standby: 1 - owner, Standby2: seq.NoNode}},
			Nodes: []seq.Node{{Name: "a", Addr: "a", Weight: 100}, {Name: "b", Addr: otherAddr, Weight: 100}}})
		o.acquire(t.Context(), []seq.SectionID{0}, nil)
		if got := o.c.Successor(); got != want {
			t.Errorf("with node %d as the table's owner callers are sent to %q, want %q", owner, got, want)
		}
	}
}

func TestASectionAcquiredWhileTheNodeLeavesIsNotServed(t *testing.T) {
	o := newOwner(t)
	if !o.c.Drop(o.epoch, "") || !o.c.Begin() {
		t.Fatal("the section is not being acquired")
	}
	o.c.Expect(o.epoch)
	o.regs.OnRelease, o.regs.OnEnd = func() {}, func() {}
	if err := o.Leave(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	hold := &ownershiptest.Lease{End: o.clock.Now() + ownerLease}
	ok, err := o.sections.Install(0, o.epoch, counters.New(0), ownerStep, hold)
	if ok || err != nil {
		t.Errorf("installed after the session has ended: %v, %v", ok, err)
	}
	if got := o.take(1); got.Settled() {
		t.Errorf("got %d after the session has ended", got.Out().First[0])
	}
}

// slowPeers take what they are asked for at the n-th time only.
type slowPeers struct {
	scriptedPeers
	n, asked int
}

func (p *slowPeers) Take(_ context.Context, _ string, _ seq.Session, ids []seq.SectionID) ([]seq.SectionID, error) {
	if p.asked++; p.asked < p.n {
		return nil, nil
	}
	return ids, nil
}

func TestASuccessorIsAskedAgainWhileItLives(t *testing.T) {
	b := quorum.SessionView{Session: otherSession, Name: "b", Addr: "b"}
	dead, restarted := b, b
	dead.Dead, restarted.Session = true, otherSession+1
	tests := []struct {
		name string
		seen quorum.SessionView
		node seq.Node
		want bool
	}{
		{"it lives", b, seq.Node{Name: "b"}, true},
		{"it has been drained meanwhile", b, seq.Node{Name: "b", Drained: true}, true},
		{"it leaves", b, seq.Node{Name: "b", Leaving: otherSession}, false},
		{"it left before, as another session", b, seq.Node{Name: "b", Leaving: otherSession + 1}, true},
		{"it has died", dead, seq.Node{Name: "b"}, false},
		{"it has restarted", restarted, seq.Node{Name: "b"}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o, peers := newOwner(t), &slowPeers{n: 3}
			o.Owner.peers, o.Owner.sessions, o.lease = peers, &told{sessions: []quorum.SessionView{test.seen}}, time.Millisecond
			o.routes.Adopt(&seq.RouteTable{Version: 1, Nodes: []seq.Node{test.node}, Sections: make([]seq.Placement, 1)})
			owned, err := o.away.letTake(t.Context(), b, []seq.SectionID{0})
			if got := len(owned) == 1; got != test.want || (err == nil) != test.want {
				t.Errorf("took it: %v (%v) after %d tries, want %v", got, err, peers.asked, test.want)
			}
		})
	}
}

func TestThePauseAfterAFailedHandOverGrows(t *testing.T) {
	var r refusal
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		if r = r.again(time.Hour); r.until != time.Hour+want*time.Second {
			t.Errorf("again after %v, want %v s", r.until-time.Hour, int(want))
		}
	}
}

// A section that is sealed for a move while it is handed over is no node's of the Set any more: the
// others of the batch, and the successor, do not answer for it.
func TestAHandOverDoesNotWaitForASectionThatIsSealedMeanwhile(t *testing.T) {
	for _, place := range []sets.Place{sealedBy7, {State: sets.Moved, Move: 7, To: "b"}} {
		o, w, _ := newMoving(t, place)
		o.must(4)
		o.Owner.peers = &untaking{}
		moved, err := o.away.handOver(t.Context(), quorum.SessionView{Session: otherSession, Name: "b", Addr: "b:1"}, []seq.SectionID{0})
		if err != nil || moved != 0 {
			t.Errorf("%v: moved %d: %v", place, moved, err)
		}
		if len(w.asked) > 0 || o.c.State() != section.Absent {
			t.Errorf("%v: it is %v, and was asked for by %+v", place, o.c.State(), w.asked)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond) // the clock stands still
		got := o.TakeOffered(ctx, []seq.SectionID{0})
		if cancel(); len(got) > 0 {
			t.Errorf("%v: taken: %v", place, got)
		}
	}
}
