package sim

import (
	"slices"
	"strings"
	"sync"

	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/seq"
)

// promises checks what callers were given: numbers in their order (M), and IDs that nobody
// else has (U).
type promises struct {
	w       *world
	history history.Recorder

	mu        sync.Mutex       // guards all below
	ids       map[idKey]string // snowflake IDs handed out, and to whom
	floors    map[history.Key]uint64
	stretches map[seq.Register][]stretch // of worker ids, in the order of time
}

// reads judges what a caller was told that a key stands at. Only strict spaces stay in
// order when clocks lie.
func (ps *promises) reads(key history.Key, floor, got uint64) {
	if got < floor && ps.ordered(key) {
		ps.w.check.broken("M", "current of %v is %d, %d was handed out before", key, got, floor)
	}
}

// raisedTo takes in that a key was raised.
func (ps *promises) raisedTo(key history.Key, floor, got uint64) {
	if got < floor {
		ps.w.check.broken("M", "%v raised to %d stands at %d", key, floor, got)
	}
	ps.lift(key, floor)
}

// floor is what the next call of a key must be above.
func (ps *promises) floor(key history.Key) uint64 {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.floors[key]
}

func (ps *promises) lift(key history.Key, to uint64) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.floors[key] = max(ps.floors[key], to)
}

// ordered says whether M is promised for a key in this run: with clocks beyond rho only
// where no clock takes part.
func (ps *promises) ordered(key history.Key) bool {
	return !ps.w.opts.Beyond || strings.HasPrefix(key.Space, "strict") || key.Space == exactSpace
}

// idKey is an ID of all namespaces.
type idKey struct {
	space *idSpace
	id    uint64
}

// unique checks that no ID was handed out before.
func (ps *promises) unique(s *idSpace, id uint64, from string) {
	ps.mu.Lock()
	key := idKey{s, id}
	before, twice := ps.ids[key]
	ps.ids[key] = from
	ps.mu.Unlock()
	if twice {
		ps.w.check.broken("U", "ID %d of %s, worker %d at %d, from %s was handed out by %s", id, s.name, s.workerOf(id), s.markOf(id), from, before)
	}
}

// stretch is a part of a worker's time in which one process made IDs.
type stretch struct {
	from, to uint64 // moments of IDs
	by       any    // *allocProc, or the *caller that was lent it
}

// alone checks that IDs of one worker id come from one process in each stretch of its
// time: a holder issues only above the mark that it found.
func (ps *promises) alone(s *idSpace, id uint64, by any) {
	ps.mu.Lock()
	other := ps.stretch(s.register(s.workerOf(id)), s.markOf(id), by)
	ps.mu.Unlock()
	if other != nil {
		ps.w.check.broken("U", "%s makes an ID of worker %d of %s at %d, within what %s made IDs of", makerOf(by), s.workerOf(id), s.name, s.markOf(id), makerOf(other))
	}
}

func makerOf(by any) string {
	switch by := by.(type) {
	case *allocProc:
		return "session " + by.session.String()
	case *caller:
		return by.h.name
	}
	return "nobody"
}

// stretch takes a moment in; not nil if it is another's. Needs ps.mu.
func (ps *promises) stretch(r seq.Register, at uint64, by any) any {
	all := ps.stretches[r]
	i, _ := slices.BinarySearchFunc(all, at, func(s stretch, at uint64) int {
		if s.to < at {
			return -1
		}
		return 1
	})
	switch {
	case i < len(all) && all[i].from <= at:
		if all[i].by != by {
			return all[i].by
		}
	case i > 0 && all[i-1].by == by:
		all[i-1].to = at
	case i < len(all) && all[i].by == by:
		all[i].from = at
	default:
		ps.stretches[r] = slices.Insert(all, i, stretch{at, at, by})
	}
	return nil
}
