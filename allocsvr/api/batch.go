package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// nextCall is a BatchNext in progress: begin, then reply. It may be used again after
// its reply has been sent, and then allocates nothing.
type nextCall struct {
	s     *Sequence
	req   *pb.BatchNextRequest
	takes []section.Taking
	line  section.Line // of keys that stand in several batches, too
	// refused are the batches whose space is not known, or keeps no request ids; nil if there are none.
	refused map[int]error
	out     pb.BatchNextReply
	room    []*pb.BatchResult
}

// begin checks the request and serves what it can at once. Nothing is taken of a request that is
// malformed; a batch whose space is not known is refused by the key. hashes says that the caller hashes string keys itself.
func (c *nextCall) begin(s *Sequence, hashes bool, req *pb.BatchNextRequest) error {
	if err := seq.CheckKeys("batches", rpc.Keys(req.Batches)); err != nil {
		return err
	}
	c.s, c.req, c.line, c.refused = s, req, section.Line{}, nil
	c.takes = slices.Grow(c.takes[:0], len(req.Batches))[:len(req.Batches)]
	for len(c.room) < len(req.Batches) {
		c.room = append(c.room, &pb.BatchResult{})
	}
	for i, b := range req.Batches {
		space, keys, err := s.countersOf(hashes, i, b.Space, seq.Batch{UIDs: b.Uids, Keys: b.Keys, Counts: b.Counts, IDs: b.RequestIds, Sent: b.FirstSentMs})
		var requests []section.Request
		if err == nil {
			if requests, err = requestsOf(space, b.RequestIds, b.FirstSentMs); err != nil {
				err = fmt.Errorf("batches[%d]: %w", i, err)
			}
		}
		if errors.Is(err, seq.ErrUnknownSpace) || errors.Is(err, seq.ErrIDNotKept) {
			c.refuse(i, err)
			continue
		}
		if err != nil {
			return err
		}
		c.takes[i].Set(s.Sections, space, keys, b.Counts)
		c.takes[i].Behind(&c.line)
		if requests != nil {
			c.takes[i].Name(requests)
		}
	}
	// The clock is read once, after the last request of the batch has arrived.
	m := s.Sections.BatchClock()
	for i := range c.takes {
		c.takes[i].Pass(m)
	}
	return nil
}

// noSpace stands in for the space of a refused batch, whose keys are not taken.
var noSpace = &seq.Space{Sections: 1}

// refuse refuses the keys of batch i. The other batches go on.
func (c *nextCall) refuse(i int, err error) {
	if c.refused == nil {
		c.refused = map[int]error{}
	}
	c.refused[i] = err
	c.takes[i].Set(c.s.Sections, noSpace, seq.Counters{}, nil)
}

// settled reports whether no take waits.
func (c *nextCall) settled() bool {
	for i := range c.takes {
		if !c.takes[i].Settled() {
			return false
		}
	}
	return true
}

// early returns a reply with the numbers that needed no waiting. If ok is false, there are none, or a
// quorum must be asked before even they may be given. The caller must send the reply before it calls reply.
func (c *nextCall) early() (reply *pb.BatchNextReply, ok bool) {
	for i := range c.takes {
		some, may := c.takes[i].Early()
		if !may {
			return nil, false
		}
		ok = ok || some
	}
	return c.fill(), ok
}

// reply waits for what is still open, as long as ctx lasts.
func (c *nextCall) reply(ctx context.Context) *pb.BatchNextReply {
	for i := range c.takes {
		c.takes[i].Settle(ctx)
	}
	return c.fill()
}

func (c *nextCall) fill() *pb.BatchNextReply {
	c.out.Results = c.room[:len(c.takes)]
	for i, r := range c.out.Results {
		if err := c.refused[i]; err != nil {
			b := c.req.Batches[i]
			n := len(b.Uids) + len(b.Keys)
			r.First, r.Last, r.Errors, r.Unordered, r.Replayed = make([]uint64, n), nil, rpc.ErrorOfAll(err, n), false, nil
			continue
		}
		got := c.takes[i].Out()
		r.First, r.Last, r.Errors, r.Unordered, r.Replayed = got.First, nil, keyErrors(got.Faults), got.Unordered, got.Replayed
		if len(r.First) > 0 && &got.Last[0] != &got.First[0] {
			r.Last = got.Last
		}
	}
	c.out.RouteVersion, c.out.Routes = c.s.routesFor(c.req.RouteVersion)
	return &c.out
}

// enter lets a request with at most seq.MaxBatch keys in when it is its caller's turn.
func (s *Sequence) enter(ctx context.Context, batches []*pb.Batch) (*gate.Place, error) {
	if err := seq.CheckKeys("batches", rpc.Keys(batches)); err != nil {
		return nil, err
	}
	return s.Limits.inWork.Enter(ctx, rpc.Load(batches))
}

// inTime ends before ctx does, so that what was taken reaches a caller who would take it again.
func inTime(ctx context.Context) (context.Context, context.CancelFunc) {
	end, _ := ctx.Deadline()
	return context.WithTimeout(ctx, time.Until(end)*4/5)
}

// BatchNext implements pb.SequenceServer.
func (s *Sequence) BatchNext(ctx context.Context, req *pb.BatchNextRequest) (*pb.BatchNextReply, error) {
	place, err := s.enter(ctx, req.Batches)
	if err != nil {
		return nil, err
	}
	defer place.Leave()
	var call nextCall
	if err := call.begin(s, rpc.HashesKeys(ctx), req); err != nil {
		return nil, err
	}
	if !call.settled() {
		place.Waits()
		var cancel context.CancelFunc
		ctx, cancel = bounded(ctx)
		defer cancel()
		ctx, cancel = inTime(ctx)
		defer cancel()
	}
	return call.reply(ctx), nil
}
