package allocsvr

import (
	"context"

	"github.com/seqsvr/seqsvr/internal/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// nextCall is a BatchNext in progress: begin, then reply. It may be used again after
// its reply has been sent, and then allocates nothing.
type nextCall struct {
	s     sequenceServer
	req   *pb.BatchNextRequest
	takes []taking
	out   pb.BatchNextReply
	room  []*pb.BatchResult
}

// begin checks the request and serves what it can at once. Nothing is taken if
// any part of the request is refused.
func (c *nextCall) begin(s sequenceServer, req *pb.BatchNextRequest) error {
	if err := seq.CheckKeys("batches", rpc.Keys(req.Batches)); err != nil {
		return err
	}
	c.s, c.req = s, req
	for len(c.room) < len(req.Batches) {
		c.takes, c.room = append(c.takes, taking{}), append(c.room, &pb.BatchResult{})
	}
	c.takes = c.takes[:len(req.Batches)]
	for i, b := range req.Batches {
		space, uids, err := s.uidsOf(i, b, b.Counts)
		if err != nil {
			return err
		}
		c.takes[i].begin(s.a, space, uids, b.Counts)
	}
	// The clock is read once, after the last request of the batch has arrived.
	m := s.a.moment()
	for i := range c.takes {
		c.takes[i].pass(m)
	}
	return nil
}

// settled says whether nothing has to be waited for.
func (c *nextCall) settled() bool {
	for i := range c.takes {
		if !c.takes[i].settled() {
			return false
		}
	}
	return true
}

// early is the reply with what needed no waiting; ok is false if that is nothing, or
// if not even those numbers may be given before a quorum was asked. It must have been
// sent before reply is called.
func (c *nextCall) early() (reply *pb.BatchNextReply, ok bool) {
	for i := range c.takes {
		t := &c.takes[i]
		if t.space.Mode == seq.Strict {
			return nil, false
		}
		ok = ok || len(t.pending) < len(t.uids)
	}
	return c.fill(), ok
}

// reply waits for what is still open, as long as ctx lasts.
func (c *nextCall) reply(ctx context.Context) *pb.BatchNextReply {
	for i := range c.takes {
		c.takes[i].settle(ctx)
	}
	return c.fill()
}

func (c *nextCall) fill() *pb.BatchNextReply {
	c.out.Results = c.room[:len(c.takes)]
	for i, r := range c.out.Results {
		t := &c.takes[i]
		r.First, r.Last, r.Errors, r.Unordered = t.out.First, nil, keyErrors(t.out.Faults), t.out.Unordered
		if len(r.First) > 0 && &t.out.Last[0] != &t.out.First[0] {
			r.Last = t.out.Last
		}
	}
	c.out.RouteVersion, c.out.Routes = c.s.routesFor(c.req.RouteVersion)
	return &c.out
}

// BatchNext implements pb.SequenceServer.
func (s sequenceServer) BatchNext(ctx context.Context, req *pb.BatchNextRequest) (*pb.BatchNextReply, error) {
	keys := rpc.Keys(req.Batches)
	if err := s.a.inWork.Enter(keys); err != nil {
		return nil, err
	}
	defer s.a.inWork.Leave(keys)
	var call nextCall
	if err := call.begin(s, req); err != nil {
		return nil, err
	}
	if !call.settled() {
		var cancel context.CancelFunc
		ctx, cancel = bounded(ctx)
		defer cancel()
	}
	return call.reply(ctx), nil
}
