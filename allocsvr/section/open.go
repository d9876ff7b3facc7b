package section

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/section/tickets"
	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/seq"
)

// expireEvery is the time between two looks for tickets whose time is over. Each read of a UID looks at its
// own, so it decides only how long ended tickets count as open.
const expireEvery = 250 * time.Millisecond

// mostTickets is the largest encoded form of a section's tickets that travels. A larger one stays behind, and
// the section begins as after a crash.
const mostTickets = 1 << 20

// Ticket ends the ticket of the key that begins at the number First and has the ID.
type Ticket struct {
	First, ID uint64
	Cancelled bool // its writer will not commit
}

// Mark answers a Marks of one key. No number at or below Value becomes visible later.
type Mark struct {
	Value, Fence uint64
	Last         uint64        // as Current reads it
	Unknown      time.Duration // if not 0, the mark is not known before that time has passed
}

// opening is what an Open adds to a Taking.
type opening struct {
	life time.Duration
	ids  []uint64
}

// Open is Take that opens a ticket of that life for the numbers of each key. ids[i] is 0 where Faults has i.
// seq.ErrNoTickets, seq.ErrTickets.
func (t *Table) Open(ctx context.Context, space *seq.Space, keys seq.Counters, counts []uint32, life time.Duration) (out Taken, ids []uint64) {
	k := new(Taking)
	k.Set(t, space, keys, counts)
	k.opening = &opening{life: life, ids: make([]uint64, len(keys.UIDs))}
	for i := range keys.UIDs {
		k.pending = append(k.pending, i)
		k.line.hold(t.Section(space.SectionOf(keys.Places[i])), keys.UIDs[i], k.count(i))
	}
	k.waits()
	k.Settle(ctx)
	for _, f := range k.out.Faults { // some were taken before a strict space refused them
		if id := k.opening.ids[f.Index]; id != 0 {
			k.revoke(f.Index, id)
		}
	}
	return k.out, k.opening.ids
}

// open opens the ticket of index i, whose numbers were taken under this lock. Needs c.mu.
func (t *Taking) open(c *Section, i int) {
	id := rand.Uint64N(uint64(seq.MaxSeq)) + 1 // JSON keeps it whole
	t.opening.ids[i] = id
	// The clock is read after the take: the owner's end is later than the writer's, who counts from the sending.
	c.book.Open(uint64(t.keys.UIDs[i]), t.out.First[i], t.out.Last[i], id, t.table.clock.Now(), t.opening.life)
}

// revoke ends a ticket that its caller will not hear of.
func (t *Taking) revoke(i int, id uint64) {
	t.opening.ids[i] = 0
	c := t.table.Section(t.space.SectionOf(t.keys.Places[i]))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == Owned && c.book.Revoke(uint64(t.keys.UIDs[i]), id) {
		c.moved(uint64(t.keys.UIDs[i]))
		t.table.tickets.Cancelled.Add(1)
	}
}

// End ends tickets[i] of keys[i]. A fault is a seq.ErrTicketEnded where the ticket is not open.
func (t *Table) End(ctx context.Context, space *seq.Space, keys seq.Counters, ended []Ticket) (faults []Fault) {
	for i, uid := range keys.UIDs {
		c := t.Section(space.SectionOf(keys.Places[i]))
		err := t.whenOwned(ctx, c, func() (bool, error) {
			if err := c.book.End(uint64(uid), ended[i].First, ended[i].ID, t.clock.Now()); err != nil {
				return true, fmt.Errorf("%s: ticket of %d: %w", keys.At(i), ended[i].First, err)
			}
			c.moved(uint64(uid))
			return true, nil
		})
		switch {
		case err != nil:
			faults = append(faults, Fault{Index: i, Err: err})
		case ended[i].Cancelled:
			t.tickets.Cancelled.Add(1)
		default:
			t.tickets.Done.Add(1)
		}
	}
	return faults
}

// Marks reads the marks of keys.
func (t *Table) Marks(ctx context.Context, space *seq.Space, keys seq.Counters) ([]Mark, []Fault) {
	out := make([]Mark, len(keys.UIDs))
	faults := t.read(ctx, space, keys, func(i int, c *Section) {
		out[i] = c.markOf(uint64(keys.UIDs[i]), t.clock.Now())
	})
	for _, f := range faults {
		out[f.Index] = Mark{}
	}
	return out, faults
}

// markOf reads the mark of a UID, which is the last number in a space without tickets. Needs c.mu.
func (c *Section) markOf(uid uint64, now time.Duration) (m Mark) {
	m.Last, _ = c.table.Get(uid)
	m.Value = m.Last
	if c.book != nil {
		m.Value, m.Fence, m.Unknown = c.book.Mark(uid, m.Last, now)
	}
	return m
}

// Promised says that W stores have promised an acquired section now, and what its tickets are. Without
// them, or if they are corrupt, the section begins as after a crash.
func (t *Table) Promised(id seq.SectionID, body []byte) {
	c := t.Section(id)
	if c.space.Tickets == 0 {
		return
	}
	now := t.clock.Now()
	book, err := tickets.Decode(&t.tickets, body, now)
	if err != nil {
		if len(body) > 0 {
			t.log.Warn("tickets not used", "section", id, "error", err)
		}
		book = tickets.New(&t.tickets, now, c.space.Tickets)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endTickets()
	if c.state == Acquiring {
		c.book = book
	} else {
		book.Close()
	}
}

// beginTickets has the book serve from now on. Needs c.mu.
func (c *Section) beginTickets(t *Table) {
	if c.book == nil {
		c.book = tickets.New(&t.tickets, t.clock.Now(), c.space.Tickets)
	}
	c.book.Notify(c.moved)
	c.book.Begin(c.table.High())
}

// endTickets forgets the tickets. Needs c.mu.
func (c *Section) endTickets() {
	if c.book != nil {
		c.book.Close()
		c.book = nil
	}
}

// Tickets returns the tickets of a sealed section as they travel, nil if it has none or they are too many.
func (t *Table) Tickets(id seq.SectionID) []byte {
	c := t.Section(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != Sealed || c.book == nil {
		return nil
	}
	body := c.book.AppendBinary(nil, t.clock.Now())
	if len(body) > mostTickets {
		t.log.Warn("section goes without its tickets: they are too large", "section", id, "bytes", len(body), "most", mostTickets)
		return nil
	}
	return body
}

// expire ends tickets whose time is over, and tells watchers of what time changes, for as long as ctx lasts.
func (t *Table) expire(ctx context.Context) {
	for wake.Sleep(ctx, expireEvery) {
		t.tick()
		if !t.Mapping().HasTickets() {
			continue
		}
		for c := range t.all() {
			if c.space.Tickets == 0 {
				continue
			}
			c.mu.Lock()
			if c.state == Owned && c.book.Len() > 0 {
				c.book.Expire(t.clock.Now())
			}
			c.mu.Unlock()
		}
	}
}
