package workers

import (
	"fmt"
	"slices"
	"sync"

	"github.com/seqsvr/seqsvr/seq"
)

// maxHeld bounds the windows that one caller may hold at a time, however large the pool:
// each costs the stores a register.
const maxHeld = 256

// shares are the windows of one namespace that this node has delegated, by caller. A node
// that starts again begins with none: those windows are still held, and count for the pool.
type shares struct {
	mu     sync.Mutex        // guards all below
	held   map[string][]Mark // ends of windows that are not over when last looked at
	asking map[string]int    // calls under way
	all    int               // the sum of asking
}

// ask is one call that may get a window. What was under way before it counts as if it had
// got one: calls at the same moment do not see each other's at the stores.
type ask struct {
	of        *shares
	by        string // empty: not known, and not bounded
	mine, all int    // calls before it
}

func (s *shares) ask(by string) ask {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asking == nil {
		s.asking, s.held = map[string]int{}, map[string][]Mark{}
	}
	a := ask{s, by, s.asking[by], s.all}
	s.asking[by]++
	s.all++
	return a
}

// done ends the call. With a window, that window is noted in place of the one that it
// extends; was is 0 for none.
func (a ask) done(granted bool, was, ends, now Mark) {
	s := a.of
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.asking[a.by]--; s.asking[a.by] == 0 {
		delete(s.asking, a.by)
	}
	if !granted || a.by == "" {
		return
	}
	has := s.of(a.by, now)
	if i := slices.Index(has, was); i >= 0 {
		has = slices.Delete(has, i, i+1)
	}
	s.held[a.by] = append(has, ends)
}

// check is seq.ErrQuota if the caller has its share of the pool, of which after is what is held
// with one window more. As long as half of the pool is free every caller gets more, up to
// maxHeld; of the other half only one that has none here.
func (a ask) check(after Pool, now Mark) error {
	if a.by == "" {
		return nil
	}
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	has, share := a.of.of(a.by, now), maxHeld
	if after.Size < 1<<40 && uint64(after.Held+a.all)*2 > after.Size {
		share = 1
	}
	if len(has)+a.mine < share {
		return nil
	}
	come := "later"
	if len(has) > 0 {
		come = "in " + slices.Min(has).ahead(now).String()
	}
	return fmt.Errorf("%w: %.300s has %d delegated worker ids of this node, and %d of %d are held in all: extend one of them, or come again %s",
		seq.ErrQuota, a.by, len(has), after.Held-1, after.Size, come)
}

// of is what a caller holds now; windows that are over are forgotten, of all callers. The caller holds mu.
func (s *shares) of(by string, now Mark) []Mark {
	for who, ends := range s.held {
		if ends = slices.DeleteFunc(ends, func(m Mark) bool { return m <= now }); len(ends) == 0 {
			delete(s.held, who)
		} else {
			s.held[who] = ends
		}
	}
	return s.held[by]
}

// over notes that a caller has given a window back.
func (s *shares) over(by string, ends Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.held[by], ends); i >= 0 {
		s.held[by] = slices.Delete(s.held[by], i, i+1)
	}
}
