package sim

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// ticketLife is the life of tickets in the spaces that give them. It is longer than a takeover, so that new owners
// are asked for marks while numbers of the owner before are open.
const ticketLife = 20 * time.Second

// shelf is the database of writers with tickets and of readers that go by marks. It checks R1 to R3 of
// allocsvr/section/tickets. Writers of keys with the fence may commit late. A new era forgets all.
type shelf struct {
	w *world

	mu   sync.Mutex // guards all below
	era  seq.Era
	keys map[history.Key]*rows
}

// rows is what the database and the readers of a key know.
type rows struct {
	told  uint64              // the highest mark
	read  uint64              // readers have passed this number
	floor uint64              // the fence lets no row in at or below
	there map[uint64]struct{} // rows that are committed, of a repeated request by any of its callers
}

// fenced reports whether writers and readers of a key use the fence. Every section has keys of both sorts.
func fenced(key history.Key) bool { return key.UID>>(seq.BlockBits-1)%2 == 1 }

// tickets reports whether the space of a key gives tickets in this run.
func (w *world) tickets(key history.Key) bool {
	if key.Space == nameSpace {
		return false
	}
	s, err := w.whole.Space(key.Space)
	return err == nil && s.Tickets > 0
}

// of returns the rows of a key in an era, or nil if the era is over. Needs s.mu.
func (s *shelf) of(key history.Key, era seq.Era) *rows {
	if now := s.w.check.eras.present(); now != s.era {
		s.era, s.keys = now, map[history.Key]*rows{}
	}
	if era != s.era {
		return nil
	}
	r := s.keys[key]
	if r == nil {
		r = &rows{there: map[uint64]struct{}{}}
		s.keys[key] = r
	}
	return r
}

// told returns the highest mark that a reader of a key was told.
func (s *shelf) told(key history.Key, era seq.Era) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.of(key, era); r != nil {
		return r.told
	}
	return 0
}

// marked takes in a mark that was asked for after the mark before was told. dies says that the reader dies before
// it raises the floor.
func (s *shelf) marked(key history.Key, era seq.Era, before, mark, fence uint64, dies bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.of(key, era)
	if r == nil || s.w.opts.Beyond {
		return
	}
	if mark < before {
		s.w.check.broken("R2", "mark %d of %v after %d", mark, key, before)
	}
	if r.told = max(r.told, mark); fenced(key) {
		if dies {
			return
		}
		if fence > r.floor {
			r.floor = max(r.floor, mark)
		}
	}
	r.read = max(r.read, mark)
}

// commit commits a row, in time or late, and returns whether it is there.
func (s *shelf) commit(key history.Key, era seq.Era, n uint64, late bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.of(key, era)
	if r == nil || s.w.opts.Beyond {
		return false
	}
	if _, there := r.there[n]; there {
		return true
	}
	switch {
	case fenced(key) && n <= r.floor:
		if !late {
			s.w.check.broken("R1", "row %d of %v is refused in time, at floor %d", n, key, r.floor)
		}
		return false
	case n <= r.read:
		s.w.check.broken("R1", "row %d of %v is committed, late: %v, and readers have passed %d", n, key, late, r.read)
	}
	r.there[n] = struct{}{}
	return true
}

// open takes numbers with a ticket, and commits them later, or too late, or never. In an exact space
// they belong to a request, which may be repeated.
func (c *caller) open(ctx context.Context, key history.Key, count uint32, of *once) error {
	c.w.mu.Lock()
	fate, pause := c.w.rng.IntN(10), c.w.between(0, ticketLife)
	c.w.mu.Unlock()
	return c.try(ctx, key, func(ctx context.Context, at *conn) error {
		start, floor, era := c.w.now(), c.w.check.promises.floor(key), c.w.check.eras.present()
		sent := c.h.clock.real() // a writer that is paused commits when it wakes up
		req := &pb.OpenRequest{Space: key.Space, Id: &pb.OpenRequest_Uid{Uid: key.UID}, Count: count}
		if of != nil {
			req.Count, req.RequestId, era = of.count, []byte(of.id), of.era
			if !of.sent.IsZero() {
				req.FirstSentMs = of.sent.UnixMilli()
			}
		}
		reply, err := pb.NewSequenceClient(at).Open(ctx, req)
		switch {
		case of == nil:
			c.took(key, start, floor, reply.GetFirst(), reply.GetLast(), false, err)
		case err == nil:
			c.w.check.onces.got(c, of, reply.GetFirst(), reply.GetLast(), reply.GetReplayed())
		case final(err):
			c.w.check.onces.refused(of, of.sent, err)
			return nil
		case errors.Is(err, seq.ErrTicketEnded): // its numbers are closed
			return nil
		}
		if err != nil || fate == 0 { // the writer dies
			return err
		}
		if fate == 1 && fenced(key) {
			pause += ticketLife
		}
		c.w.work.Go(func() { c.follow(key, pause) })
		c.w.schedule(pause, func() {
			late := c.h.clock.real()-sent >= ticketLife
			if late && !fenced(key) {
				return
			}
			there := true
			for n := reply.GetFirst(); n <= reply.GetLast(); n++ {
				there = c.w.check.shelf.commit(key, era, n, late) && there
			}
			if fate == 2 || of != nil && !there { // its Done is lost; or the ticket may be another caller's, too
				return
			}
			c.w.work.Go(func() { c.end(key, at, reply) })
		})
		return nil
	})
}

// follow reads a key by its marks for a while.
func (c *caller) follow(key history.Key, d time.Duration) {
	reader := &caller{w: c.w, h: c.h, index: c.index, where: map[history.Key]string{}}
	ctx, cancel := context.WithTimeout(c.w.life, d)
	defer cancel()
	for ctx.Err() == nil {
		_, _ = reader.mark(ctx, key)
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// end sends a Done to the node that opened the ticket.
func (c *caller) end(key history.Key, at *conn, opened *pb.OpenReply) {
	ctx, cancel := context.WithTimeout(c.w.life, c.w.opts.Patience)
	defer cancel()
	done := &pb.DoneRequest{Space: key.Space, Id: &pb.DoneRequest_Uid{Uid: key.UID}, First: opened.GetFirst(), Ticket: opened.GetTicket()}
	_, _ = pb.NewSequenceClient(at).Done(ctx, done) // else its time ends it
}

// mark reads by a mark, and returns it, or 0 while it is not known.
func (c *caller) mark(ctx context.Context, key history.Key) (mark uint64, err error) {
	c.w.mu.Lock()
	dies := c.w.chance(0.1)
	c.w.mu.Unlock()
	err = c.try(ctx, key, func(ctx context.Context, at *conn) error {
		era := c.w.check.eras.present()
		before := c.w.check.shelf.told(key, era)
		reply, err := pb.NewSequenceClient(at).Mark(ctx, &pb.MarkRequest{Batches: []*pb.Batch{batchOf(key)}})
		if err != nil {
			return err
		}
		got := reply.GetResults()[0]
		if errs := got.GetErrors(); len(errs) > 0 {
			return rpc.FromKeyError(errs[0])
		}
		if got.GetUnknownMs()[0] == 0 {
			mark = got.GetMarks()[0]
			c.w.check.shelf.marked(key, era, before, mark, got.GetFences()[0], dies)
		}
		return nil
	})
	return mark, err
}

// settle sees that every mark reaches what was handed out by now, once the faults are over (R3).
func (s *shelf) settle(c *caller) {
	ctx, cancel := context.WithTimeout(s.w.life, patience)
	defer cancel()
	wanted := map[history.Key]uint64{}
	for _, key := range c.keys {
		wanted[key] = s.w.check.promises.floor(key)
	}
	for _, key := range c.keys {
		for s.w.tickets(key) {
			mark, err := c.mark(ctx, key)
			if err == nil && mark >= wanted[key] {
				break
			}
			if ctx.Err() != nil {
				if s.w.life.Err() == nil {
					s.w.check.broken("R3", "the mark of %v is %d %v after healing, want %d: %v", key, mark, patience, wanted[key], err)
				}
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(retryPause):
			}
		}
	}
}
