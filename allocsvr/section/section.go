package section

import (
	"fmt"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/logs"
	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/allocsvr/section/tickets"
	"github.com/seqsvr/seqsvr/internal/base/counters"
	"github.com/seqsvr/seqsvr/seq"
)

// State of a section on this node.
type State uint8

const (
	// Absent: nothing is known to be owned; requests are sent elsewhere.
	Absent State = iota
	// Acquiring: a PREPARE, STEP or first attachment is under way; requests wait.
	Acquiring
	// Owned: requests are served while the lease holds.
	Owned
	// Sealed: no number is taken under this epoch any more, whatever happens;
	// requests wait for the new owner.
	Sealed
)

// String returns the state in one word.
func (s State) String() string { return [...]string{"absent", "acquiring", "owned", "sealed"}[s] }

// Section is one section in memory. Safe for concurrent use. A take of a number reads two cache lines of 64
// bytes, hot and the line after it (TestATakeTouchesTwoLinesOfACell). With many sections both come from
// memory, and a third line would be a third wait.
type Section struct {
	// successor is the gRPC address of the node that the section was handed to, or of the node that must
	// still hand it over to this node.
	successor string
	// changed is closed and replaced when a waiting request may go on.
	changed chan struct{}
	watch   *watching // if nil, no key is watched
	pace    pace      // of owned; its last field is the first of the hot ones

	mu    sync.Mutex // guards everything but space, id and memory
	space *seq.Space // never changed: read without the lock to fetch the line
	// state moves absent -> acquiring -> owned -> sealed -> absent, and to
	// absent from anywhere when the epoch is lost.
	state   State
	watched bool // watch is not nil
	// until is the value of hold.Until when the leases had had losses losses. While they have no more, no
	// other session can have taken the section before until.
	losses uint64
	until  time.Duration
	// confirmed: W stores have max >= confirmed under epoch (I5).
	confirmed uint64
	// target > confirmed while a step to it is wanted or in flight, else 0.
	target uint64

	id seq.SectionID // never changed: read without the lock to fetch the line
	// table holds the counters: cur(uid) <= confirmed for every uid, and every number that
	// a uid without a counter ever had is <= base. Empty unless owned or sealed.
	table counters.Table

	epoch  seq.Epoch       // of acquiring, owned and sealed
	hold   ownership.Lease // of owned
	memory *memory         // of the node; never changed
	bytes  int64           // of table, as memory.used has them
	log    *logs.Log       // of owned and sealed, in an exact space; else nil
	book   *tickets.Book   // from the promise on, in a space with tickets; else nil
}

func (c *Section) init(id seq.SectionID, space *seq.Space, m *memory) {
	c.id, c.space, c.memory, c.changed = id, space, m, make(chan struct{})
}

// ID returns the id of the section.
func (c *Section) ID() seq.SectionID { return c.id }

// Space returns the space of the section.
func (c *Section) Space() *seq.Space { return c.space }

// State returns the present state of the section.
func (c *Section) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// Successor returns the gRPC address of the node that the section was handed to, or that is
// still to hand it over to this one; empty if none is known.
func (c *Section) Successor() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.successor
}

// wake lets every waiting request look again. Needs c.mu.
func (c *Section) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// Begin marks an absent section as being acquired. It returns false if the section is not absent.
func (c *Section) Begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != Absent {
		return false
	}
	c.state, c.epoch = Acquiring, seq.Epoch{}
	return true
}

// Expect sets the epoch of an acquisition, so that its loss is noticed before the section serves.
func (c *Section) Expect(epoch seq.Epoch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == Acquiring {
		c.epoch = epoch
	}
}

// Abandon ends a failed acquisition. Callers are redirected to holder, a gRPC address, which is "" if the
// holder is not known.
func (c *Section) Abandon(holder string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == Acquiring {
		c.clear(holder)
	}
}

// install makes the section owned: STEP to confirmed was acknowledged by W stores
// under epoch, and the lease is asked for. false if the epoch was lost meanwhile, or
// the table is closed: the session ends, and a section that served now would serve while
// the stores let others in. It is closed before the last sections are sealed. The table
// is the cell's from here on.
func (c *Section) install(epoch seq.Epoch, table *counters.Table, confirmed uint64, hold ownership.Lease, t *Table) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != Acquiring || c.epoch != epoch {
		return false, nil
	}
	if t.closed.Load() {
		c.clear("")
		return false, nil
	}
	if table.High() > confirmed || table.Base() > table.High() {
		return false, fmt.Errorf("%w: section %d: base %d, high %d, confirmed %d", ErrInvariant, c.id, table.Base(), table.High(), confirmed)
	}
	c.state, c.table, c.confirmed, c.target, c.hold, c.until = Owned, *table, confirmed, 0, hold, 0
	c.pace, c.successor = newPace(c.space), ""
	if c.space.Mode == seq.Exact {
		c.log = t.logs.Open(c.id, epoch, c.space.Window)
	}
	if c.space.Tickets > 0 {
		c.beginTickets(t)
	}
	c.weigh()
	c.wake()
	c.movedAll()
	return true, nil
}

// Drop forgets the section if it is still under the epoch, which is not zero.
func (c *Section) Drop(epoch seq.Epoch, successor string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == Absent || c.epoch != epoch || epoch.IsZero() {
		return false
	}
	c.clear(successor)
	return true
}

// lose forgets the section if it is still under the epoch, unless it is sealed. A sealed section serves no
// request, its hand-over releases its leases, and only that hand-over decides which node has it then.
func (c *Section) lose(epoch seq.Epoch) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == Absent || c.state == Sealed || c.epoch != epoch {
		return false
	}
	c.clear("")
	return true
}

// clear makes the section absent. Needs c.mu.
func (c *Section) clear(successor string) {
	if c.hold != nil {
		c.hold.Drop()
	}
	c.endLog()
	c.endTickets()
	c.state, c.epoch, c.hold, c.until, c.table = Absent, seq.Epoch{}, nil, 0, counters.Table{}
	c.confirmed, c.target, c.successor = 0, 0, successor
	c.weigh()
	c.wake()
	c.movedAll() // its watchers learn that it went
}

// endLog has the section's log begin no batch any more, if it has one. Needs c.mu.
func (c *Section) endLog() {
	if c.log != nil {
		c.log.Close()
		c.log = nil
	}
}

// Seal stops the section under its epoch for good and returns its counters. The table does not change after
// that.
func (c *Section) Seal() (epoch seq.Epoch, table *counters.Table, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != Owned {
		return seq.Epoch{}, nil, false
	}
	c.endLog()
	c.state, c.target = Sealed, 0
	sealed := c.table
	return c.epoch, &sealed, true
}

// confirm records that W stores have max >= max under the epoch. Only that lets
// numbers up to max out (I5).
func (c *Section) confirm(epoch seq.Epoch, max uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != Owned || c.epoch != epoch {
		return
	}
	if max > c.confirmed {
		c.confirmed = max
	}
	if c.target <= c.confirmed {
		c.target = 0
	}
	c.wake()
}

// want asks for a step so that need fits below the ceiling, and reports whether
// the stepper must be told. While a step is under way it only adds what does not fit
// below its target either. Needs c.mu.
//
//	target <= high + pace.step/2 + pace.step, or need + pace.step if that is more
//
// where high is the highest number and the halved step the one before, so that a crash
// skips less than two steps, of at most space.MaxStep, above high and what was asked for.
func (c *Section) want(need uint64, now time.Duration) bool {
	if c.target != 0 && need <= c.target || c.confirmed >= uint64(seq.MaxSeq) {
		return false
	}
	if c.target == 0 {
		c.pace.next(c.table.High(), now)
	}
	target := min(max(need, c.confirmed)+c.pace.step, uint64(seq.MaxSeq))
	if target <= c.target || target <= c.confirmed {
		return false
	}
	c.target = target
	return true
}

// due reports whether less than half a step is left. Needs c.mu.
func (c *Section) due() bool {
	return c.target == 0 && c.table.High()+c.pace.step/2 > c.confirmed && c.confirmed < uint64(seq.MaxSeq)
}

// leased says that no other session can have taken the section by now. Needs c.mu.
func (c *Section) leased(now time.Duration) bool { return c.hold != nil && now < c.hold.Until() }

// vouched is leased for a batch that read how many losses the leases have had: it asks
// the hold only if the last answer is used up, or may not be true any more. Needs c.mu.
func (c *Section) vouched(now time.Duration, losses uint64) bool {
	if now < c.until && c.losses == losses {
		return true
	}
	if c.hold == nil {
		return false
	}
	c.until, c.losses = c.hold.Until(), losses
	return now < c.until
}
