package workers

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/seqsvr/seqsvr/seq"
)

// Bounds of the windows that may be held at a time, however large the pool: each costs the stores
// a register.
const (
	maxHeld    = 256          // by one caller
	maxHeldVia = 16 * maxHeld // by all that one host asks for
)

// Caller is the recipient of a window.
type Caller struct {
	Name string // empty if it is not known; then there is no limit
	// Via is a host that gave the caller's name and has not proved that it is a router. Then the limits
	// hold for that host, too. Via is empty if the caller was seen or proved.
	Via string
}

// host returns the caller that was seen. Windows that it asks for as Via and windows that it takes itself
// count together.
func (c Caller) host() string { return cmp.Or(c.Via, c.Name) }

// shares holds the windows of one namespace that this node has delegated, by caller. A node that starts
// again begins with none. The earlier windows are still held, and count for the pool.
type shares struct {
	mu     sync.Mutex // guards all below
	held   book       // by caller
	hosts  book       // by host
	asking int        // calls under way
}

// book has windows by a name.
type book map[string]*entry

// entry holds the windows and calls of one name.
type entry struct {
	ends   []Mark // of windows that were not over when last looked at
	asking int    // calls under way
}

// ask is a call that may get a window. Earlier calls under way count as if they had got a window, because
// calls at the same moment do not see each other's windows at the stores.
type ask struct {
	of              *shares
	by              Caller
	mine, host, all int // calls before it
}

func (s *shares) ask(by Caller) ask {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		s.held, s.hosts = book{}, book{}
	}
	a := ask{s, by, s.held.begin(by.Name), s.hosts.begin(by.host()), s.asking}
	s.asking++
	return a
}

// begin notes a call, and returns how many were under way.
func (b book) begin(name string) (before int) {
	e, ok := b[name]
	if !ok {
		e = &entry{}
		b[name] = e
	}
	before = e.asking
	e.asking++
	return before
}

// done ends the call. If a window was granted, done records it in place of the window that it extends,
// whose end is was. Zero means that it extends none.
func (a ask) done(granted bool, was, ends, now Mark) {
	s := a.of
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking--
	granted = granted && a.by.Name != ""
	s.held.end(a.by.Name, granted, was, ends)
	s.hosts.end(a.by.host(), granted, was, ends)
	s.held.forget(now)
	s.hosts.forget(now)
}

func (b book) end(name string, granted bool, was, ends Mark) {
	e := b[name]
	e.asking--
	if granted {
		e.drop(was)
		e.ends = append(e.ends, ends)
	}
}

func (e *entry) drop(ends Mark) {
	if i := slices.Index(e.ends, ends); i >= 0 {
		e.ends = slices.Delete(e.ends, i, i+1)
	}
}

// forget drops the windows that are over, of all names.
func (b book) forget(now Mark) {
	for name, e := range b {
		if e.ends = slices.DeleteFunc(e.ends, func(m Mark) bool { return m <= now }); len(e.ends)+e.asking == 0 {
			delete(b, name)
		}
	}
}

// check returns seq.ErrQuota if the caller has its share of the pool. The pool after includes one window
// more. While half of the pool is free, every caller gets more, up to maxHeld. From the other half only a
// caller without windows here gets one. Above two thirds its host must have none here, either, because a
// host may invent the callers that it names.
func (a ask) check(after Pool, now Mark) error {
	if a.by.Name == "" {
		return nil
	}
	s := a.of
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held.forget(now)
	s.hosts.forget(now)
	share, ofHost := maxHeld, maxHeldVia
	if after.Size < 1<<40 {
		used := uint64(after.Held + a.all)
		if used*2 > after.Size {
			share = 1
		}
		if used*3 > after.Size*2 {
			ofHost = 1
		}
	}
	name, has := a.by.Name, s.held[a.by.Name].ends
	switch hosts := s.hosts[a.by.host()].ends; {
	case len(has)+a.mine >= share:
	case a.by.Via != "" && len(hosts)+a.host >= ofHost:
		name, has = a.by.Via, hosts
	default:
		return nil
	}
	come := "later"
	if len(has) > 0 {
		come = "in " + slices.Min(has).ahead(now).String()
	}
	return fmt.Errorf("%w: %.300s has %d delegated worker ids of this node, and %d of %d are held in all: extend one of them, or come again %s",
		seq.ErrQuota, name, len(has), after.Held-1, after.Size, come)
}

// over notes that a caller has given a window back.
func (s *shares) over(by Caller, ends Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range []*entry{s.held[by.Name], s.hosts[by.host()]} {
		if e != nil {
			e.drop(ends)
		}
	}
}
