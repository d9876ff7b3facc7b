package workers

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// maxLoans bounds what a node remembers of one namespace. Windows beyond cannot be given back.
const maxLoans = 4096

// place is a worker id in its namespace.
type place struct {
	dc     snowflake.Datacenter
	worker snowflake.Worker
}

// loan is the newest window of a worker id that this node has lent, and what it has found out
// of it. It lives in memory only: a node that starts again takes nothing back, and the mark
// keeps the worker id until the window is over.
type loan struct {
	ticket   uint64
	layout   snowflake.Layout // of the ticks
	mark     Mark             // the end of the window, which no other of this worker id shares
	floor    snowflake.Tick   // all ticks above, up to the mark, are this client's
	last     snowflake.Tick
	holder   string
	returned bool
	used     snowflake.Tick // if returned: the client made no ID above, nor will; at least floor
}

// loans holds the windows of one namespace that are not over.
//
//	at most one a worker id; used is meant for the mark it came with
type loans struct {
	mu sync.Mutex // guards all below
	by map[place]*loan
}

// add records a confirmed window, in place of the earlier window of that worker id. A window that continues
// another, with its ticket, begins where the other began. add returns the new ticket, or 0.
func (s *loans) add(d Window, extends *loan, holder string, now Mark) uint64 {
	l := &loan{layout: d.Namespace.Layout, mark: d.Confirmed, floor: d.Floor, last: d.Last, holder: holder}
	if d.Continues && extends != nil && extends.layout == l.layout {
		l.floor = extends.floor
	}
	var b [8]byte
	rand.Read(b[:]) // never fails
	l.ticket = max(1, binary.LittleEndian.Uint64(b[:]))
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, old := range s.by {
		if old.mark <= now {
			delete(s.by, at)
		}
	}
	at := place{d.Datacenter, d.Worker}
	delete(s.by, at)
	if len(s.by) >= maxLoans {
		return 0
	}
	if s.by == nil {
		s.by = map[place]*loan{}
	}
	s.by[at] = l
	return l.ticket
}

// claim forgets a loan, since a new window of its worker id is about to be asked for; nil if
// its mark is another one.
func (s *loans) claim(at place, mark Mark) *loan {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.by[at]
	delete(s.by, at)
	if l == nil || l.mark != mark {
		return nil
	}
	return l
}

// spare reports whether a worker id with that mark was given back, and can be lent under the
// layout from now on: nothing above the used tick is anybody's. era is the floor of a restored
// era, below which another process may have been lent it.
func (s *loans) spare(at place, mark, era Mark, layout snowflake.Layout, now Mark) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.by[at]
	return l != nil && l.returned && l.mark == mark && l.layout == layout && startOf(layout, l.used) <= now && (era == 0 || startOf(layout, l.used) > era)
}

// holder is the client that was lent the worker id of that mark, "" if it is not known.
func (s *loans) holder(at place, mark Mark) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.by[at]; l != nil && l.mark == mark && !l.returned {
		return l.holder
	}
	return ""
}

// giveBack notes that a client has done with its window. seq.ErrConflict, seq.ErrBadArgument.
func (s *loans) giveBack(n Named, ticket uint64, used snowflake.Tick) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.by[place{n.Datacenter, n.Worker}]
	switch {
	case l == nil || l.mark != n.Confirmed || l.ticket != ticket:
		return fmt.Errorf("%w: this node did not lend worker %d up to %s last, or with another ticket", seq.ErrConflict, n.Worker, n.Confirmed.Time())
	case used > l.last:
		return fmt.Errorf("%w: last tick used %d, the window ends at %d", seq.ErrBadArgument, used, l.last)
	}
	l.used = max(used, l.floor, l.used) // never less, should it be told twice
	l.returned = true
	return nil
}

// LentTo is the client to which this node has lent a worker id, as it calls itself; "" if
// another node has, or none.
func (i *Issuer) LentTo(u Used) string { return i.loans.holder(place{u.Datacenter, u.Worker}, u.Mark) }
