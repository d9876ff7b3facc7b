package allocsvr

import (
	"context"
	"errors"
	"testing"

	"github.com/seqsvr/seqsvr/allocsvr/counters"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

func TestARangeWhoseStepIsUnknownIsNotUsedBeforeAStepIsConfirmed(t *testing.T) {
	o := newOwner(t)
	o.must(ownerStep)
	waiting := o.take(5)
	if waiting.settled() {
		t.Fatalf("%d numbers above the ceiling were handed out", len(waiting.out.First))
	}
	if err := o.refused(waiting); !errors.Is(err, context.Canceled) {
		t.Errorf("while it waits for the step: got %v, want context.Canceled", err)
	}
	var asked []uint64
	state := quorum.Unknown
	o.regs.onStep = func(item quorum.StepItem) quorum.Outcome {
		asked = append(asked, item.Max)
		return quorum.Outcome{State: state, Max: item.Max, Acks: 1}
	}
	if again := o.step(); len(again) != 1 || again[0].c != o.c {
		t.Errorf("%d sections to be repeated, want the one", len(again))
	}
	if got := o.confirmed(); got != ownerStep {
		t.Errorf("the ceiling is %d after an unknown step, want %d", got, ownerStep)
	}
	if late := o.take(1); late.settled() {
		t.Errorf("got %d after an unknown step", late.out.First[0])
	}
	state = quorum.Won
	o.stepper.Add(t.Context(), rising{o.Alloc, o.c}, true)
	if again := o.step(); len(again) != 0 {
		t.Errorf("%d sections to be repeated after a confirmed step", len(again))
	}
	if len(asked) != 2 || asked[1] < asked[0] {
		t.Errorf("asked for %d, want the same or more the second time", asked)
	}
	if got := o.must(1); got != ownerStep+1 {
		t.Errorf("got %d, want %d", got, ownerStep+1)
	}
}

func TestANackEndsTheSectionAtOnceAndWithItWhatWasConfirmed(t *testing.T) {
	o := newOwner(t)
	hold := o.hold
	o.must(ownerStep/2 + 1) // a step is due, half of the range is left
	o.regs.onStep = func(quorum.StepItem) quorum.Outcome {
		return quorum.Outcome{State: quorum.Refused, Promised: seq.Epoch{Round: 8, Session: otherSession}, Err: quorum.ErrNack}
	}
	if again := o.step(); len(again) != 0 {
		t.Error("a step is repeated after a NACK")
	}
	if err := o.refused(o.take(1)); !errors.Is(err, seq.ErrNotOwner) {
		t.Errorf("got %v, want ErrNotOwner", err)
	}
	if !hold.dropped {
		t.Error("the lease is kept")
	}
	o.c.confirm(o.epoch, 10*ownerStep) // an ack that comes late
	if got := o.stateOf(o.c); got != absent {
		t.Errorf("the section is %v, want absent", got)
	}
}

func TestEveryBatchAsksWhenTheLeaseEnds(t *testing.T) {
	o := newOwner(t)
	o.must(1)
	o.clock.Advance(ownerLease - 1)
	o.must(1)
	o.clock.Advance(1)
	if err := o.refused(o.take(1)); !errors.Is(err, seq.ErrNoLease) {
		t.Errorf("at the end of the lease: got %v, want ErrNoLease", err)
	}
	o.hold.until = o.clock.Now() + 1
	if got := o.must(1); got != 3 {
		t.Errorf("after a renewal: got %d, want 3", got)
	}
	o.hold.until = 0 // the stores no longer back it, and no time has passed
	if err := o.refused(o.take(1)); !errors.Is(err, seq.ErrNoLease) {
		t.Errorf("without W stores: got %v, want ErrNoLease", err)
	}
}

func TestARequestThatWaitedAsksTheClockWhenItIsServed(t *testing.T) {
	o := newOwner(t)
	waiting := o.take(ownerStep + 1)
	if waiting.settled() {
		t.Fatal("numbers above the ceiling were handed out")
	}
	o.clock.Advance(ownerLease) // somebody else may have the section by now
	o.c.confirm(o.epoch, 3*ownerStep)
	if err := o.refused(waiting); !errors.Is(err, seq.ErrNoLease) {
		t.Errorf("got %v, want ErrNoLease", err)
	}
	if got, _ := o.c.table.Get(1); got != 0 {
		t.Errorf("uid 1 stands at %d, want 0", got)
	}
}

func TestNoNumberIsTakenAfterTheSeal(t *testing.T) {
	o := newOwner(t)
	o.must(3)
	o.c.mu.Lock()
	o.c.want(ownerStep, o.clock.Now())
	o.c.mu.Unlock()
	sealed, ok := o.c.seal()
	if !ok || sealed.epoch != o.epoch {
		t.Fatalf("got %+v, %v", sealed, ok)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if step, ok := (rising{o.Alloc, o.c}).Next(); ok {
		t.Errorf("a sealed section is stepped to %d", step.Max)
	}
	o.c.confirm(o.epoch, 3*ownerStep)
	if late := o.take(1); late.settled() {
		t.Errorf("got %d at once", late.out.First[0])
	} else if err := o.refused(late); !errors.Is(err, context.Canceled) {
		t.Errorf("a request: got %v, want it to wait", err)
	}
	if _, err := o.Raise(gone, o.c.space, 1, 50, false); !errors.Is(err, context.Canceled) {
		t.Errorf("a raise: got %v, want it to wait", err)
	}
	if _, again := o.c.seal(); again {
		t.Error("sealed twice")
	}
	if got, _ := sealed.table.Get(1); got != 3 || sealed.table.High() != 3 {
		t.Errorf("uid 1 stands at %d, the highest at %d, want 3 as sealed", got, sealed.table.High())
	}
}

func TestASectionIsSealedBeforeItsLeaseIsReleased(t *testing.T) {
	o := newOwner(t)
	o.must(4)
	released := false
	o.regs.onRelease = func() {
		released = true
		if late := o.take(1); late.settled() {
			t.Errorf("got %d after the release", late.out.First[0])
		}
	}
	moved, err := o.handOver(t.Context(), quorum.SessionView{Session: otherSession, Name: "b", Addr: "b:1"}, []seq.SectionID{0})
	if err != nil || moved != 1 || !released {
		t.Fatalf("moved %d, released %v: %v", moved, released, err)
	}
	if len(o.peers.offered) != 1 || o.peers.offered[0].epoch != o.epoch {
		t.Fatalf("offered %+v", o.peers.offered)
	}
	if got, _ := o.peers.offered[0].table.Get(1); got != 4 {
		t.Errorf("the successor is told of %d, want 4", got)
	}
	if err := o.refused(o.take(1)); !errors.Is(err, seq.ErrNotOwner) {
		t.Errorf("afterwards: got %v, want ErrNotOwner", err)
	}
}

func TestASessionEndsOnlyOnceItsSectionsAreSealed(t *testing.T) {
	o := newOwner(t)
	ended := false
	o.regs.onEnd = func() {
		ended = true
		if late := o.take(1); late.settled() {
			t.Errorf("got %d after the session ended", late.out.First[0])
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
		o.heirs.keep(sealedSection{id: 0, epoch: sealed, also: []seq.Epoch{{Round: 8, Session: ownerSession + 9}, also}, table: table})
		try := &attempt{a: o.Alloc, c: o.c, epoch: seq.Epoch{Round: 20, Session: ownerSession}}
		kept := try.start(quorum.Outcome{State: quorum.Won, Accepted: row.accepted, Max: row.max})
		if kept != row.kept || (try.table == table) != row.kept {
			t.Errorf("%s: used %v, want %v", row.name, kept, row.kept)
		}
		if !row.kept && (try.table.Base() != row.max || try.table.Len() != 0 || try.max != row.max+ownerStep) {
			t.Errorf("%s: base %d with %d uids up to %d, want base %d, none, %d", row.name,
				try.table.Base(), try.table.Len(), try.max, row.max, row.max+ownerStep)
		}
		if _, _, again := o.heirs.take(0, anyCounters); again {
			t.Errorf("%s: the counters are kept for another time", row.name)
		}
	}
}

func anyCounters(sealedSection) bool { return true }

// A hand-over offer that nobody sealed: its epoch is the live owner's, which every status
// shows, and its counters would hand out numbers again.
func TestOfferedCountersAreUsedOnlyIfTheReleaseLeftTheirDigestAtTheStores(t *testing.T) {
	epoch := seq.Epoch{Round: 5, Session: otherSession}
	at := func(uid, last uint64) *counters.Table {
		table := counters.New(0)
		table.Take(uid, last, last, 0)
		return table
	}
	genuine := sealedSection{id: 0, epoch: epoch, table: at(1, 30)}
	forged := sealedSection{id: 0, epoch: epoch, table: at(1, 1)}
	for _, row := range []struct {
		name   string
		offers []sealedSection
		left   uint64
		kept   bool
	}{
		{"as released", []sealedSection{genuine}, genuine.digest(), true},
		{"nothing was released", []sealedSection{genuine}, 0, false},
		{"forged, nothing was released", []sealedSection{forged}, 0, false},
		{"forged, others were released", []sealedSection{forged}, genuine.digest(), false},
		{"forged before the owner's offer", []sealedSection{forged, genuine}, genuine.digest(), true},
		{"of another epoch", []sealedSection{{id: 0, epoch: seq.Epoch{Round: 4, Session: otherSession}, table: genuine.table}}, genuine.digest(), false},
	} {
		o := newOwner(t)
		if err := o.acceptOffer(row.offers); err != nil {
			t.Fatal(err)
		}
		try := &attempt{a: o.Alloc, c: o.c, epoch: seq.Epoch{Round: 20, Session: ownerSession}}
		kept := try.start(quorum.Outcome{State: quorum.Won, Accepted: epoch, Max: 100, Seal: row.left})
		if kept != row.kept || !kept && try.table.Base() != 100 {
			t.Errorf("%s: used %v from base %d, want %v or 100", row.name, kept, try.table.Base(), row.kept)
		}
	}
	for _, first := range []bool{true, false} {
		o := newOwner(t)
		if first {
			o.heirs.keep(genuine) // its own, of a hand-over that failed
		}
		if err := o.acceptOffer([]sealedSection{forged}); err != nil {
			t.Fatal(err)
		}
		if !first {
			o.heirs.keep(genuine)
		}
		if got := o.heirs.all(); len(got) != 1 || got[0].digest() != genuine.digest() {
			t.Errorf("kept before the offer %v: to be parked: %+v, want what this node sealed alone", first, got)
		}
		try := &attempt{a: o.Alloc, c: o.c}
		if !try.start(quorum.Outcome{State: quorum.Won, Accepted: epoch, Max: 100}) || try.table != genuine.table {
			t.Errorf("kept before the offer %v: a forged offer hides what the node sealed itself", first)
		}
	}
}

func TestAMessageForAnotherIncarnationOrClusterIsRefused(t *testing.T) {
	o := newOwner(t)
	p := peerServer{a: o.Alloc}
	body := counters.New(0).AppendBinary(nil)
	for _, row := range []struct {
		name    string
		cluster string
		to      seq.Session
		want    error
	}{
		{"itself", "c1", ownerSession, nil},
		{"the incarnation before", "c1", ownerSession + 1, seq.ErrNodeUnfit},
		{"another cluster", "c2", ownerSession, seq.ErrForeignCluster},
	} {
		_, offer := p.Offer(t.Context(), &pb.OfferRequest{ClusterId: row.cluster, From: uint64(otherSession), To: uint64(row.to),
			Sections: []*pb.SealedSection{{Section: 0, Round: 5, Counters: body}}})
		if !errors.Is(offer, row.want) {
			t.Errorf("%s: offer: got %v, want %v", row.name, offer, row.want)
		}
		if _, _, kept := o.heirs.take(0, anyCounters); kept != (row.want == nil) {
			t.Errorf("%s: counters kept %v", row.name, kept)
		}
		if _, err := p.Take(t.Context(), &pb.TakeRequest{ClusterId: row.cluster, From: uint64(otherSession), To: uint64(row.to)}); !errors.Is(err, row.want) {
			t.Errorf("%s: take: got %v, want %v", row.name, err, row.want)
		}
	}
}

func TestANewOwnerStartsAtTheHighestPromiseAndConfirmsAStepAbove(t *testing.T) {
	o := newOwner(t)
	for _, top := range []uint64{0, 250, uint64(seq.MaxSeq) - 10, uint64(seq.MaxSeq)} {
		try := &attempt{a: o.Alloc, c: o.c}
		try.start(quorum.Outcome{State: quorum.Won, Max: top})
		if want := min(top+ownerStep, uint64(seq.MaxSeq)); try.table.Base() != top || try.max != want {
			t.Errorf("after %d: base %d up to %d, want %d up to %d", top, try.table.Base(), try.max, top, want)
		}
	}
}

// What was handed out lies below what W stores have: a section that began otherwise must
// not serve, whatever brought it there.
func TestASectionIsInstalledOnlyBelowItsCeilingUnderItsEpochInALivingNode(t *testing.T) {
	hold := &scriptedHold{}
	for _, row := range []struct {
		name      string
		high      uint64
		confirmed uint64
		epoch     uint64 // above the expected one
		gone      bool
		ok        bool
		err       error
		then      state
	}{
		{name: "below", high: 39, confirmed: 40, ok: true, then: owned},
		{name: "at the ceiling", high: 40, confirmed: 40, ok: true, then: owned},
		{name: "above", high: 41, confirmed: 40, err: errInvariant, then: acquiring},
		{name: "under an epoch that was lost", high: 39, confirmed: 40, epoch: 1, then: acquiring},
		{name: "in a node that has left", high: 39, confirmed: 40, gone: true, then: absent},
	} {
		o := newOwner(t)
		o.c.drop(o.epoch, "")
		o.c.begin()
		o.c.expect(o.epoch)
		o.gone.Store(row.gone)
		e := o.epoch
		e.Round += row.epoch
		ok, err := o.c.install(e, counters.New(row.high), row.confirmed, hold, &o.gone)
		if ok != row.ok || !errors.Is(err, row.err) || o.c.state != row.then {
			t.Errorf("%s: got %v, %v, state %v, want %v, %v, %v", row.name, ok, err, o.c.state, row.ok, row.err, row.then)
		}
	}
}
