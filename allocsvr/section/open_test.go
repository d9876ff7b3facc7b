package section

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/ownership/ownershiptest"
	"github.com/seqsvr/seqsvr/allocsvr/section/tickets"
	"github.com/seqsvr/seqsvr/internal/base/counters"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

const ticketLife = 400 * time.Millisecond

// newInbox owns a section with tickets, as after a hand-over of which everything is known.
func newInbox(t *testing.T, mode seq.Mode) *owned {
	t.Helper()
	o := newOwnedOf(t, seq.Space{Name: "inbox", Sections: 1, Step: ownerStep, Mode: mode, Tickets: ticketLife})
	o.clock.Advance(tickets.Span(ticketLife))
	o.hold.End = o.clock.Now() + ownerLease
	o.regs.OnProbe = func() quorum.Outcome { return quorum.Outcome{State: quorum.Won, Promised: o.epoch} }
	return o
}

// open opens a ticket for n numbers of uid 1.
func (o *owned) open(n uint32) (first, id uint64) {
	o.t.Helper()
	got, ids := o.Open(o.t.Context(), o.c.space, seq.PlainAll(1), []uint32{n}, nil, ticketLife)
	if len(got.Faults) > 0 || ids[0] == 0 || got.Last[0]-got.First[0]+1 != uint64(n) {
		o.t.Fatalf("open: %+v, ids %v", got, ids)
	}
	return got.First[0], ids[0]
}

// done ends a ticket of uid 1.
func (o *owned) done(first, id uint64) error {
	ctx, cancel := context.WithCancel(o.t.Context())
	cancel()
	if faults := o.End(ctx, o.c.space, seq.PlainAll(1), []Ticket{{First: first, ID: id}}); len(faults) > 0 {
		return faults[0].Err
	}
	return nil
}

// mark reads the mark of uid 1; a wait ends at once.
func (o *owned) mark() (Mark, error) {
	ctx, cancel := context.WithCancel(o.t.Context())
	cancel()
	got, faults := o.Marks(ctx, o.c.space, seq.PlainAll(1))
	if len(faults) > 0 {
		return got[0], faults[0].Err
	}
	return got[0], nil
}

func (o *owned) wantMark(what string, want Mark) {
	o.t.Helper()
	if got, err := o.mark(); err != nil || got != want {
		o.t.Errorf("%s: got %+v, %v, want %+v", what, got, err, want)
	}
}

func TestAMarkStaysBelowOpenNumbersAndPassesAllOthers(t *testing.T) {
	for _, mode := range []seq.Mode{seq.Ordered, seq.Strict} {
		o := newInbox(t, mode)
		if mode == seq.Ordered {
			o.must(3)
			o.wantMark("numbers without tickets", Mark{Value: 3, Last: 3})
		} else {
			o.open(3)
			o.clock.Advance(tickets.Span(ticketLife))
			o.hold.End = o.clock.Now() + ownerLease
			o.wantMark("a ticket that its time ended", Mark{Value: 3, Last: 3, Fence: 3})
		}
		fence := uint64(0)
		if mode == seq.Strict {
			fence = 3
		}
		first, id := o.open(2)
		last, lastID := o.open(1)
		o.wantMark("two tickets", Mark{Value: 3, Last: 6, Fence: fence})
		if err := o.done(last, lastID); err != nil {
			t.Error(err)
		}
		if err := o.done(first, lastID); !errors.Is(err, seq.ErrTicketEnded) {
			t.Errorf("another's ticket: got %v, want ErrTicketEnded", err)
		}
		o.wantMark("the earlier one is open", Mark{Value: 3, Last: 6, Fence: fence})
		if err := o.done(first, id); err != nil {
			t.Error(err)
		}
		o.wantMark("none is open", Mark{Value: 6, Last: 6, Fence: fence})
	}
}

func TestASealedOwnerAnswersNoMarkAndItsSuccessorGoesOn(t *testing.T) {
	o := newInbox(t, seq.Ordered)
	o.must(3)
	first, id := o.open(2)
	o.clock.Advance(ticketLife / 2)
	_, table, _ := o.c.Seal()
	body := o.Tickets(0)
	o.clock.Advance(2 * tickets.Span(ticketLife)) // its copies of the tickets would have ended
	o.hold.End = o.clock.Now() + ownerLease
	if got, err := o.mark(); !errors.Is(err, context.Canceled) {
		t.Errorf("sealed: got %+v, %v, want it to wait", got, err)
	}
	if err := o.done(first, id); !errors.Is(err, context.Canceled) {
		t.Errorf("sealed: got %v, want Done to wait", err)
	}
	o.c.Drop(o.epoch, "")
	if n := o.Table.tickets.Open.Load(); n != 0 {
		t.Errorf("%d tickets are counted after the section has gone", n)
	}
	o.c.Begin()
	o.Promised(0, body)
	o.c.Expect(o.epoch)
	o.hold = &ownershiptest.Lease{End: o.clock.Now() + ownerLease}
	if ok, err := o.Install(0, o.epoch, table, ownerStep, o.hold); !ok || err != nil {
		t.Fatal(ok, err)
	}
	o.wantMark("the successor", Mark{Value: 3, Last: 5})
	left := tickets.Span(ticketLife) - ticketLife/2
	o.clock.Advance(left - time.Millisecond)
	o.wantMark("the successor, before the end", Mark{Value: 3, Last: 5})
	o.clock.Advance(time.Millisecond)
	o.hold.End = o.clock.Now() + ownerLease
	o.wantMark("the successor, at the end", Mark{Value: 5, Last: 5, Fence: 5})
}

func TestAnOwnerWithoutTheTicketsOfTheOneBeforeHoldsItsMarksFromThePromiseOn(t *testing.T) {
	for name, promised := range map[string]func(o *owned){
		"a crash":         func(o *owned) { o.Promised(0, nil) },
		"corrupt tickets": func(o *owned) { o.Promised(0, []byte("tickets")) },
	} {
		o := newInbox(t, seq.Ordered)
		o.open(2)
		o.c.Drop(o.epoch, "")
		o.c.Begin()
		promised(o)
		o.c.Expect(o.epoch)
		o.clock.Advance(ticketLife / 4) // the promise is older than the service
		o.hold = &ownershiptest.Lease{End: o.clock.Now() + ownerLease}
		if ok, err := o.Install(0, o.epoch, counters.New(50), 50+ownerStep, o.hold); !ok || err != nil {
			t.Fatal(ok, err)
		}
		first, id := o.open(1)
		hold := tickets.Span(ticketLife) - ticketLife/4
		o.wantMark(name, Mark{Last: 51, Unknown: hold})
		if err := o.done(first, id); err != nil {
			t.Error(err)
		}
		o.clock.Advance(hold)
		o.wantMark(name+", after the hold", Mark{Value: 51, Last: 51, Fence: 50})
	}
}

func TestASectionThatWasInstalledWithoutAPromiseHoldsItsMarks(t *testing.T) {
	o := newOwnedOf(t, seq.Space{Name: "inbox", Sections: 1, Step: ownerStep, Tickets: ticketLife})
	o.wantMark("at once", Mark{Unknown: tickets.Span(ticketLife)})
}

func TestAnOpenThatFailsLeavesNoTicket(t *testing.T) {
	o := newInbox(t, seq.Strict)
	o.regs.OnProbe = func() quorum.Outcome { return quorum.Outcome{State: quorum.Unknown, Err: seq.ErrNoQuorum} }
	got, ids := o.Open(t.Context(), o.c.space, seq.PlainAll(1), nil, nil, ticketLife)
	if len(got.Faults) != 1 || !errors.Is(got.Faults[0].Err, seq.ErrNoQuorum) || ids[0] != 0 {
		t.Errorf("got %+v, ids %v", got, ids)
	}
	o.regs.OnProbe = func() quorum.Outcome { return quorum.Outcome{State: quorum.Won, Promised: o.epoch} }
	o.wantMark("the quorum did not confirm it", Mark{Value: 1, Last: 1})

	o = newInbox(t, seq.Ordered)
	o.clock.Advance(ownerLease)
	if got, _ := o.Open(t.Context(), o.c.space, seq.PlainAll(1), nil, nil, ticketLife); len(got.Faults) != 1 || !errors.Is(got.Faults[0].Err, seq.ErrNoLease) {
		t.Errorf("without a lease: got %+v", got)
	}
	if _, err := o.mark(); !errors.Is(err, seq.ErrNoLease) {
		t.Errorf("a mark without a lease: got %v", err)
	}
	o.hold.End = o.clock.Now() + ownerLease
	o.Table.tickets.Open.Store(tickets.MostOpen)
	if got, _ := o.Open(t.Context(), o.c.space, seq.PlainAll(1), nil, nil, ticketLife); len(got.Faults) != 1 || !errors.Is(got.Faults[0].Err, seq.ErrTickets) {
		t.Errorf("too many: got %+v", got)
	}
	if n, _ := o.c.table.Get(1); n != 0 {
		t.Errorf("%d numbers were taken for tickets that were refused", n)
	}
}

func TestANodeTellsWhatItKeepsForReaders(t *testing.T) {
	o := newInbox(t, "")
	of := func() SpaceReading { return o.Reading().Spaces[0] }
	o.sweep()
	if got := o.Reading(); got.Tickets != 0 || of() != (SpaceReading{Space: o.c.space}) {
		t.Errorf("nothing is open: %+v", got)
	}
	o.watch1()
	first, id := o.open(3)
	o.clock.Advance(100 * time.Millisecond)
	o.open(1)
	o.clock.Advance(50 * time.Millisecond)
	o.sweep()
	if got := of(); got.Open != 2 || got.Oldest != 150*time.Millisecond || got.Watched != 1 || got.Expired != 0 {
		t.Errorf("two are open: %+v", got)
	}
	if err := o.done(first, id); err != nil {
		t.Fatal(err)
	}
	o.sweep()
	if got := of(); got.Open != 1 || got.Oldest != 50*time.Millisecond {
		t.Errorf("one is open: %+v", got)
	}
	o.clock.Advance(tickets.Span(ticketLife))
	o.sweep()
	if got := o.Reading(); got.Tickets != 0 || got.Opened != 2 || got.Expired != 1 || got.Watches != 1 || got.Keys != 1 || got.Spaces[0].Expired != 1 || got.Spaces[0].Open != 0 || got.Spaces[0].Oldest != 0 {
		t.Errorf("time ended one: %+v", got)
	}
	for range mostSamples + 1 {
		o.clock.Advance(sampleEvery)
		o.sweep()
	}
	if got := o.Reading(); got.Lately != (mostSamples-1)*sampleEvery || got.Opened != 0 || got.Expired != 0 || got.Spaces[0].Expired != 0 {
		t.Errorf("it is long ago: %+v", got)
	}
}
