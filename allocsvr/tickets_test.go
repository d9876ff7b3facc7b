package allocsvr

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/allocsvr/section/tickets"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

const ticketLife = 5 * time.Second

// inbox is a fleet in virtual time, of one space with tickets.
func inbox(t *testing.T, mode seq.Mode) *fleet {
	return newFleetOn(t, bubble.NewClock(), seq.Space{Name: "user", Sections: 4, Step: 100, Tickets: ticketLife, Mode: mode})
}

// inEach runs a test in virtual time for each kind of space that gives tickets.
func inEach(t *testing.T, do func(t *testing.T, f *fleet)) {
	for _, mode := range []seq.Mode{seq.Ordered, seq.Strict, seq.Exact} {
		t.Run(string(mode), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) { do(t, inbox(t, mode)) })
		})
	}
}

func (f *fleet) space() *seq.Space { return &f.stores.Mapping.Spaces[0] }

// open opens a ticket for one number of the uid at the node.
func (f *fleet) open(n *node, uid seq.UID) section.Ticket {
	f.t.Helper()
	got, ids := n.Open(f.t.Context(), f.space(), seq.PlainAll(uid), nil, nil, ticketLife)
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
	inEach(t, func(t *testing.T, f *fleet) {
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
	inEach(t, func(t *testing.T, f *fleet) {
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

// again opens a ticket for one number of the uid at the node, for a request.
func (f *fleet) again(n *node, uid seq.UID, id string) (section.Ticket, error) {
	f.t.Helper()
	got, ids := n.Open(f.t.Context(), f.space(), seq.PlainAll(uid), nil, []section.Request{{ID: id}}, ticketLife)
	if len(got.Faults) > 0 {
		return section.Ticket{}, got.Faults[0].Err
	}
	return section.Ticket{First: got.First[0], ID: ids[0]}, nil
}

func TestARepeatedRequestHasATicketOnlyAboveTheMark(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := inbox(t, seq.Exact)
		a := f.start("a", 1, "")
		f.serving(a)
		time.Sleep(tickets.Span(ticketLife))
		want := func(n *node, id string, want section.Ticket) {
			t.Helper()
			if got, err := f.again(n, 7, id); err != nil || got != want {
				t.Errorf("request %q: got %+v, %v, want %+v", id, got, err, want)
			}
		}
		closed := func(n *node, id string) {
			t.Helper()
			if got, err := f.again(n, 7, id); !errors.Is(err, seq.ErrTicketEnded) {
				t.Errorf("request %q: got %+v, %v, want it closed", id, got, err)
			}
		}
		end := func(n *node, ticket section.Ticket) {
			t.Helper()
			if faults := n.End(t.Context(), f.space(), seq.PlainAll(7), []section.Ticket{ticket}); len(faults) > 0 {
				t.Error(faults[0].Err)
			}
		}
		first, err := f.again(a, 7, "first")
		if err != nil {
			t.Fatal(err)
		}
		second, err := f.again(a, 7, "second")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(ticketLife / 2)
		want(a, "first", first) // for another life
		time.Sleep(ticketLife * 3 / 4)
		if got := f.mark(a, 7); got.Value != first.First-1 || got.Last != second.First {
			t.Errorf("got %+v below an open ticket", got)
		}
		reopened, err := f.again(a, 7, "second") // its time has passed, and the mark has not passed it
		if err != nil || reopened.First != second.First || reopened.ID == second.ID {
			t.Errorf("got %+v, %v, want another ticket of %d", reopened, err, second.First)
		}
		end(a, first)
		closed(a, "first")
		if got := f.mark(a, 7); got.Value != first.First {
			t.Errorf("got %+v below the second ticket", got)
		}
		b := f.start("b", 1, "")
		f.until("both nodes are known", func() bool { return len(a.nodes.View(f.clock.Now()).Live) == 2 })
		f.leave(a)
		f.serving(b)
		want(b, "second", reopened)
		closed(b, "first")
		end(b, reopened)
		if got := f.mark(b, 7); got.Value != second.First || got.Fence != second.First {
			t.Errorf("got %+v, want all read, with the fence at the number whose time had passed", got)
		}
		closed(b, "second")
		for _, store := range f.stores.Stores[1:] {
			store.SetDown(true)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		got, ids := b.Open(ctx, f.space(), seq.PlainAll(7), nil, []section.Request{{ID: "third"}}, ticketLife)
		cancel()
		if len(got.Faults) != 1 || ids[0] != 0 {
			t.Fatalf("got %+v without a quorum", got)
		}
		for _, store := range f.stores.Stores[1:] {
			store.SetDown(false)
		}
		third, err := f.again(b, 7, "third") // whose first answer was lost
		if err != nil || third.First != second.First+1 {
			t.Fatalf("got %+v, %v", third, err)
		}
		b.kill()
		c := f.start("c", 1, "")
		f.serving(c)
		closed(c, "third") // its owner has died, and marks may have passed it
		fourth, err := f.again(c, 7, "fourth")
		if err != nil || fourth.First != third.First+1 {
			t.Errorf("got %+v, %v after the crash", fourth, err)
		}
		want(c, "fourth", fourth)
	})
}
