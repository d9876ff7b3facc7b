package segment

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/seq"
)

// state of a tag on this node.
type state uint8

const (
	// absent: not owned. The next request begins an acquisition.
	absent state = iota
	// acquiring: an acquisition is under way; requests wait.
	acquiring
	// owned: requests are served while the lease holds.
	owned
)

// String returns the state in one word.
func (s state) String() string { return [...]string{"absent", "acquiring", "owned"}[s] }

// errInvariant: I6 would be broken; the process must stop before it hands out
// another number.
var errInvariant = errors.New("invariant broken")

// cell is one tag in memory, or one period of a tag of business numbers.
type cell struct {
	name     string // of the register: the tag's, or tag/period
	tag      string
	period   string // "" for a plain tag
	register seq.Register
	section  seq.SectionID

	mu sync.Mutex // guards everything below
	// state moves absent -> acquiring -> owned -> absent. It moves from acquiring back to absent if no
	// request waits or the epoch is lost.
	state state
	// attempts counts the moves to acquiring. Only the last attempt for the tag may go on.
	attempts uint64
	epoch    seq.Epoch       // of owned, and of acquiring once it is promised
	hold     ownership.Lease // of owned
	limits   Tag
	buffers  buffers // of owned
	// fresh is the time until which the lease has been unbroken since the catalogue was last read within
	// it. Later, a change of the tag may have been answered that this node does not know. Only an owned tag
	// has it.
	fresh time.Duration
	// used is the time of the last request, for a period.
	used time.Duration
	// gone means that the Service has forgotten the cell. A call that finds it looks for another.
	gone bool

	// high is the largest number that this process handed out: base >= high in
	// every later epoch (I6).
	high uint64

	waiters int    // requests that wait
	asked   uint64 // numbers that they ask for together
	// trouble is the error of the last try that the requests wait for, or nil.
	trouble error
	// changed is closed and replaced when a waiting request may go on.
	changed chan struct{}
}

func newCell(entry Tag, at place, section seq.SectionID) *cell {
	name := at.String()
	return &cell{name: name, tag: at.tag, period: at.period, register: seq.TagRegister(name), section: section, limits: entry, changed: make(chan struct{})}
}

// wake lets every waiting request look again. Needs c.mu.
func (c *cell) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// begin starts an acquisition. Needs c.mu and state absent.
func (c *cell) begin() attempt {
	c.state, c.epoch, c.trouble = acquiring, seq.Epoch{}, nil
	c.attempts++
	return attempt{c, c.attempts}
}

// clear makes the tag absent. Needs c.mu.
func (c *cell) clear() {
	if c.hold != nil {
		c.hold.Drop()
	}
	c.state, c.epoch, c.hold, c.buffers = absent, seq.Epoch{}, nil, buffers{}
	c.wake()
}

// drop forgets the tag if it is still under the epoch: it was lost.
func (c *cell) drop(epoch seq.Epoch) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == absent || c.epoch != epoch {
		return false
	}
	c.clear()
	return true
}

// seal stops the tag for ever under its epoch, which it returns; ok is false if it
// was not owned. An acquisition under way comes to nothing.
func (c *cell) seal() (epoch seq.Epoch, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	epoch, ok = c.epoch, c.state == owned
	if c.state != absent {
		c.clear()
	}
	return epoch, ok
}

// leased reports whether no other session can have taken the tag by now. Needs c.mu.
func (c *cell) leased(now time.Duration) bool { return c.hold != nil && now < c.hold.Until() }

// keepFresh moves fresh along with a lease that is unbroken, and reports whether it is.
func (c *cell) keepFresh(now time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.isFresh(now)
}

// isFresh is keepFresh for a caller that has c.mu.
func (c *cell) isFresh(now time.Duration) bool {
	if c.hold == nil || now >= c.fresh {
		return false
	}
	c.fresh = max(c.fresh, c.hold.Until())
	return true
}

// refreshed takes in that the catalogue was read under the epoch, in a lease that then lasted to until.
func (c *cell) refreshed(epoch seq.Epoch, until time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == owned && c.epoch == epoch {
		c.fresh = max(c.fresh, until)
	}
}

// confirm takes in that W stores have ceiling under the epoch.
func (c *cell) confirm(epoch seq.Epoch, ceiling uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != owned || c.epoch != epoch {
		return
	}
	c.buffers.confirm(ceiling)
	c.trouble = nil
	c.wake()
}

// note remembers why a step failed, for the requests that wait for it.
func (c *cell) note(epoch seq.Epoch, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == owned && c.epoch == epoch {
		c.trouble = err
	}
}

// limit takes a new entry of the catalogue in.
func (c *cell) limit(entry Tag) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.limits.Retired != entry.Retired {
		c.wake() // what waits is refused
	}
	c.limits = entry
	if c.state == owned {
		c.buffers.limit(entry)
	}
}

// retired reports whether the tag hands out nothing by what the catalogue says.
func (c *cell) retired() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.limits.Retired != 0
}

// attempt is one acquisition of one tag.
type attempt struct {
	c   *cell
	nth uint64
}

// valid reports whether the acquisition is still wanted. Needs c.mu.
func (t attempt) valid() bool { return t.c.state == acquiring && t.c.attempts == t.nth }

// look calls valid with c.mu locked, and also returns the tag's limits.
func (t attempt) look() (limits Tag, ok bool) {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	return t.c.limits, t.valid()
}

// expect notes the epoch that was promised, so that its loss is noticed before the
// tag is served; false if the acquisition has been called off.
func (t attempt) expect(epoch seq.Epoch) bool {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	if !t.valid() {
		return false
	}
	t.c.epoch = epoch
	return true
}

// failed records why the acquisition has not succeeded yet. It returns true if a request waits for another
// try.
func (t attempt) failed(err error) (again bool) {
	c := t.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if !t.valid() {
		return false
	}
	c.trouble, c.epoch = err, seq.Epoch{}
	if c.waiters == 0 {
		c.clear()
		return false
	}
	return true
}

// cancel calls the acquisition off; requests that wait look again.
func (t attempt) cancel() {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	if t.valid() {
		t.c.clear()
	}
}

// install makes the tag owned: W stores acknowledged b.confirmed under epoch, and the
// lease is held. The catalogue was read in a lease that then lasted to fresh. false if the epoch was lost meanwhile.
func (t attempt) install(epoch seq.Epoch, b buffers, hold ownership.Lease, fresh time.Duration) (bool, error) {
	c := t.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if !t.valid() || c.epoch != epoch {
		return false, nil
	}
	if b.cur < c.high || b.cur > b.confirmed {
		return false, fmt.Errorf("%w: tag %q: base %d, confirmed %d, handed out up to %d before", errInvariant, c.name, b.cur, b.confirmed, c.high)
	}
	b.limit(c.limits) // may have changed since
	c.state, c.hold, c.buffers, c.trouble, c.fresh = owned, hold, b, nil, fresh
	c.wake()
	return true, nil
}
