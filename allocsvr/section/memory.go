package section

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Tuning of the memory limit of counters (docs/decisions.md, 035).
const (
	// Percentages of the budget. When counters use foldFrom, cold counters are folded until foldUntil is
	// reached. When they use all of it, UIDs without a counter are refused. Under a flood all sections grow
	// together, by a quarter, so foldFrom and allUsed lie that far apart.
	foldFrom, foldUntil, allUsed = 60, 40, 100
	// foldLook is the time between two looks at the memory. After a pass that did not find enough, there is
	// no pass for foldRest times its duration.
	foldLook = time.Second
	foldRest = 20
	// foldPiece is the number of slots of a table that are looked at under one lock of its section, which
	// takes some 30 us.
	foldPiece = 512
)

// foldAges are the ages, in seconds, from which a block counts as cold, by its last take. The next age is
// used only if the age before does not free enough.
var foldAges = [...]uint32{600, 60, 10}

// memory measures and limits the memory of the counters of a Table, and of the logs of its exact sections.
// Each has a share of its own, so that neither takes the other's. Safe for concurrent use.
//
//	used = the sum of Section.bytes
type memory struct {
	budget  func() uint64 // bytes of counters; 0 means no limit
	used    atomic.Int64
	folded  atomic.Uint64 // blocks of 64 UIDs
	refused atomic.Uint64 // requests for UIDs without a counter
	logs    atomic.Int64  // bytes of UIDs and ids of exact sections, which cannot be folded
	denied  atomic.Uint64 // requests for UIDs and ids that exact sections do not have

	// The logs grew by logs - since after the reply of the stores that heard names.
	heard atomic.Uint64
	since atomic.Int64
}

// logShare bounds what UIDs and ids of exact sections may take beside the counters, in percent of the
// counters' budget.
const logShare = 50

func unbounded() uint64 { return 0 }

// Memory holds the bytes that the counters of UIDs and the logs of exact sections use, and how the limits
// were kept.
type Memory struct {
	Used, Budget uint64 // of counters; a zero Budget means no limit
	Logs, Share  uint64 // of exact sections; a zero Share means no limit
	Denied       uint64 // requests for new UIDs and ids of exact sections
	Folded       uint64 // blocks of 64 UIDs, since the table was made
	Refused      uint64 // requests for UIDs without a counter, likewise
}

// Memory returns the memory of all sections. Counters that are on their way to another node, or are kept
// after that failed, do not count.
func (t *Table) Memory() Memory {
	m := &t.memory
	return Memory{Used: uint64(max(m.used.Load(), 0)), Budget: m.budget(), Logs: uint64(max(m.logs.Load(), 0)), Share: m.share(), Denied: m.denied.Load(), Folded: m.folded.Load(), Refused: m.refused.Load()}
}

// above reports whether the counters use so many percent of the budget.
func (m *memory) above(percent uint64) bool {
	budget := m.budget()
	return budget > 0 && uint64(max(m.used.Load(), 0))/percent >= budget/100
}

// share returns the limit on the logs of exact sections, zero for none.
func (m *memory) share() uint64 { return m.budget() / 100 * logShare }

// full returns why the logs of a space may keep no more, nil if they may. stores returns the memory of the
// stores.
func (m *memory) full(space *seq.Space, stores func() quorum.Room) error {
	err := m.logsFull(stores)
	if err != nil {
		m.denied.Add(1)
		err = fmt.Errorf("space %s: %w", space.Name, err)
	}
	return err
}

func (m *memory) logsFull(stores func() quorum.Room) error {
	logs := m.logs.Load()
	if share := m.share(); share > 0 && uint64(max(logs, 0)) >= share {
		return fmt.Errorf("%w: at this AllocSvr they take %d bytes of the %d beside uid-memory", seq.ErrExactMemory, logs, share)
	}
	if stores == nil {
		return nil
	}
	room := stores()
	if m.heard.Load() != room.Heard {
		m.heard.Store(room.Heard)
		m.since.Store(logs)
	}
	if grown := uint64(max(logs-m.since.Load(), 0)); room.Left <= grown {
		return fmt.Errorf("%w: fewer than W stores have any; store %s has %d bytes left of %d", seq.ErrExactMemory, room.Store, room.Left, room.Limit)
	}
	return nil
}

// growLogs takes in by how much the logs have grown.
func (m *memory) growLogs(bytes int64) { m.logs.Add(bytes) }

// weigh takes in what the table takes now. Needs c.mu.
func (c *Section) weigh() {
	if now := int64(c.table.Bytes()); now != c.bytes {
		c.memory.used.Add(now - c.bytes)
		c.bytes = now
	}
}

// admits reports whether a UID without a counter may get one. Needs c.mu.
func (c *Section) admits(key seq.Counter) error {
	if !c.memory.above(allUsed) {
		return nil
	}
	if _, known := c.table.Get(uint64(key.UID)); known {
		return nil
	}
	c.memory.refused.Add(1)
	return fmt.Errorf("%s: %w: those in use take all of uid-memory, %d bytes", key, seq.ErrUIDMemory, c.memory.budget())
}

// folding keeps the counters of a Table within their memory.
type folding struct {
	*cells
	unix func() uint32 // now, in seconds
	log  *slog.Logger
	at   int // section that the next fold begins with
}

func (t *Table) folding() *folding { return &folding{cells: &t.cells, unix: t.unix, log: t.log} }

// keepWithin folds cold counters whenever they use foldFrom percent of the budget, for as
// long as ctx lasts.
func (f *folding) keepWithin(ctx context.Context) {
	timer := time.NewTimer(foldLook)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			timer.Reset(f.look())
		}
	}
}

// look folds if it is time to, and says when to look again.
func (f *folding) look() (pause time.Duration) {
	if !f.memory.above(foldFrom) {
		return foldLook
	}
	begun, before := time.Now(), f.memory.folded.Load()
	f.fold(f.unix())
	if n := f.memory.folded.Load() - before; n > 0 {
		f.log.Info("cold counters folded", "blocks", n, "bytes_left", f.memory.used.Load(), "took", time.Since(begun).Round(time.Microsecond))
		debug.FreeOSMemory() // else it would be kept for a flood that may not come again
	}
	if f.memory.above(foldUntil) {
		return max(foldLook, foldRest*time.Since(begun))
	}
	return foldLook
}

// fold drops cold counters until the counters use foldUntil percent of the budget. It drops the oldest
// first, by the steps of foldAges. Among these it first drops counters that raise a base the least.
// Counters stay if they would raise it by more than the section's largest step, which a crash may skip as
// well.
func (f *folding) fold(now uint32) {
	for _, age := range foldAges {
		if now < age {
			continue
		}
		for rise := uint64(1); rise < math.MaxUint64; {
			next := uint64(math.MaxUint64)
			for n := f.Len(); n > 0; n-- {
				if !f.memory.above(foldUntil) {
					return
				}
				next = min(next, f.Section(seq.SectionID(f.at)).fold(now-age, rise))
				f.at = (f.at + 1) % f.Len()
			}
			rise = max(next, 2*rise)
		}
	}
}

// fold drops the counters that nothing was taken from since before, if the base need not
// rise by more than rise, and says by how much it would have to rise for the next ones;
// math.MaxUint64: there are none. The section is locked for a short while at a time.
func (c *Section) fold(before uint32, rise uint64) (next uint64) {
	next = math.MaxUint64
	_, most := c.space.Steps()
	base, blocks := c.base(), 0
	for from := 0; from >= 0; {
		c.mu.Lock()
		if c.state != Owned { // a sealed table is not changed any more
			c.mu.Unlock()
			return next
		}
		f := c.table.Fold(from, foldPiece, before, base+min(rise, most))
		if f.Least <= base+most {
			next = min(next, f.Least-base)
		}
		blocks += f.Blocks
		if from = f.Next; from < 0 && blocks > 0 {
			c.table.Shrink()
			c.weigh()
		}
		c.mu.Unlock()
		c.memory.folded.Add(uint64(f.Blocks))
	}
	return next
}

func (c *Section) base() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.table.Base()
}
