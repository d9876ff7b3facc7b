package lab

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Pauses of the watch on the registers. One question is one register of each standby: it
// costs those who keep them next to nothing.
const (
	lookEvery   = 5 * time.Millisecond
	lookTimeout = 500 * time.Millisecond
)

// watch follows the leases of one session from the stores, by one of its sections for
// each standby.
type watch struct {
	places   *registers
	timeline *timeline
	node     string // whose session it is
	session  uint64
	sections []seq.SectionID
	names    func(session uint64) string

	mu    sync.Mutex  // guards the fields below
	seen  [][]sighted // by section and store
	ended bool        // "lease ended" was told
	taken []bool      // by section: "taken over" was told
	since time.Duration
}

// sighted is the last that a store told of a section.
type sighted struct {
	holder uint64
	freeAt time.Duration // when the session's lease ends there; once over, when it did
	told   bool
}

// follow looks until ctx ends. The fault comes after it was called.
func (w *watch) follow(ctx context.Context) {
	w.seen = make([][]sighted, len(w.sections))
	w.taken = make([]bool, len(w.sections))
	for i := range w.seen {
		w.seen[i] = make([]sighted, len(w.places.stores))
	}
	var wg sync.WaitGroup
	for i := range w.places.stores {
		wg.Go(func() {
			for ctx.Err() == nil {
				w.look(ctx, i)
				select {
				case <-ctx.Done():
				case <-time.After(lookEvery):
				}
			}
		})
	}
	wg.Wait()
}

func (w *watch) look(ctx context.Context, store int) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	req := quorum.ReadRequest{Ref: w.places.refs[store], Session: 1}
	for _, id := range w.sections {
		req.Registers = append(req.Registers, seq.SectionRegister(id))
	}
	sent := w.timeline.clock.Now()
	reply, err := w.places.stores[store].Read(ctx, req)
	if err != nil || len(reply.Results) != len(w.sections) {
		return
	}
	now := w.timeline.clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, r := range reply.Results {
		s, holder := &w.seen[i][store], uint64(r.Holder)
		if holder == w.session {
			*s = sighted{holder: holder, freeAt: sent + r.Remaining, told: true}
			continue
		}
		if s.holder == w.session { // it ended between the two looks, or was released
			s.freeAt = min(s.freeAt, now)
		}
		s.holder, s.told = holder, true
	}
	w.tell(now)
}

// tell notes what a quorum of stores has come to. Needs w.mu.
func (w *watch) tell(now time.Duration) {
	for i, id := range w.sections {
		var free []time.Duration
		holders := map[uint64]int{}
		for _, s := range w.seen[i] {
			if s.told && s.holder != w.session {
				free = append(free, s.freeAt)
				holders[s.holder]++
			}
		}
		if len(free) < w.places.w {
			continue
		}
		if !w.ended {
			slices.Sort(free)
			w.ended = true
			w.timeline.add(max(free[w.places.w-1], w.since), eventLeaseEnd, w.node, "%s", w.places.where)
		}
		for holder, n := range holders {
			if holder != 0 && n >= w.places.w && !w.taken[i] {
				w.taken[i] = true
				w.timeline.add(now, eventTaken, w.node, "by %s (section %d)", w.names(holder), id)
			}
		}
	}
}
