package allocsvr

import (
	"context"
	"testing"

	"github.com/seqsvr/seqsvr/allocsvr/counters"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// A renew may tell of the release before the hand-over that released has ended.
func TestASealedSectionIsForgottenByItsHandOverOnly(t *testing.T) {
	const successor = "127.0.0.1:9"
	o := newOwner(t)
	if _, ok := o.c.seal(); !ok {
		t.Fatal("not sealed")
	}
	o.lost(seq.SectionRegister(o.c.id), o.epoch.Round)
	if got := o.stateOf(o.c); got != sealed {
		t.Fatalf("the section is %v after a store told of the release, want %v", got, sealed)
	}
	if !o.c.drop(o.epoch, successor) || o.successorOf(o.c) != successor {
		t.Errorf("callers are sent to %q, want %q", o.successorOf(o.c), successor)
	}
}

// heldElsewhere are stores where another session has every section.
type heldElsewhere struct{ *scriptedRegisters }

func (heldElsewhere) Probe(_ context.Context, _ seq.Session, regs []seq.Register) []quorum.Outcome {
	out := make([]quorum.Outcome, len(regs))
	for i := range out {
		out[i] = quorum.Outcome{State: quorum.Refused, Holder: otherSession, Remaining: ownerLease}
	}
	return out
}

// otherAt knows where that session is.
type otherAt struct{ idleLeases }

const otherAddr = "127.0.0.1:8"

func (otherAt) Sessions() []quorum.SessionView {
	return []quorum.SessionView{{Session: otherSession, Name: "b", Addr: otherAddr}}
}

func TestCallersOfASectionStillToComeAreSentToTheNodeThatHasIt(t *testing.T) {
	for owner, want := range map[int16]string{0: otherAddr, 1: ""} {
		o := newOwner(t)
		o.holder.Registers, o.leases = heldElsewhere{o.regs}, otherAt{}
		o.c.drop(o.epoch, "")
		o.routes.adopt(&seq.RouteTable{Version: 1, Sections: []seq.Placement{{Owner: owner, Standby: 1 - owner, Standby2: seq.NoNode}},
			Nodes: []seq.Node{{Name: "a", Addr: "a", Weight: 100}, {Name: "b", Addr: otherAddr, Weight: 100}}})
		o.acquire(t.Context(), []seq.SectionID{0})
		if got := o.successorOf(o.c); got != want {
			t.Errorf("with node %d as the table's owner callers are sent to %q, want %q", owner, got, want)
		}
	}
}

func TestASectionAcquiredWhileTheNodeLeavesIsNotServed(t *testing.T) {
	o := newOwner(t)
	if !o.c.drop(o.epoch, "") || !o.c.begin() {
		t.Fatal("the section is not being acquired")
	}
	o.c.expect(o.epoch)
	o.regs.onRelease, o.regs.onEnd = func() {}, func() {}
	if err := o.Leave(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	hold := &scriptedHold{until: o.clock.Now() + ownerLease}
	ok, err := o.c.install(o.epoch, counters.New(0), ownerStep, hold, &o.gone)
	if ok || err != nil {
		t.Errorf("installed after the session has ended: %v, %v", ok, err)
	}
	if got := o.take(1); got.settled() {
		t.Errorf("got %d after the session has ended", got.out.First[0])
	}
}
