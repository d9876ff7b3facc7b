package call

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/internal/sdk/route"
	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Server is an AllocSvr or a router, as this Client reaches it: one connection, with two
// streams on it.
type Server struct {
	*route.Server

	c    *Caller
	conn *grpc.ClientConn
	RPC  pb.SequenceClient
	IDs  pb.SnowflakeClient
	Segs pb.SegmentClient

	health    health // of all calls but those for IDs
	idsHealth health
	large     *semaphore.Weighted // of the keys of calls of more than maxQueued
	streams   *stream.Pair
	asking    atomic.Bool // whether it is there
}

// peer is the connection to a server; nil if there is no server.
func peer(s *route.Server) *Server {
	if s == nil {
		return nil
	}
	return s.Peer.(*Server)
}

// connect is the dialler of the route table.
func (c *Caller) connect(to *route.Server) (route.Peer, error) {
	s := &Server{Server: to, c: c, large: semaphore.NewWeighted(maxLarge)}
	opts := append([]grpc.DialOption{rpc.SayTarget(to.Target)}, c.cfg.DialOptions...)
	conn, err := rpc.Dial(to.Addr, opts...)
	if err != nil {
		return nil, err
	}
	s.conn, s.RPC, s.IDs, s.Segs = conn, pb.NewSequenceClient(conn), pb.NewSnowflakeClient(conn), pb.NewSegmentClient(conn)
	s.streams = stream.NewPair(&c.streams, s)
	return s, nil
}

// Routes implements route.Peer.
func (s *Server) Routes(ctx context.Context, limit time.Duration, r *pb.RoutesRequest) (reply *pb.RoutesReply, err error) {
	err = s.try(ctx, limit, func(ctx context.Context) (err error) {
		reply, err = s.RPC.Routes(ctx, r)
		return err
	})
	return reply, err
}

// Silent implements route.Peer.
func (s *Server) Silent() bool { return s.health.silent.Load() }

// HangUp implements route.Peer.
func (s *Server) HangUp() { s.streams.HangUp() }

// Close implements route.Peer.
func (s *Server) Close(cause error) {
	if cause != ErrClosed {
		cause = &lostError{s.Addr, cause}
	}
	s.streams.Close(cause)
	_ = s.conn.Close()
}

// Open implements stream.Server.
func (s *Server) Open(ctx context.Context) (pb.Sequence_StreamClient, error) {
	return s.RPC.Stream(ctx)
}

// Answered notes any word from the server.
func (s *Server) Answered() {
	if s.health.silent.Load() {
		s.health.silent.Store(false)
		s.c.cfg.Logger.Debug("server answers again", "addr", s.Addr)
	}
}

// seek asks the server whether it is there, in the background, if calls for IDs go by it. From a
// goroutine of the Client.
func (s *Server) seek(now time.Time) {
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
func (s *Server) lost(cause error) {
	if !s.health.silent.Swap(true) {
		s.c.cfg.Logger.Debug("server lost", "addr", s.Addr, "cause", cause)
		if of := s.Set(); of != nil {
			of.Poke()
		}
	}
}

// Ended is what the end of a stream means for the calls on it. A server that has not
// begun to serve says so, and so does one of another cluster or era; every other end is a lost attempt.
func (s *Server) Ended(cause error) error {
	if errors.Is(cause, seq.ErrNoQuorum) {
		return cause
	}
	s.lost(cause)
	if route.Strange(cause) {
		return cause
	}
	return &lostError{s.Addr, cause}
}

// attempt makes a unary call once, by the rules of the call that it is for. The attempts of patient calls
// take twice as long in each round as in the round before. The result goes into the server's health.
func (s *Server) attempt(ctx context.Context, r *rules, round int, do func(context.Context) error) error {
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
func (s *Server) try(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	try, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := do(try)
	code := rpc.CodeOf(err)
	switch {
	case err == nil:
		return nil
	case try.Err() != nil && (code == 0 || code == pb.ErrorCode_ERROR_CODE_DEADLINE):
		return &lostError{s.Addr, stream.ErrTimedOut}
	case code != 0 || errors.Is(err, stream.ErrMalformed) || Final(err):
		return err
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.Canceled, codes.DeadlineExceeded:
		return &lostError{s.Addr, err}
	case codes.InvalidArgument, codes.OutOfRange, codes.ResourceExhausted:
		return fmt.Errorf("%w: %s: %w", seq.ErrBadArgument, s.Addr, err)
	}
	return &namelessError{s.Addr, err}
}

// sweepEvery is the longest time between two passes of sweepLoop.
const sweepEvery = 125 * time.Millisecond

// sweepLoop gives up attempts on streams that take too long, and asks whether servers are back that calls
// for IDs go by. One ticker for all calls costs less than a timer for each.
func (c *Caller) sweepLoop() {
	tick := time.NewTicker(min(max(c.cfg.AttemptTimeout/4, time.Millisecond), sweepEvery))
	defer tick.Stop()
	var all []*route.Server
	for {
		select {
		case <-c.ctx.Done():
			return
		case now := <-tick.C:
			all = c.table.Servers(all[:0])
			for _, one := range all {
				s := peer(one)
				s.seek(now)
				s.streams.Sweep(now)
			}
		}
	}
}

// listenEvery is the time between two passes of listenLoop where a space is strict or exact.
const listenEvery = 10 * time.Millisecond

// listenLoop finds servers that owe answers for keys of strict and exact spaces and say nothing.
func (c *Caller) listenLoop() {
	var all []*route.Server
	last := time.Now()
	for pause := listenEvery; wake.Sleep(c.ctx, pause); {
		now := time.Now()
		v := c.table.View()
		if v == nil || !slices.ContainsFunc(v.Mapping.Spaces, func(s seq.Space) bool { return s.Mode.Leaseless() }) {
			pause, last = sweepEvery, now
			continue
		}
		late := now.Sub(last) - pause
		pause, last = listenEvery, now
		all = c.table.Servers(all[:0])
		for _, one := range all {
			s := peer(one)
			if late > listenEvery {
				s.streams.Late(late)
			}
			s.listen(now)
		}
	}
}

// listen asks a server that owes answers for keys of strict and exact spaces whether it is there. If it is
// not, the standbys are asked for these keys: they take over without waiting for a lease.
func (s *Server) listen(now time.Time) {
	doubt, silent := s.streams.Owing(now)
	if silent {
		s.streams.GiveUp()
	}
	if doubt && s.asking.CompareAndSwap(false, true) {
		s.c.tasks.Go(func() {
			defer s.asking.Store(false)
			ctx, cancel := context.WithTimeout(s.c.ctx, s.c.cfg.AttemptTimeout)
			defer cancel()
			if s.askQuorum(ctx) != errSilent {
				s.streams.Heard(time.Now())
				s.Answered()
			}
		})
	}
}
