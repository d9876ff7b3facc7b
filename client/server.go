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
	"github.com/seqsvr/seqsvr/internal/sdk/stream"
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
	streams   *stream.Pair
}

// open is for a new server.
func (s *server) open(conn *grpc.ClientConn) {
	s.conn, s.rpc, s.ids, s.segs = conn, pb.NewSequenceClient(conn), pb.NewSnowflakeClient(conn), pb.NewSegmentClient(conn)
	s.large = semaphore.NewWeighted(maxLarge)
	s.streams = stream.NewPair(&s.c.streams, s)
}

// Open implements stream.Server.
func (s *server) Open(ctx context.Context) (pb.Sequence_StreamClient, error) {
	return s.rpc.Stream(ctx)
}

// Answered notes any word from the server.
func (s *server) Answered() {
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

// Ended is what the end of a stream means for the calls on it. A server that has not
// begun to serve says so, and so does one of another cluster or era; every other end is a lost attempt.
func (s *server) Ended(cause error) error {
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
		s.Answered()
	case errors.Is(end, context.Canceled), end != nil && !r.patient:
		return end // by the caller: it says nothing of the server
	case silent && r.ids && lost.cause == stream.ErrTimedOut:
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
		return &lostError{s.addr, stream.ErrTimedOut}
	case code != 0 || errors.Is(err, stream.ErrMalformed) || final(err):
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

func (s *server) close(cause error) {
	s.streams.Close(cause)
	_ = s.conn.Close()
}
