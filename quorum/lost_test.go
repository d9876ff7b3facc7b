package quorum

import (
	"slices"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

func TestALostSectionIsNeverBroughtBack(t *testing.T) {
	r := newRenewal(t, 3, true)
	h, kept := r.Attach(section, 5), r.Attach(seq.SectionRegister(8), 5)
	r.renew(RenewReply{}, 0, 1, 2)
	r.clock.Advance(100 * time.Millisecond)
	item := LeaseItem{Register: section, Round: 5}
	_, late := r.send(2)
	r.renew(RenewReply{Lost: []LeaseItem{item}}, 0) // one store is enough
	r.renew(RenewReply{Lost: []LeaseItem{item}}, 1)
	if len(r.lost) != 1 || r.lost[0] != h {
		t.Fatalf("lost %v, want the hold once", r.lost)
	}
	r.reply(2, late, RenewReply{})
	r.renew(RenewReply{}, 0, 1, 2)
	r.until(h, 0)
	r.until(kept, Term(lease))
	again := r.Attach(section, 5)
	r.renew(RenewReply{}, 0, 1, 2)
	r.until(again, 0)
	if !again.Lost() {
		t.Error("the lost epoch was attached again")
	}
	next := r.Attach(section, 6)
	r.renew(RenewReply{}, 0, 1, 2)
	r.until(next, Term(lease))
	// The store repeats itself until the drop arrives; that is not the new hold.
	r.renew(RenewReply{Lost: []LeaseItem{item}}, 0)
	r.until(next, Term(lease))
}

func TestALossIsKnownBeforeTheSendTimeMoves(t *testing.T) {
	r := newRenewal(t, 1, true)
	h, kept := r.Attach(section, 5), r.Attach(seq.SectionRegister(8), 5)
	r.renew(RenewReply{}, 0)
	old := kept.Until()
	r.clock.Advance(100 * time.Millisecond)
	r.cfg.OnLost = func(*Hold) {
		if got := kept.Until(); got != old {
			t.Errorf("until %s when the loss is told, want still %s", got, old)
		}
	}
	r.renew(RenewReply{Lost: []LeaseItem{{Register: h.Register(), Round: h.Round()}}}, 0)
	r.until(kept, Term(lease))
}

func TestALostItemIsDroppedAtTheStoreUntilAnswered(t *testing.T) {
	r := newRenewal(t, 3, true)
	r.Attach(section, 5)
	r.renew(RenewReply{}, 0, 1, 2)
	r.renew(RenewReply{Lost: []LeaseItem{{Register: section, Round: 5}, {Register: section, Round: 3}}}, 0)
	for range 2 { // the first is lost on the way
		if req, _ := r.send(0); len(req.Drop) != 2 || req.Attached != 0 {
			t.Errorf("drop %v of %d attached, want both rounds and 0", req.Drop, req.Attached)
		}
	}
	r.renew(RenewReply{}, 0)
	if req, _ := r.send(0); len(req.Drop) != 0 {
		t.Errorf("drop %v, want none after the answer", req.Drop)
	}
	if req, _ := r.send(1); len(req.Drop) != 1 {
		t.Errorf("drop %v at another store, want the hold", req.Drop)
	}
}

func TestADroppedHoldTravelsUntilAnsweredAndStaysDropped(t *testing.T) {
	r := newRenewal(t, 3, true)
	h := r.Attach(section, 5)
	_, late := r.send(2)
	r.renew(RenewReply{}, 0, 1)
	h.Drop()
	h.Drop()
	r.until(h, 0)
	r.reply(2, late, RenewReply{})
	r.until(h, 0)
	for i := range 3 {
		req, sent := r.send(i)
		if !slices.Equal(req.Drop, []LeaseItem{{Register: section, Round: 5}}) || req.Attached != 0 {
			t.Errorf("store %d: drop %v of %d attached", i, req.Drop, req.Attached)
		}
		r.reply(i, sent, RenewReply{})
		if req, _ := r.send(i); len(req.Drop) != 0 {
			t.Errorf("store %d: drop %v after the answer", i, req.Drop)
		}
	}
	if len(r.lost) != 0 {
		t.Error("a dropped hold was told to be lost")
	}
	if !r.Attach(section, 5).Lost() {
		t.Error("the dropped epoch was attached again")
	}
}

func TestAnUnsentHoldIsDroppedWithoutAWord(t *testing.T) {
	r := newRenewal(t, 3, true)
	r.Attach(section, 5).Drop()
	if req, _ := r.send(0); len(req.Drop)+len(req.Attach) != 0 {
		t.Errorf("attach %v, drop %v, want nothing", req.Attach, req.Drop)
	}
}

func TestARefusedAttachIsNotALease(t *testing.T) {
	r := newRenewal(t, 3, true)
	item := LeaseItem{Register: section, Round: 5}
	h := r.Attach(section, 5)
	r.renew(RenewReply{Refused: []LeaseItem{item}}, 0)
	r.renew(RenewReply{}, 0, 1)
	r.until(h, 0)
	if h.Lost() {
		t.Error("lost at a store that may only have missed the promise")
	}
	if req, _ := r.send(0); len(req.Attach) != 0 || req.Attached != 0 {
		t.Errorf("attach %v of %d at once again", req.Attach, req.Attached)
	}
	r.clock.Advance(lease)
	r.renew(RenewReply{}, 0, 1) // after the step has brought the promise
	r.until(h, Term(lease))
}

func TestAHoldThatCannotReachWStoresIsLost(t *testing.T) {
	r := newRenewal(t, 3, true)
	item := LeaseItem{Register: section, Round: 5}
	h := r.Attach(section, 5)
	r.renew(RenewReply{Refused: []LeaseItem{item}}, 0, 1)
	if len(r.lost) != 1 || !h.Lost() {
		t.Errorf("lost %v after two of three refused", r.lost)
	}
	r.renew(RenewReply{}, 0, 1, 2)
	r.until(h, 0)
}

// Nothing is served without a lease, so no step comes that brings the missed promise: the
// hold must not stay as it is, and keep others out at the one store that has it.
func TestAHoldIsLostIfAStoreThatPromisedItIsAwayAndAnotherRefusesItAgain(t *testing.T) {
	r := newRenewal(t, 3, true)
	item := LeaseItem{Register: section, Round: 5}
	h := r.Attach(section, 5)
	r.renew(RenewReply{Refused: []LeaseItem{item}}, 2)
	r.renew(RenewReply{}, 0, 1)
	r.until(h, Term(lease))
	r.clock.Advance(lease / 2) // store 1 is away from here on
	r.renew(RenewReply{}, 0, 2)
	r.clock.Advance(lease / 2)
	r.renew(RenewReply{}, 0)
	r.renew(RenewReply{Refused: []LeaseItem{item}}, 2)
	if len(r.lost) != 1 || !h.Lost() {
		t.Fatalf("lost %v, want the hold", r.lost)
	}
	if req, _ := r.send(0); len(req.Drop) != 1 || req.Drop[0] != item {
		t.Errorf("drop %v at the store that keeps others out, want the hold", req.Drop)
	}
}

func TestAHoldThatAStoreRefusesAgainStaysWhileWStoresCanKeepIt(t *testing.T) {
	r := newRenewal(t, 3, true)
	item := LeaseItem{Register: section, Round: 5}
	h := r.Attach(section, 5)
	r.renew(RenewReply{Refused: []LeaseItem{item}}, 2)
	for range 4 {
		r.renew(RenewReply{}, 0, 1)
		r.renew(RenewReply{Refused: []LeaseItem{item}}, 2)
		r.until(h, Term(lease))
		r.clock.Advance(lease / 2)
	}
	// Cut off from all but the one that refuses: to others that says nothing yet.
	r.clock.Advance(lease)
	r.renew(RenewReply{Refused: []LeaseItem{item}}, 2)
	r.renew(RenewReply{Refused: []LeaseItem{item}}, 2)
	if h.Lost() {
		t.Error("lost while fewer than W stores are within reach")
	}
}

func TestAStoreThatForgotIsAttachedAgainAndCountsOnlyThen(t *testing.T) {
	for name, reply := range map[string]RenewReply{"reset": {Reset: true}, "restart": {BootCount: 2}} {
		t.Run(name, func(t *testing.T) {
			r := newRenewal(t, 3, true)
			h := r.Attach(section, 5)
			r.renew(RenewReply{}, 0, 1)
			_, sent := r.send(1)
			r.reply(1, sent, reply)
			r.until(h, 0)
			if h.Lost() {
				t.Error("lost")
			}
			req, sent := r.send(1)
			if len(req.Attach) != 1 || req.Attached != 1 {
				t.Errorf("attach %v of %d, want the hold again", req.Attach, req.Attached)
			}
			r.reply(1, sent, RenewReply{BootCount: max(1, reply.BootCount)})
			r.until(h, Term(lease))
		})
	}
}
