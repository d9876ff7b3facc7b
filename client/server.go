package client

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/internal/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// server is an AllocSvr or a router, as this Client reaches it: one connection, with two
// streams on it.
type server struct {
	c    *Client
	addr string
	conn *grpc.ClientConn
	rpc  pb.SequenceClient
	ids  pb.SnowflakeClient
	segs pb.SegmentClient
	seed bool                // of Config.Addrs: kept whatever the table says
	of   atomic.Pointer[set] // that it is of, as its table or the server itself said last; nil: neither did

	word    atomic.Pointer[word]  // of Config.Addrs: what it said before the Client served; nil: nothing
	vouched atomic.Pointer[held]  // that the server is of, by its own word or by a table or map; nil: it is not known
	other   atomic.Pointer[error] // why the server is left out; nil: it is not
	doubted atomic.Bool           // it is being asked which life it is of
	mute    atomic.Bool           // a warning was given that the server tells no incarnation

	health    health // of all calls but those for IDs
	idsHealth health
	large     *semaphore.Weighted // of the keys of calls of more than maxQueued
	streams   [2]*stream
	balance   balance
}

// open is for a new server.
func (s *server) open(conn *grpc.ClientConn) {
	s.conn, s.rpc, s.ids, s.segs = conn, pb.NewSequenceClient(conn), pb.NewSnowflakeClient(conn), pb.NewSegmentClient(conn)
	s.large = semaphore.NewWeighted(maxLarge)
	s.balance.born = time.Now()
	for i := range s.streams {
		s.streams[i] = newStream(s, &s.balance.load[i])
	}
}

// answered notes any word from the server.
func (s *server) answered() {
	if s.health.silent.Load() {
		s.health.silent.Store(false)
		s.c.cfg.Logger.Debug("server answers again", "addr", s.addr)
	}
}

// seek asks the server whether it is there, in the background, if calls for IDs go by it. From a
// goroutine of the Client.
func (s *server) seek(now time.Time) {
	h := &s.idsHealth
	if !h.passed.Load() || !h.probe(now) {
		return
	}
	h.passed.Store(false)
	s.c.tasks.Go(func() {
		defer h.release()
		ctx, cancel := context.WithTimeout(s.c.ctx, outageBound)
		defer cancel()
		if s.askQuorum(ctx) != errSilent {
			h.spoke.Store(true)
		}
	})
}

// lost notes an attempt without an answer, which may mean that the table is old.
func (s *server) lost(cause error) {
	if !s.health.silent.Swap(true) {
		s.c.cfg.Logger.Debug("server lost", "addr", s.addr, "cause", cause)
		if of := s.set(); of != nil {
			of.poke()
		}
	}
}

// streamEnded is what the end of a stream means for the calls on it. A server that has not
// begun to serve says so, and so does one of another cluster or era; every other end is a lost attempt.
func (s *server) streamEnded(cause error) error {
	if errors.Is(cause, seq.ErrNoQuorum) {
		return cause
	}
	s.lost(cause)
	if anyOf(cause, strange) {
		return cause
	}
	return &lostError{s.addr, cause}
}

// attempt makes a unary call once, by the rules of the call that it is for: a round's
// attempts of patient calls take twice as long as those of the round before. What became of
// it is noted in the server's health.
func (s *server) attempt(ctx context.Context, r *rules, round int, do func(context.Context) error) error {
	limit := s.c.cfg.AttemptTimeout
	switch {
	case r.once:
		limit = s.c.cfg.Timeout // the caller's deadline stands before it
		if deadline, ok := ctx.Deadline(); ok {
			limit = time.Until(deadline)
		}
	case r.patient:
		limit <<= 1 + min(round, 6)
		if s.c.cfg.Indirect {
			limit *= 4 // a router waits for others in its turn
		}
	}
	err := s.try(ctx, limit, do)
	lost, silent := err.(*lostError)
	switch end := ctx.Err(); {
	case err == nil, !silent && end == nil:
		if r.ids {
			s.idsHealth.silent.Store(false)
		}
		s.answered()
	case errors.Is(end, context.Canceled), end != nil && !r.patient:
		return end // by the caller: it says nothing of the server
	case silent && r.ids && lost.cause == errTimedOut:
		s.idsHealth.hush()
	case end != nil:
	default:
		if r.ids {
			s.idsHealth.hush()
		}
		s.lost(lost.cause)
	}
	return err
}

// try makes a unary call once, within the limit, and sorts its error: one with a name, a
// final one, a *namelessError or a *lostError.
func (s *server) try(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	try, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := do(try)
	code := rpc.CodeOf(err)
	switch {
	case err == nil:
		return nil
	case try.Err() != nil && (code == 0 || code == pb.ErrorCode_ERROR_CODE_DEADLINE):
		return &lostError{s.addr, errTimedOut}
	case code != 0 || errors.Is(err, errMalformed) || final(err):
		return err
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.Canceled, codes.DeadlineExceeded:
		return &lostError{s.addr, err}
	case codes.InvalidArgument, codes.OutOfRange, codes.ResourceExhausted:
		return fmt.Errorf("%w: %s: %w", seq.ErrBadArgument, s.addr, err)
	}
	return &namelessError{s.addr, err}
}

// queue gives a key a slot in a batch on one of the streams. Without an error the batch is
// completed exactly once, within about AttemptTimeout.
func (s *server) queue(space *seq.Space, key Key, count uint32, r *request) (slot, error) {
	k := s.balance.pick()
	t, full, err := s.streams[k].enqueue(space, key, count, r, s.room(k))
	if full {
		t, _, err = s.streams[1-k].enqueue(space, key, count, r, s.room(1-k))
	}
	return t, err
}

// queueAll is queue for the keys of a NextBatch at idx, all in one batch.
func (s *server) queueAll(space *seq.Space, keys *takes, idx []int) (slot, error) {
	k := s.balance.pick()
	t, full, err := s.streams[k].enqueueAll(space, keys, idx, s.room(k))
	if full {
		t, _, err = s.streams[1-k].enqueueAll(space, keys, idx, s.room(1-k))
	}
	return t, err
}

// room is how many keys may wait for a stream: MaxQueue for both together.
func (s *server) room(stream int) int { return (s.c.cfg.MaxQueue + 1 - stream) / 2 }

func (s *server) close(cause error) {
	for _, st := range s.streams {
		st.close(cause)
	}
	_ = s.conn.Close()
}
