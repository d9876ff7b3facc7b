package section

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/ownership/ownershiptest"
	"github.com/seqsvr/seqsvr/allocsvr/section/tickets"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// watch1 watches uid 1 under the name 11.
func (o *owned) watch1() *Watch {
	o.t.Helper()
	w := o.Watch()
	o.t.Cleanup(w.Close)
	if faults := w.Add(o.c.space, seq.PlainAll(1), 11); len(faults) > 0 {
		o.t.Fatal(faults[0].Err)
	}
	return w
}

// next are the news now; a wait ends at once.
func next(w *Watch) []News {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return w.Next(ctx, 100)
}

// wantNews wants one piece of news, of uid 1.
func (o *owned) wantNews(w *Watch, what string, want Mark) {
	o.t.Helper()
	got := next(w)
	if len(got) != 1 || got[0].ID != 11 || got[0].Err != nil || got[0].Mark != want {
		o.t.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}

func (o *owned) wantNothing(w *Watch, what string) {
	o.t.Helper()
	if got := next(w); len(got) != 0 {
		o.t.Errorf("%s: got %+v, want nothing", what, got)
	}
}

func TestAWatchTellsThePresentAndThenWhatChanges(t *testing.T) {
	o := newOwned(t)
	o.must(3)
	w := o.watch1()
	o.wantNews(w, "the present", Mark{Value: 3, Last: 3})
	o.wantNothing(w, "no change")
	o.must(1)
	o.must(1)
	o.wantNews(w, "two takes", Mark{Value: 5, Last: 5})
	o.Begin(o.c.space, seq.PlainAll(2), nil)
	o.wantNothing(w, "another key")
	if _, err := o.Raise(t.Context(), o.c.space, seq.Plain(1), 9, Reach{}); err != nil {
		t.Fatal(err)
	}
	o.wantNews(w, "a raise", Mark{Value: 9, Last: 9})
	if values, faults := o.RaiseAll(t.Context(), o.c.space, seq.PlainAll(1), []uint64{12}, 0); len(faults) > 0 || values[0] != 12 {
		t.Fatal(faults)
	}
	o.wantNews(w, "a raise of many", Mark{Value: 12, Last: 12})
	if _, err := o.RaiseSection(t.Context(), 0, 20); err != nil {
		t.Fatal(err)
	}
	o.wantNews(w, "a raise of the section", Mark{Value: 20, Last: 20})
	w.Remove(o.c.space, seq.PlainAll(1))
	o.must(1)
	o.wantNothing(w, "a key that is not watched any more")
	if o.c.watched || o.c.watch != nil || len(o.watches.in) != 0 {
		t.Error("the section keeps something of a watch that is over")
	}
}

func TestAWatchTellsMarks(t *testing.T) {
	for _, mode := range []seq.Mode{seq.Ordered, seq.Strict} {
		o := newInbox(t, mode)
		w := o.watch1()
		o.wantNews(w, "the present", Mark{})
		first, id := o.open(2)
		o.wantNews(w, "open", Mark{Last: 2})
		if err := o.done(first, id); err != nil {
			t.Fatal(err)
		}
		o.wantNews(w, "done", Mark{Value: 2, Last: 2})
		o.open(1)
		o.wantNews(w, "open again", Mark{Value: 2, Last: 3})
		o.clock.Advance(tickets.Span(ticketLife))
		o.hold.End = o.clock.Now() + ownerLease
		o.wantNothing(w, "before the ticket is looked at")
		o.c.mu.Lock()
		o.c.book.Expire(o.clock.Now())
		o.c.mu.Unlock()
		o.wantNews(w, "its time ended", Mark{Value: 3, Last: 3, Fence: 3})
	}
}

func TestAWatchTellsWhenAMarkBecomesKnown(t *testing.T) {
	o := newOwnedOf(t, seq.Space{Name: "inbox", Sections: 1, Step: ownerStep, Tickets: ticketLife})
	w := o.watch1()
	o.wantNews(w, "a new owner", Mark{Unknown: tickets.Span(ticketLife)})
	o.tick()
	o.wantNothing(w, "not known yet")
	o.clock.Advance(tickets.Span(ticketLife))
	o.hold.End = o.clock.Now() + ownerLease
	o.tick()
	o.wantNews(w, "known", Mark{})
	o.tick()
	o.wantNothing(w, "told")
}

func TestTheWatchersOfASectionThatGoesAreTold(t *testing.T) {
	for name, goes := range map[string]func(o *owned){
		"handed over":  func(o *owned) { o.c.Seal(); o.c.Drop(o.epoch, "b:1") },
		"lost":         func(o *owned) { o.Lose(0, o.epoch) },
		"lease ended":  func(o *owned) { o.clock.Advance(2 * ownerLease); o.tick() },
		"taken and on": func(o *owned) { o.Lose(0, o.epoch); o.must2() },
	} {
		o := newOwned(t)
		w := o.watch1()
		next(w)
		goes(o)
		got := next(w)
		if name == "taken and on" { // and back before the watcher looked: the present is told
			if len(got) != 1 || got[0].Err != nil {
				t.Errorf("%s: got %+v", name, got)
			}
			continue
		}
		if len(got) != 1 || got[0].ID != 11 || !errors.Is(got[0].Err, seq.ErrNotOwner) && !errors.Is(got[0].Err, seq.ErrNoLease) {
			t.Errorf("%s: got %+v, want the news that it went", name, got)
		}
		if w.Keys() != 0 || o.c.watched {
			t.Errorf("%s: the key is still watched", name)
		}
	}
}

// must2 owns the section again.
func (o *owned) must2() {
	o.epoch.Round++
	o.own(ownerStep, 2*ownerStep)
}

func TestAWatchOfASectionOnItsWayIsToldWhenItServes(t *testing.T) {
	o := newOwned(t)
	o.Lose(0, o.epoch)
	w := o.Watch()
	defer w.Close()
	if faults := w.Add(o.c.space, seq.PlainAll(1), 11); len(faults) != 1 || !errors.Is(faults[0].Err, seq.ErrNotOwner) || w.Keys() != 0 {
		t.Fatalf("a section that is not here: got %v", faults)
	}
	o.c.Begin()
	if faults := w.Add(o.c.space, seq.PlainAll(1), 11); len(faults) > 0 {
		t.Fatal(faults)
	}
	o.wantNothing(w, "on its way")
	o.epoch.Round++
	o.own(7, ownerStep)
	o.wantNews(w, "it serves", Mark{Value: 7, Last: 7})
	o.c.Seal()
	o.wantNothing(w, "sealed")
	o.c.Drop(o.epoch, "")
	if got := next(w); len(got) != 1 || !errors.Is(got[0].Err, seq.ErrNotOwner) {
		t.Errorf("got %+v", got)
	}
}

// failing is a Guide of a node that serves nothing now.
type failing struct{ alone }

func (failing) FailFast() error { return seq.ErrNoQuorum }

func TestTheWatchersOfASectionThatDoesNotArriveAreTold(t *testing.T) {
	o := newOwned(t)
	w := o.watch1()
	next(w)
	o.c.Seal()
	o.guide = failing{}
	o.tick()
	if got := next(w); len(got) != 1 || !errors.Is(got[0].Err, seq.ErrNoQuorum) {
		t.Errorf("got %+v, want %v", got, seq.ErrNoQuorum)
	}
}

func TestAStrictWatchTellsNothingUnderAnEpochThatIsOver(t *testing.T) {
	o := newInbox(t, seq.Strict)
	w := o.watch1()
	next(w)
	o.open(1)
	over := seq.Epoch{Round: o.epoch.Round + 1, Session: otherSession}
	o.regs.OnProbe = func() quorum.Outcome { return quorum.Outcome{State: quorum.Won, Promised: over} }
	got := w.Next(t.Context(), 10)
	if len(got) != 1 || got[0].Err == nil || got[0].Mark != (Mark{}) {
		t.Errorf("got %+v, want an error", got)
	}
	o.wantNothing(w, "told")
	if w.Keys() != 0 || o.c.State() != Absent {
		t.Errorf("%d keys are watched, the section is %v", w.Keys(), o.c.State())
	}
}

// Takes, hand-overs and watchers at once: each watcher's last news are the last number, and none went back.
func TestNoWatcherMissesTheLastNumberOfAnyKey(t *testing.T) {
	const uids = 20
	o := ownedOfAll(t, 2)
	space := o.c.space
	o.losses = func() uint64 { return 0 }
	var takers, watchers sync.WaitGroup
	over := make(chan struct{})
	keys := make([]seq.UID, uids)
	for i := range keys {
		keys[i] = seq.UID(i * 1_000_003)
	}
	for range 3 {
		watchers.Go(func() {
			w := o.Watch()
			defer w.Close()
			told := map[uint32]uint64{}
			look := func() {
				for _, one := range w.Next(context.Background(), 1+rand.IntN(uids)) {
					if one.Err != nil {
						i := int(one.ID)
						for w.Add(space, seq.PlainAll(keys[i]), one.ID) != nil { // until it is owned again
							time.Sleep(time.Microsecond)
						}
						continue
					}
					if one.Mark.Last < told[one.ID] {
						t.Errorf("uid %d went from %d to %d", one.ID, told[one.ID], one.Mark.Last)
					}
					told[one.ID] = one.Mark.Last
				}
			}
			for w.Add(space, seq.PlainAll(keys...), 0) != nil {
				time.Sleep(time.Microsecond)
			}
			for running := true; running; {
				select {
				case <-over:
					running = false
				case <-w.Changed():
					look()
				}
			}
			for range 3 * uids {
				look()
			}
			now, faults := o.Current(context.Background(), space, seq.PlainAll(keys...))
			if len(faults) > 0 {
				t.Error(faults[0].Err)
				return
			}
			for i := range keys {
				if told[uint32(i)] != now[i].Value {
					t.Errorf("uid %d: told %d, it is %d", i, told[uint32(i)], now[i].Value)
				}
			}
		})
	}
	for range 2 {
		takers.Go(func() {
			for range 3000 {
				k := o.Begin(space, seq.PlainAll(keys[rand.IntN(uids)]), nil)
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				k.Settle(ctx) // a section that is away refuses it
			}
		})
	}
	takers.Go(func() {
		for i := range 200 {
			id := seq.SectionID(i % 2)
			c := o.Section(id)
			epoch, table, ok := c.Seal()
			if !ok {
				t.Error("not owned")
				return
			}
			c.Drop(epoch, "")
			c.Begin()
			epoch.Round++
			c.Expect(epoch)
			hold := &ownershiptest.Lease{End: o.clock.Now() + ownerLease}
			if i%3 == 0 {
				c.Abandon("")
				c.Begin()
				c.Expect(epoch)
			}
			if ok, err := o.Install(id, epoch, table, uint64(seq.MaxSeq), hold); !ok || err != nil {
				t.Errorf("install: %v, %v", ok, err)
				return
			}
		}
	})
	takers.Wait()
	close(over)
	watchers.Wait()
	if n := o.watches.Keys.Load(); n != 0 {
		t.Errorf("%d keys count after all watches", n)
	}
	if len(o.watches.in) != 0 {
		t.Errorf("%d sections are watched after all watches", len(o.watches.in))
	}
}
