package client

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/internal/sdk/call"
	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/snowflake"
)

// batchesPerNamespace limits the batches of single IDs in flight. With one batch, all callers would wait
// behind a silent AllocSvr. With many, a batch would have one ID.
const batchesPerNamespace = 4

// idQueues let single IDs of concurrent callers share calls: a call that arrives while all
// batches of its namespace are in flight waits for the next one.
type idQueues struct {
	c *Client

	mu     sync.Mutex // guards all below
	spaces map[string]*idQueue
	closed bool
}

// idQueue is one namespace's. It exists only while a caller wants an ID, so that names of
// namespaces that do not exist are not kept.
//
//	senders <= batchesPerNamespace; senders > 0 while a caller waits
type idQueue struct {
	waiting []*idSlot
	senders int
}

// idSlot is one caller's place. The sender closes done, once; a caller that leaves early
// loses its ID and disturbs no other.
type idSlot struct {
	until time.Time
	done  chan struct{}
	out   IDs
	err   error
}

func (q *idQueues) open(c *Client) { q.c, q.spaces = c, map[string]*idQueue{} }

// next is one ID.
func (q *idQueues) next(ctx context.Context, namespace string) (IDs, error) {
	until, ok := ctx.Deadline()
	if !ok {
		until = time.Now().Add(q.c.cfg.Timeout)
	}
	s := &idSlot{until: until, done: make(chan struct{})}
	if err := q.enqueue(namespace, s); err != nil {
		return IDs{}, err
	}
	select {
	case <-s.done:
		return s.out, s.err
	case <-ctx.Done():
		return IDs{}, ctx.Err()
	}
}

func (q *idQueues) enqueue(namespace string, s *idSlot) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return ErrClosed
	}
	n := q.spaces[namespace]
	if n == nil {
		n = &idQueue{}
		q.spaces[namespace] = n
	}
	if len(n.waiting) >= q.c.cfg.MaxQueue {
		return stream.ErrFull
	}
	n.waiting = append(n.waiting, s)
	if n.senders < batchesPerNamespace {
		n.senders++
		q.c.calls.Go(func() { q.send(namespace, n) })
	}
	return nil
}

// send serves all that wait, again and again until none does.
func (q *idQueues) send(namespace string, n *idQueue) {
	for {
		q.mu.Lock()
		batch := n.waiting
		if len(batch) > MaxIDs {
			batch, n.waiting = batch[:MaxIDs:MaxIDs], append([]*idSlot(nil), batch[MaxIDs:]...)
		} else {
			n.waiting = nil
		}
		if len(batch) == 0 {
			if n.senders--; n.senders == 0 {
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
func (q *idQueues) serve(namespace string, batch []*idSlot) {
	until := batch[0].until
	for _, s := range batch {
		if s.until.After(until) {
			until = s.until
		}
	}
	ctx, cancel := context.WithDeadline(q.c.calls.Context(), until)
	defer cancel()
	request := &pb.SnowflakeGenerateRequest{Namespace: namespace, Count: uint32(len(batch)), Agent: q.c.cfg.Agent}
	got, err := generate(ctx, q.c, request, len(batch) > 1)
	if errors.Is(err, call.ErrSplit) {
		half := len(batch) / 2
		q.serve(namespace, batch[:half])
		q.serve(namespace, batch[half:])
		return
	}
	if err != nil {
		if q.c.calls.Context().Err() != nil {
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

// close refuses what comes later; batches in flight end with the Client's context.
func (q *idQueues) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
}
