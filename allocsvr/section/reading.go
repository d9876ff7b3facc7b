package section

import (
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/section/tickets"
	"github.com/seqsvr/seqsvr/seq"
)

// Expired tickets are told for the time since the oldest sample: up to 5 minutes.
const (
	sampleEvery = 15 * time.Second
	mostSamples = 20
)

// MostTickets is the largest number of open tickets of a node.
const MostTickets = tickets.MostOpen

// Reading is what a node keeps for readers, as it was up to expireEvery ago.
type Reading struct {
	Tickets, Watches, Keys int            // open tickets; watches, and their keys, each counted once a watch
	Lately                 time.Duration  // the time that opened and expired are counted for
	Opened, Expired        uint64         // tickets, lately
	Spaces                 []SpaceReading // in the mapping's order
}

// SpaceReading is the part of one space.
type SpaceReading struct {
	Space *seq.Space
	tickets.Census
	Expired uint64 // lately
	Watched int    // keys
}

// Kept is what an owner keeps for the readers of a UID.
type Kept struct {
	Tickets int           // open
	EndsIn  time.Duration // the time after which the one with the lowest number ends
	Watches int
}

// Kept returns what is kept for the readers of keys: nothing of those whose section is not owned here.
func (t *Table) Kept(space *seq.Space, keys seq.Counters) []Kept {
	out := make([]Kept, len(keys.UIDs))
	for i, uid := range keys.UIDs {
		c := t.Section(space.SectionOf(keys.Places[i]))
		c.mu.Lock()
		if c.state == Owned && c.book != nil {
			out[i].Tickets, out[i].EndsIn = c.book.Kept(uint64(uid), t.clock.Now())
		}
		if c.watched {
			out[i].Watches = c.watch.Watchers(uint64(uid))
		}
		c.mu.Unlock()
	}
	return out
}

// ends counts tickets since the node began.
type ends struct {
	at              time.Duration
	opened, expired uint64
	spaces          []uint64 // that expired
}

// reading is what Table.Reading goes by.
type reading struct {
	mu      sync.Mutex // guards all below; no lock is taken under it
	open    []tickets.Census
	watched []int
	samples []ends // by rising time
}

// Reading returns what this node keeps for readers.
func (t *Table) Reading() Reading {
	r, watches := &t.reading, t.Watches()
	r.mu.Lock()
	defer r.mu.Unlock()
	now := t.ends() // not before a sample
	out := Reading{Tickets: int(t.tickets.Open.Load()), Watches: watches.Watchers, Keys: watches.Keys, Spaces: make([]SpaceReading, len(now.spaces))}
	var then ends
	if len(r.samples) > 0 {
		then = r.samples[0]
		out.Lately, out.Opened, out.Expired = now.at-then.at, now.opened-then.opened, now.expired-then.expired
	}
	for i := range out.Spaces {
		one := &out.Spaces[i]
		one.Space = &t.Mapping().Spaces[i]
		if i < len(r.open) { // else it was added a moment ago
			one.Census, one.Watched = r.open[i], r.watched[i]
		}
		if i < len(then.spaces) {
			one.Expired = now.spaces[i] - then.spaces[i]
		}
	}
	return out
}

// ends reads the counts.
func (t *Table) ends() ends {
	e := ends{at: t.clock.Now(), opened: t.tickets.Opened.Load(), expired: t.tickets.Expired.Load()}
	for i := range t.Mapping().Spaces {
		e.spaces = append(e.spaces, t.stats.expired[i].Load())
	}
	return e
}

// keep keeps what the sections had a moment ago, and a sample if it is time for one.
func (r *reading) keep(open []tickets.Census, watched []int, now ends) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open, r.watched = open, watched
	if n := len(r.samples); n > 0 && now.at-r.samples[n-1].at < sampleEvery {
		return
	}
	if r.samples = append(r.samples, now); len(r.samples) > mostSamples {
		r.samples = append([]ends(nil), r.samples[1:]...)
	}
}

// indexOf returns the place of a space of this table in the mapping.
func (t *Table) indexOf(space *seq.Space) int {
	spaces := t.Mapping().Spaces
	for i := range spaces {
		if space == &spaces[i] {
			return i
		}
	}
	return 0 // no such space: spaces are never removed
}
