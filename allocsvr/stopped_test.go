package allocsvr

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/owner"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// stopping is a clock that can stop, like the clock of a paused virtual machine.
type stopping struct {
	clock.Clock
	at atomic.Int64 // the time at which the clock stopped; zero while it runs
}

func (s *stopping) Now() time.Duration {
	if at := s.at.Load(); at != 0 {
		return time.Duration(at)
	}
	return s.Clock.Now()
}

// deaf are stores that answer no renewals while it says so.
type deaf struct {
	quorum.Store
	now *atomic.Bool
}

func (d deaf) Renew(ctx context.Context, req quorum.RenewRequest) (quorum.RenewReply, error) {
	if d.now.Load() {
		<-ctx.Done()
		return quorum.RenewReply{}, ctx.Err()
	}
	return d.Store.Renew(ctx, req)
}

// take takes a number at one node. It returns false if the node gives none.
func (d *division) take(n *node, uid seq.UID) bool {
	start := d.fleets[0].clock.Now()
	ctx, cancel := context.WithTimeout(d.t.Context(), 300*time.Millisecond)
	defer cancel()
	got := n.Take(ctx, &d.fleets[0].stores.Mapping.Spaces[0], seq.PlainAll(uid), nil)
	if len(got.Faults) > 0 {
		return false
	}
	d.calls.Add(history.Call{Key: history.Key{UID: uint64(uid)}, First: got.First[0], Last: got.Last[0], Start: start, End: d.fleets[0].clock.Now()})
	return true
}

// A node whose clock stands still believes that it has the lease of a section that another took
// over, and handed out more of. Its counters are not those that go to the other Set.
func TestASectionMovesWithTheCountersOfItsOwnerWhateverAClockSays(t *testing.T) {
	d := newDivision(t, 2, user16())
	f := d.fleets[0]
	const uid = seq.UID(0)
	id := f.stores.Mapping.Spaces[0].SectionOf(uid)
	owns := func(n *node) bool { v, ok := n.Section(id).View(); return ok && v.Owned && v.Until > 0 }
	d.next(uid)
	// The nodes start again, with clocks that can stop.
	clocks, silent, real := map[string]*stopping{}, map[string]*atomic.Bool{}, f.clock
	f.renews = func(node string, s quorum.Store) quorum.Store { return deaf{s, silent[node]} }
	for _, n := range f.all() {
		n.kill()
	}
	for k := range nodesOfASet {
		name := d.addr(0, k)
		clocks[name], silent[name] = &stopping{Clock: real}, &atomic.Bool{}
		f.clock = clocks[name]
		f.start(name, nodesOfASet, "")
	}
	f.clock, f.renews = real, nil
	var was, other *node
	d.until("the section is where the table has it", func() bool {
		was, other = f.at(d.addr(0, 0)), f.at(d.addr(0, 1))
		if owns(other) {
			was, other = other, was
		}
		to, ok := was.routes.Table().Owner(id)
		return ok && owns(was) && to.Name == was.name
	})
	d.next(uid)
	m := d.begin(1, sets.Range{First: id, Sections: 1})
	m.Before = func(step string) error {
		if step != "seal" { // before it, the route table names the node
			return nil
		}
		clocks[was.name].at.Store(int64(real.Now()))
		silent[was.name].Store(true)
		d.until("the other node takes the section over", func() bool { return owns(other) })
		for taken := 0; taken < 100; {
			if d.take(other, uid) {
				taken++
			}
		}
		return nil
	}
	d.finish(m)
	d.next(uid) // the history shows that it rises
	silent[was.name].Store(false)
	clocks[was.name].at.Store(0)
}

// An answer has room for the counters of some sections of a batch: these go on at the other Set, and
// then the others. Those that are too large for any go on from their ceilings.
func TestSectionsMoveWhateverTheSizeOfTheirCounters(t *testing.T) {
	for name, row := range map[string]struct {
		room owner.Room
		gap  bool
	}{
		"some fit":      {owner.Room{Message: 60, Section: 1 << 20}, false},
		"each alone":    {owner.Room{Message: 1, Section: 1 << 20}, false},
		"none fits":     {owner.Room{Message: 1, Section: 1}, true},
		"as it is made": {owner.Room{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDivision(t, 2, user16())
			for _, n := range d.fleets[0].all() {
				n.room.Store(&row.room)
			}
			const uids = 40
			for uid := range seq.UID(uids) {
				d.next(uid)
			}
			d.finish(d.begin(1, all16))
			for uid := range seq.UID(uids) {
				if got := d.next(uid); (got != 2) != row.gap {
					t.Errorf("uid %d got %d", uid, got)
				}
			}
		})
	}
}
