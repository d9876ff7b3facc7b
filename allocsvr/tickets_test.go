package allocsvr

import (
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/allocsvr/section/tickets"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

const ticketLife = 5 * time.Second

// inbox is a fleet in virtual time, of one space with tickets.
func inbox(t *testing.T) *fleet {
	return newFleetOn(t, bubble.NewClock(), seq.Space{Name: "user", Sections: 4, Step: 100, Tickets: ticketLife})
}

func (f *fleet) space() *seq.Space { return &f.stores.Mapping.Spaces[0] }

// open opens a ticket for one number of the uid at the node.
func (f *fleet) open(n *node, uid seq.UID) section.Ticket {
	f.t.Helper()
	got, ids := n.Open(f.t.Context(), f.space(), seq.PlainAll(uid), nil, ticketLife)
	if len(got.Faults) > 0 {
		f.t.Fatal(got.Faults[0].Err)
	}
	return section.Ticket{First: got.First[0], ID: ids[0]}
}

func (f *fleet) mark(n *node, uid seq.UID) section.Mark {
	f.t.Helper()
	got, faults := n.Marks(f.t.Context(), f.space(), seq.PlainAll(uid))
	if len(faults) > 0 {
		f.t.Fatal(faults[0].Err)
	}
	return got[0]
}

func TestTicketsGoWithTheirSectionByHand(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := inbox(t)
		a := f.start("a", 1, "")
		f.serving(a)
		time.Sleep(tickets.Span(ticketLife)) // it knows of no owner before
		before := f.open(a, 7)
		if faults := a.End(t.Context(), f.space(), seq.PlainAll(7), []section.Ticket{before}); len(faults) > 0 {
			t.Fatal(faults[0].Err)
		}
		kept := f.open(a, 7)
		dead := f.open(a, 7)
		was := f.mark(a, 7)
		if was != (section.Mark{Value: before.First, Last: dead.First}) {
			t.Fatalf("got %+v before the hand-over", was)
		}
		b := f.start("b", 1, "")
		f.until("both nodes are known", func() bool { return len(a.nodes.View(f.clock.Now()).Live) == 2 })
		f.leave(a)
		f.serving(b)
		if got := f.mark(b, 7); got != was {
			t.Errorf("got %+v after the hand-over, want %+v", got, was)
		}
		if faults := b.End(t.Context(), f.space(), seq.PlainAll(7), []section.Ticket{kept}); len(faults) > 0 {
			t.Error(faults[0].Err)
		}
		if got := f.mark(b, 7); got.Value != kept.First || got.Fence != 0 {
			t.Errorf("got %+v after the Done of a ticket that travelled", got)
		}
		time.Sleep(tickets.Span(ticketLife))
		if got := f.mark(b, 7); got.Value != dead.First || got.Fence != dead.First {
			t.Errorf("got %+v after the last ticket's life", got)
		}
	})
}

func TestAfterACrashMarksAreHeldAndThenBeginAboveEverything(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := inbox(t)
		a := f.start("a", 1, "")
		f.serving(a)
		b := f.start("b", 1, "")
		f.until("both nodes are known", func() bool { return len(b.nodes.View(f.clock.Now()).Live) == 2 })
		time.Sleep(tickets.Span(ticketLife))
		owner, other := a, b
		uid := seq.UID(0)
		for ; a.Section(f.space().SectionOf(uid)).State() != section.Owned; uid += 1 << seq.BlockBits {
		}
		open := f.open(owner, uid)
		killed := f.clock.Now()
		owner.kill()
		f.serving(other)
		promised := f.clock.Now() // or a little before
		m := f.mark(other, uid)
		if m.Unknown == 0 || m.Value != 0 {
			t.Fatalf("got %+v at once", m)
		}
		if end := f.clock.Now() + m.Unknown; end < killed+tickets.Span(ticketLife) || end > promised+tickets.Span(ticketLife) {
			t.Errorf("the mark is held until %v, and the owner was killed at %v", end, killed)
		}
		time.Sleep(m.Unknown)
		if m = f.mark(other, uid); m.Unknown != 0 || m.Value < open.First || m.Fence != m.Value || m.Value != m.Last {
			t.Errorf("got %+v after the hold, want a fence at the mark", m)
		}
		if faults := other.End(t.Context(), f.space(), seq.PlainAll(uid), []section.Ticket{open}); len(faults) == 0 {
			t.Error("a ticket of the dead owner was ended")
		}
	})
}
