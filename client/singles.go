package client

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/snowflake"
)

// flightsPerNamespace is how many batches of single IDs may be under way. One would
// leave all callers behind a silent AllocSvr; many would make batches of one.
const flightsPerNamespace = 4

// singles lets single IDs of concurrent callers travel together: who comes while all
// flights of a namespace are under way waits for the next one.
type singles struct {
	c *Client

	mu     sync.Mutex // guards all below
	spaces map[string]*gathering
	closed bool
}

// gathering is one namespace's. It exists only while somebody wants an ID, so that
// names that are none are not kept.
//
//	flights <= flightsPerNamespace; flights > 0 while somebody waits
type gathering struct {
	waiting []*single
	flights int
}

// single is one caller. Whoever flies it closes done, once; a caller that leaves early
// loses its ID and disturbs no other.
type single struct {
	until time.Time
	done  chan struct{}
	out   IDs
	err   error
}

func (q *singles) next(ctx context.Context, namespace string) (IDs, error) {
	until, ok := ctx.Deadline()
	if !ok {
		until = time.Now().Add(q.c.cfg.Timeout)
	}
	s := &single{until: until, done: make(chan struct{})}
	if err := q.join(namespace, s); err != nil {
		return IDs{}, err
	}
	select {
	case <-s.done:
		return s.out, s.err
	case <-ctx.Done():
		return IDs{}, ctx.Err()
	}
}

func (q *singles) join(namespace string, s *single) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return ErrClosed
	}
	g := q.spaces[namespace]
	if g == nil {
		g = &gathering{}
		q.spaces[namespace] = g
	}
	if len(g.waiting) >= q.c.cfg.MaxQueue {
		return errQueueFull
	}
	g.waiting = append(g.waiting, s)
	if g.flights < flightsPerNamespace {
		g.flights++
		q.c.tasks.Go(func() { q.fly(namespace, g) })
	}
	return nil
}

// fly takes all that wait, again and again until nobody does.
func (q *singles) fly(namespace string, g *gathering) {
	for {
		q.mu.Lock()
		batch := g.waiting
		if len(batch) > MaxIDs {
			batch, g.waiting = batch[:MaxIDs:MaxIDs], append([]*single(nil), batch[MaxIDs:]...)
		} else {
			g.waiting = nil
		}
		if len(batch) == 0 {
			if g.flights--; g.flights == 0 {
				delete(q.spaces, namespace)
			}
			q.mu.Unlock()
			return
		}
		q.mu.Unlock()
		q.serve(namespace, batch)
	}
}

// serve gets IDs for the whole batch. Where the namespace's policy is to refuse, a
// batch can be refused though its callers one by one would not be: it is halved.
func (q *singles) serve(namespace string, batch []*single) {
	until := batch[0].until
	for _, s := range batch {
		if s.until.After(until) {
			until = s.until
		}
	}
	ctx, cancel := context.WithDeadline(q.c.ctx, until)
	defer cancel()
	got, err := q.c.generate(ctx, q.c.cfg.Agent, namespace, uint32(len(batch)), len(batch) > 1)
	if errors.Is(err, errSplit) {
		half := len(batch) / 2
		q.serve(namespace, batch[:half])
		q.serve(namespace, batch[half:])
		return
	}
	if err != nil {
		if q.c.ctx.Err() != nil {
			err = ErrClosed
		}
		for _, s := range batch {
			s.err = err
			close(s.done)
		}
		return
	}
	i := 0
	for id := range got.All() {
		s := batch[i]
		s.out = got
		s.out.Runs = []snowflake.Run{{First: id, Last: id, Stride: 1}}
		close(s.done)
		i++
	}
}

// close refuses those who come later; flights end with the Client's context.
func (q *singles) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
}
