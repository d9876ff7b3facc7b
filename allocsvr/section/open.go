package section

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/logs"
	"github.com/seqsvr/seqsvr/allocsvr/section/tickets"
	"github.com/seqsvr/seqsvr/exact"
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

// Open is Take that opens a ticket of that life for the numbers of each key. In an exact space, requests[i] names
// the request of keys[i]; if nil, no request has an id. A repeated request has the ticket of before, and
// seq.ErrTicketEnded if marks may have passed its numbers. ids[i] is 0 where Faults has i. seq.ErrTickets.
func (t *Table) Open(ctx context.Context, space *seq.Space, keys seq.Counters, counts []uint32, requests []Request, life time.Duration) (out Taken, ids []uint64) {
	k := new(Taking)
	k.Set(t, space, keys, counts)
	k.opening = &opening{life: life, ids: make([]uint64, len(keys.UIDs))}
	k.Name(requests)
	for i := range keys.UIDs {
		k.pending = append(k.pending, i)
		k.line.hold(t.Section(space.SectionOf(keys.Places[i])), keys.UIDs[i], k.count(i))
	}
	k.waits()
	k.Settle(ctx)
	for _, f := range k.out.Faults {
		id := k.opening.ids[f.Index]
		k.opening.ids[f.Index] = 0
		// Some were taken before a strict space refused them. In an exact space, the repeated request gets them.
		if id != 0 && !k.exact {
			k.revoke(f.Index, id)
		}
	}
	return k.out, k.opening.ids
}

// ticketID returns the id of a new ticket. JSON keeps it whole.
func ticketID() uint64 { return rand.Uint64N(uint64(seq.MaxSeq)) + 1 }

// open opens the ticket of index i, whose numbers were taken under this lock. Needs c.mu.
func (t *Taking) open(c *Section, i int) {
	id := ticketID()
	t.opening.ids[i] = id
	// The clock is read after the take: the owner's end is later than the writer's, who counts from the sending.
	c.book.Open(uint64(t.keys.UIDs[i]), t.out.First[i], t.out.Last[i], id, t.table.clock.Now(), t.opening.life)
}

// openLogged has the log of an exact section take the numbers of index i for a request, and opens their ticket
// under the same lock, so that a mark that knows the numbers knows the ticket.
func (t *Taking) openLogged(ctx context.Context, c *Section, g *logs.Log, at *logs.Instant, i int, r Request) (logs.Ticket, error) {
	if err := g.Opened(ctx); err != nil {
		return logs.Ticket{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != Owned || c.log != g {
		return logs.Ticket{}, logs.ErrClosed
	}
	uid, now := t.keys.UIDs[i], t.table.clock.Now()
	if err := c.book.Admit(uint64(uid), now); err != nil {
		return logs.Ticket{}, err
	}
	got, err := g.Take(ctx, at, uid, uint32(t.count(i)), r.ID, r.Sent)
	if err != nil {
		return got, err
	}
	id, last := ticketID(), got.First+uint64(got.Count)-1
	if got.Replayed {
		id = c.book.Again(uint64(uid), got.First, last, id, now, t.opening.life)
	} else {
		c.book.Open(uint64(uid), got.First, last, id, now, t.opening.life)
	}
	t.opening.ids[i] = id
	return got, nil
}

// closed returns the error of index i if its request was repeated after marks may have passed its numbers.
func (t *Taking) closed(i int, a exact.Answer) error {
	if t.opening == nil || t.opening.ids[i] != 0 {
		return nil
	}
	return fmt.Errorf("%w: request %q has %d to %d, and they are closed: readers may have passed them",
		seq.ErrTicketEnded, t.requests[i].ID, a.First, a.First+uint64(a.Count)-1)
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

// Away reports whether a request for some of the keys would wait until this node serves the section.
func (t *Table) Away(space *seq.Space, keys seq.Counters) bool {
	for _, place := range keys.Places {
		c := t.Section(space.SectionOf(place))
		c.mu.Lock()
		away := c.state == Acquiring || c.state == Sealed
		c.mu.Unlock()
		if away {
			return true
		}
	}
	return false
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
	if space.Mode == seq.Exact {
		return t.marksLogged(ctx, space, keys)
	}
	out := make([]Mark, len(keys.UIDs))
	faults := t.read(ctx, space, keys, func(i int, c *Section) {
		last, _ := c.table.Get(uint64(keys.UIDs[i]))
		out[i] = c.markOf(uint64(keys.UIDs[i]), last, t.clock.Now())
	})
	for _, f := range faults {
		out[f.Index] = Mark{}
	}
	return out, faults
}

// marksLogged is Marks in an exact space.
func (t *Table) marksLogged(ctx context.Context, space *seq.Space, keys seq.Counters) (out []Mark, faults []Fault) {
	out = make([]Mark, len(keys.UIDs))
	ids := make([]seq.SectionID, len(out))
	for i, place := range keys.Places {
		ids[i] = space.SectionOf(place)
	}
	t.markLogged(ctx, ids, func(i int) seq.UID { return keys.UIDs[i] }, func(i int, _ *Section, m Mark, err error) {
		if out[i] = m; err != nil {
			faults = append(faults, Fault{Index: i, Err: err})
		}
	})
	return out, faults
}

// markLogged calls done with the mark of each UID, by index, in its section of an exact space, which is locked
// unless err is not nil. The last number waits for a commit that began after the call, so that an owner of
// before, whose tickets may be over, answers nothing.
func (t *Table) markLogged(ctx context.Context, ids []seq.SectionID, uid func(i int) seq.UID, done func(i int, c *Section, m Mark, err error)) {
	asked := make([]*logs.Log, len(ids))
	ask := func(i int, g *logs.Log) (logs.Ticket, error) {
		asked[i] = g
		return g.Current(ctx, uid(i))
	}
	t.logged.find.AskAll(ctx, ids, ask, func(i int, a exact.Answer, err error) {
		c := t.Section(ids[i])
		for ; err == nil; a, err = t.logged.find.Ask(ctx, ids[i], func(g *logs.Log) (logs.Ticket, error) { return ask(i, g) }) {
			c.mu.Lock()
			if c.state == Owned && c.log == asked[i] { // else it was given up meanwhile
				done(i, c, c.markOf(uint64(uid(i)), a.First, t.clock.Now()), nil)
				c.mu.Unlock()
				return
			}
			c.mu.Unlock()
		}
		done(i, c, Mark{}, err)
	})
}

// begun says that the log of a section begins from a copy, before it serves.
func (t *Table) begun(id seq.SectionID, epoch seq.Epoch, o *exact.Owner) {
	c := t.Section(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == Owned && c.epoch == epoch && c.book != nil {
		c.book.Begin(o.Highest(), func(uid uint64) uint64 { return o.Last(seq.UID(uid)) })
	}
}

// markOf returns the mark of a UID, which is the last number in a space without tickets. Needs c.mu.
func (c *Section) markOf(uid, last uint64, now time.Duration) Mark {
	m := Mark{Last: last, Value: last}
	if c.book != nil {
		m.Value, m.Fence, m.Unknown = c.book.Mark(uid, last, now)
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
	c.book.Notify(func(uid uint64) {
		t.stats.expired[t.indexOf(c.space)].Add(1)
		c.moved(uid)
	})
	if c.log == nil { // else the log says so once it has read the section's copy
		c.book.Begin(c.table.High(), nil)
	}
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
		t.sweep()
	}
}

func (t *Table) sweep() {
	spaces := t.Mapping().Spaces
	open := make([]tickets.Census, len(spaces))
	for i, s := range spaces {
		if s.Tickets > 0 && t.tickets.Open.Load() > 0 {
			open[i] = t.expireIn(&s)
		}
	}
	t.reading.keep(open, t.tick(), t.ends())
}

// expireIn ends tickets of a space, and counts the others.
func (t *Table) expireIn(s *seq.Space) (all tickets.Census) {
	for id := s.First; id < s.First+seq.SectionID(s.Sections); id++ {
		c := t.Section(id)
		c.mu.Lock()
		if c.state == Owned && c.book.Len() > 0 {
			of := c.book.Expire(t.clock.Now())
			all.Open, all.Oldest = all.Open+of.Open, max(all.Oldest, of.Oldest)
		}
		c.mu.Unlock()
	}
	return all
}
