package section

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/seqsvr/seqsvr/internal/base/watch"
	"github.com/seqsvr/seqsvr/seq"
)

// watching has the watched keys of a section.
type watching struct {
	*watch.Keys[uint64]

	held bool // a watcher was told that a mark is not known yet
}

// watches are the watches of a table.
type watches struct {
	watch.Stats

	mu sync.Mutex // guards in; taken under the lock of a section
	in map[*Section]struct{}
}

// moved marks a UID as changed for its watchers. Needs c.mu.
func (c *Section) moved(uid uint64) {
	if c.watched {
		c.watch.Mark(uid)
	}
}

// changed is moved of a section that is not locked.
func (t *Table) changed(c *Section, uid seq.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moved(uint64(uid))
}

// movedAll marks all UIDs. Needs c.mu.
func (c *Section) movedAll() {
	if c.watched {
		c.watch.MarkAll()
	}
}

// Watch tells the newest number and mark of its keys. One goroutine may call Next while another one adds and
// removes keys. Make it with Table.Watch, and Close it.
type Watch struct {
	*watch.Watcher[uint64]

	t     *Table
	taken []*watch.Entry[uint64]
}

// Watch returns a watch without keys.
func (t *Table) Watch() *Watch {
	return &Watch{Watcher: watch.NewWatcher[uint64](&t.watches.Stats), t: t}
}

// Add watches keys: Next tells the present of each, and then what becomes of it. The keys go by the names id,
// id + 1 and so on. A key of a section that is not here is not watched, and has a fault. seq.ErrWatches.
func (w *Watch) Add(space *seq.Space, keys seq.Counters, id uint32) (faults []Fault) {
	for i, place := range keys.Places {
		c := w.t.Section(space.SectionOf(place))
		if err := w.add(c, uint64(keys.UIDs[i]), id+uint32(i)); err != nil {
			faults = append(faults, Fault{Index: i, Err: err})
		}
	}
	return faults
}

func (w *Watch) add(c *Section, uid uint64, id uint32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == Absent {
		return w.t.guide.NotOwner(c.id, c.successor)
	}
	if !c.watched {
		w.t.watches.begin(c)
	}
	err := c.watch.Add(w.Watcher, uid, id)
	if c.watch.Len() == 0 {
		w.t.watches.end(c)
	}
	return err
}

// begin gives a section room for watched keys. Needs c.mu.
func (w *watches) begin(c *Section) {
	c.watch = &watching{Keys: watch.NewKeys(uint32(c.id), &c.mu, func(uint64) {
		if c.watch.Len() == 0 {
			w.end(c)
		}
	})}
	c.watched = true
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.in == nil {
		w.in = map[*Section]struct{}{}
	}
	w.in[c] = struct{}{}
}

// end says that no key of the section is watched. Needs c.mu.
func (w *watches) end(c *Section) {
	c.watch, c.watched = nil, false
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.in, c)
}

// Remove no longer watches keys.
func (w *Watch) Remove(space *seq.Space, keys seq.Counters) {
	for i, place := range keys.Places {
		c := w.t.Section(space.SectionOf(place))
		c.mu.Lock()
		if c.watched {
			c.watch.Remove(w.Watcher, uint64(keys.UIDs[i]))
		}
		c.mu.Unlock()
	}
}

// News is what became of a watched key: its Mark, or why it is not watched any more.
type News struct {
	ID   uint32
	Mark Mark // in a space without tickets Value is the last number
	Err  error

	e *watch.Entry[uint64]
}

// Next reads up to n keys that changed, and does not wait for changes. In a strict space it looks first, as
// Current does, and in an exact space it asks W stores. A key of a section that is on its way here is told when
// the section serves, or goes elsewhere.
func (w *Watch) Next(ctx context.Context, n int) (news []News) {
	w.taken = w.Take(w.taken[:0], n)
	defer clear(w.taken)
	var read looks
	var logged []int // indices of keys of exact spaces, whose numbers are not known yet
	now := w.t.clock.Now()
	for _, e := range w.taken {
		c := w.t.Section(seq.SectionID(e.Of().ID))
		c.mu.Lock()
		one, ok := News{ID: e.ID, e: e}, !e.Gone()
		switch {
		case !ok:
		case c.state == Absent:
			one.Err = w.t.guide.NotOwner(c.id, c.successor)
		case c.state != Owned:
			one.Err = w.t.guide.FailFast()
			ok = one.Err != nil
		case c.space.Mode == seq.Exact: // it rests on no lease
			logged = append(logged, len(news))
		case !c.leased(now):
			one.Err = fmt.Errorf("section %d: %w", c.id, w.t.leaseLoss())
		default:
			last, _ := c.table.Get(e.Key)
			one.Mark = c.markOf(e.Key, last, now)
			c.watch.held = c.watch.held || one.Mark.Unknown > 0
			if c.space.Mode == seq.Strict {
				read.note(c)
			}
		}
		if ok && one.Err != nil {
			c.watch.Drop(e)
		}
		c.mu.Unlock()
		if ok {
			news = append(news, one)
		}
	}
	w.readLogged(ctx, news, logged)
	if bad := w.t.look(ctx, read); len(bad) > 0 {
		for i := range news {
			if err := bad[seq.SectionID(news[i].e.Of().ID)]; err != nil && news[i].Err == nil {
				w.drop(&news[i], err)
			}
		}
	}
	w.t.watches.Told.Add(uint64(len(news)))
	return news
}

// drop ends the watch of a key that could not be read.
func (w *Watch) drop(one *News, err error) {
	c := w.t.Section(seq.SectionID(one.e.Of().ID))
	c.mu.Lock()
	defer c.mu.Unlock()
	one.e.Of().Drop(one.e)
	one.Mark, one.Err = Mark{}, err
}

// readLogged reads the numbers of keys of exact spaces.
func (w *Watch) readLogged(ctx context.Context, news []News, at []int) {
	if len(at) == 0 {
		return
	}
	ids := make([]seq.SectionID, len(at))
	for k, i := range at {
		ids[k] = seq.SectionID(news[i].e.Of().ID)
	}
	w.t.markLogged(ctx, ids, func(k int) seq.UID { return seq.UID(news[at[k]].e.Key) }, func(k int, c *Section, m Mark, err error) {
		one := &news[at[k]]
		if err != nil {
			w.drop(one, err)
			return
		}
		one.Mark = m
		if c.watched {
			c.watch.held = c.watch.held || m.Unknown > 0
		}
	})
}

// tick marks keys for which time alone changes what is told: their lease has ended, their section is on its
// way and nothing is known of it any more, or their marks became known. It returns how many keys are watched, by
// space.
func (t *Table) tick() (watched []int) {
	t.watches.mu.Lock()
	in := slices.Collect(maps.Keys(t.watches.in))
	t.watches.mu.Unlock()
	now := t.clock.Now()
	watched = make([]int, len(t.Mapping().Spaces))
	for _, c := range in {
		c.mu.Lock()
		if c.watched {
			watched[t.indexOf(c.space)] += c.watch.Len()
			known := false
			if c.watch.held && c.state == Owned {
				_, _, unknown := c.book.Mark(0, 0, now)
				known = unknown == 0
			}
			if known || c.state == Owned && !c.leased(now) || c.state != Owned && t.guide.FailFast() != nil {
				c.watch.held = c.watch.held && !known
				c.watch.MarkAll()
			}
		}
		c.mu.Unlock()
	}
	return watched
}

// Watches counts the watches of a node now.
type Watches struct{ Watchers, Keys int }

// Watches returns how many watches there are.
func (t *Table) Watches() Watches {
	return Watches{Watchers: int(t.watches.Watchers.Load()), Keys: int(t.watches.Keys.Load())}
}
