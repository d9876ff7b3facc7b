package allocsvr

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/counters"
	"github.com/seqsvr/seqsvr/allocsvr/tenure"
	"github.com/seqsvr/seqsvr/seq"
)

// state of a section on this node.
type state uint8

const (
	// absent: nothing is known to be owned; requests are sent elsewhere.
	absent state = iota
	// acquiring: a PREPARE, STEP or first attachment is under way; requests wait.
	acquiring
	// owned: requests are served while the lease holds.
	owned
	// sealed: no number is taken under this epoch any more, whatever happens;
	// requests wait for the new owner.
	sealed
)

// String is the state in one word.
func (s state) String() string { return [...]string{"absent", "acquiring", "owned", "sealed"}[s] }

// cell is one section in memory. What a take of a number needs stands in two cache
// lines of 64 bytes, hot and the one after it (TestATakeTouchesTwoLinesOfACell): with
// many sections both come from memory, and a third would be a third wait.
type cell struct {
	// successor is the gRPC address of the node that the section was handed to, or
	// that is still to hand it over to this one.
	successor string
	// changed is closed, and made anew, whenever a waiting request may go on.
	changed chan struct{}
	pace    pace // of owned; its last field is the first of the hot ones

	mu    sync.Mutex // guards everything but space and id
	space *seq.Space // never changed: read without the lock to fetch the line
	// state moves absent -> acquiring -> owned -> sealed -> absent, and to
	// absent from anywhere when the epoch is lost.
	state state
	// until is what hold.Until was when the leases had had losses losses: nobody else
	// can have taken the section before it as long as they have had no more.
	losses uint64
	until  time.Duration
	// confirmed: W stores have max >= confirmed under epoch (I5).
	confirmed uint64
	// target > confirmed while a step to it is wanted or in flight, else 0.
	target uint64

	id seq.SectionID // never changed: read without the lock to fetch the line
	// table holds the counters: base <= cur(uid) <= confirmed for every uid. Empty
	// unless owned or sealed.
	table counters.Table

	epoch seq.Epoch   // of acquiring, owned and sealed
	hold  tenure.Hold // of owned
	_     [40]byte    // so that all cells of an array lie alike in their lines
}

func newCell(id seq.SectionID, space *seq.Space) *cell {
	c := new(cell)
	c.init(id, space)
	return c
}

func (c *cell) init(id seq.SectionID, space *seq.Space) {
	c.id, c.space, c.changed = id, space, make(chan struct{})
}

// wake lets every waiting request look again. Needs c.mu.
func (c *cell) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// begin marks an absent section as being acquired; false if it is not absent.
func (c *cell) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != absent {
		return false
	}
	c.state, c.epoch = acquiring, seq.Epoch{}
	return true
}

// expect notes the epoch of an acquisition, so that its loss is noticed before the
// section serves.
func (c *cell) expect(epoch seq.Epoch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == acquiring {
		c.epoch = epoch
	}
}

// abandon ends a failed acquisition. Callers are sent to holder, a gRPC address; empty:
// nobody is known.
func (c *cell) abandon(holder string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == acquiring {
		c.clear(holder)
	}
}

// install makes the section owned: STEP to confirmed was acknowledged by W stores
// under epoch, and the lease is asked for. false if the epoch was lost meanwhile, or
// the node is gone: its session ends, and a section that served now would serve while
// the stores let others in. gone is set before the last sections are sealed. The table
// is the cell's from here on.
func (c *cell) install(epoch seq.Epoch, table *counters.Table, confirmed uint64, hold tenure.Hold, gone *atomic.Bool) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != acquiring || c.epoch != epoch {
		return false, nil
	}
	if gone.Load() {
		c.clear("")
		return false, nil
	}
	if table.High() > confirmed || table.Base() > table.High() {
		return false, fmt.Errorf("%w: section %d: base %d, high %d, confirmed %d", errInvariant, c.id, table.Base(), table.High(), confirmed)
	}
	c.state, c.table, c.confirmed, c.target, c.hold, c.until = owned, *table, confirmed, 0, hold, 0
	c.pace, c.successor = newPace(c.space), ""
	c.wake()
	return true, nil
}

// drop forgets the section if it is still under the epoch.
func (c *cell) drop(epoch seq.Epoch, successor string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == absent || c.epoch != epoch {
		return false
	}
	c.clear(successor)
	return true
}

// lose forgets the section if it is still under the epoch, unless it is sealed: a
// sealed one serves nobody, its leases are released by its own hand-over, and what
// becomes of it, and who has it then, is for that hand-over to say.
func (c *cell) lose(epoch seq.Epoch) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == absent || c.state == sealed || c.epoch != epoch {
		return false
	}
	c.clear("")
	return true
}

// clear makes the section absent. Needs c.mu.
func (c *cell) clear(successor string) {
	if c.hold != nil {
		c.hold.Drop()
	}
	c.state, c.epoch, c.hold, c.until, c.table = absent, seq.Epoch{}, nil, 0, counters.Table{}
	c.confirmed, c.target, c.successor = 0, 0, successor
	c.wake()
}

// sealedSection is a section with its counters at the moment of the seal. It may
// be used by whoever finds epoch as the highest accepted one, and by nobody else.
type sealedSection struct {
	id    seq.SectionID
	epoch seq.Epoch
	// also are epochs of this session that came directly after, whose STEPs have
	// an unknown outcome and under which nothing was handed out; mostly none.
	also  []seq.Epoch
	table *counters.Table
	// offered, if not 0, is the digest of counters that came from a peer. They are good only
	// if the release left the same at the stores: anybody could send others, under an epoch
	// that every status shows.
	offered uint64
	body    []byte // table as it travels, while it is handed over
}

// digest is what the release leaves at the stores of the counters.
func (s sealedSection) digest() uint64 {
	body := s.body
	if body == nil {
		body = s.table.AppendBinary(nil)
	}
	head := binary.BigEndian.AppendUint32([]byte("seqsvr sealed counters "), uint32(s.id))
	head = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(head, s.epoch.Round), uint64(s.epoch.Session))
	sum := sha256.New()
	sum.Write(head)
	sum.Write(body)
	return max(1, binary.BigEndian.Uint64(sum.Sum(nil)))
}

// genuine says that the counters are the last owner's, by what its release left.
func (s sealedSection) genuine(left uint64) bool { return s.offered == 0 || s.offered == left }

// follows says that nobody handed out a number since the seal.
func (s sealedSection) follows(accepted seq.Epoch) bool {
	return accepted == s.epoch || slices.Contains(s.also, accepted)
}

// mostAlso bounds how many attempts are remembered: of more the last ones.
const mostAlso = 16

// after is the same with one more attempt of unknown outcome.
func (s sealedSection) after(attempt seq.Epoch) sealedSection {
	s.also = append(slices.Clone(s.also[max(0, len(s.also)-mostAlso+1):]), attempt)
	return s
}

// seal stops the section under its epoch for ever and gives its counters. The
// table is not changed by anybody from here on.
func (c *cell) seal() (sealedSection, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != owned {
		return sealedSection{}, false
	}
	c.state, c.target = sealed, 0
	table := c.table
	return sealedSection{id: c.id, epoch: c.epoch, table: &table}, true
}

// confirm records that W stores have max >= max under the epoch. Only that lets
// numbers up to max out (I5).
func (c *cell) confirm(epoch seq.Epoch, max uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != owned || c.epoch != epoch {
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
func (c *cell) want(need uint64, now time.Duration) bool {
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

// due says whether less than half a step is left. Needs c.mu.
func (c *cell) due() bool {
	return c.target == 0 && c.table.High()+c.pace.step/2 > c.confirmed && c.confirmed < uint64(seq.MaxSeq)
}

// leased says whether nobody else can have taken the section by now. Needs c.mu.
func (c *cell) leased(now time.Duration) bool { return c.hold != nil && now < c.hold.Until() }

// vouched is leased for a batch that read how many losses the leases have had: it asks
// the hold only if the last answer is used up, or may not be true any more. Needs c.mu.
func (c *cell) vouched(now time.Duration, losses uint64) bool {
	if now < c.until && c.losses == losses {
		return true
	}
	if c.hold == nil {
		return false
	}
	c.until, c.losses = c.hold.Until(), losses
	return now < c.until
}
