package clienttest

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// tag is a segment tag of the cluster.
type tag struct {
	limits *pb.SegmentTag
	last   uint64
}

// segments is a node's Segment service. The numbers are the cluster's.
type segments struct {
	pb.UnimplementedSegmentServer
	n *Node
}

// AddTag makes a segment tag.
func (c *Cluster) AddTag(name string) {
	if c.back != nil {
		c.back.add(&pb.SegmentTag{Tag: name, MinStep: 1000, MaxStep: 1_000_000, Start: 1})
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tags[name] = &tag{limits: &pb.SegmentTag{
		Tag: name, MinStep: 1000, MaxStep: 1_000_000, Start: 1, Section: uint32(c.Mapping.SectionOfName(name)),
	}}
}

// TagOwner is the index of the node that serves a tag.
func (c *Cluster) TagOwner(name string) int { return c.Owner(c.Mapping.SectionOfName(name)) }

// own finds a tag that this node serves, under c.mu.
func (s segments) own(name string) (*tag, error) {
	c := s.n.cluster
	if err := cmp.Or(s.n.refused(), c.fault); err != nil {
		return nil, err
	}
	id := c.Mapping.SectionOfName(name)
	if owner := c.effective[id]; owner != s.n.index {
		moved := &rpc.NotOwnerError{Section: id, Owner: c.routes.Nodes[owner].Name, RouteVersion: c.routes.Version}
		if !c.noHints {
			moved.Addr = c.routes.Nodes[owner].Addr
		}
		return nil, moved
	}
	t := c.tags[name]
	if t == nil {
		return nil, fmt.Errorf("%w: %q", seq.ErrUnknownTag, name)
	}
	return t, nil
}

// Take implements pb.SegmentServer.
func (s segments) Take(ctx context.Context, r *pb.SegmentTakeRequest) (*pb.SegmentTakeReply, error) {
	s.n.Takes.Add(1)
	if err := s.n.stall(ctx); err != nil {
		return nil, err
	}
	c := s.n.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	t, err := s.own(r.GetTag())
	if err != nil {
		return nil, err
	}
	first := t.last + 1
	t.last += uint64(r.GetCount())
	return &pb.SegmentTakeReply{First: first, Last: t.last, Max: t.last + 1000, RouteVersion: c.routes.Version}, nil
}

// NextNumbers implements pb.SegmentServer, of one period for ever.
func (s segments) NextNumbers(ctx context.Context, r *pb.NumbersNextRequest) (*pb.NumbersNextReply, error) {
	took, err := s.Take(ctx, &pb.SegmentTakeRequest{Tag: r.GetTag(), Count: r.GetCount()})
	if err != nil {
		return nil, err
	}
	out := &pb.NumbersNextReply{Period: "20261123", First: took.First, Last: took.Last, RouteVersion: took.RouteVersion}
	for n := took.First; n <= took.Last; n++ {
		out.Numbers = append(out.Numbers, fmt.Sprintf("%s-20261123-%06d", r.GetTag(), n))
	}
	return out, nil
}

// ShowNumber implements pb.SegmentServer.
func (s segments) ShowNumber(_ context.Context, r *pb.NumberShowRequest) (*pb.NumberShowReply, error) {
	c := s.n.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	t, err := s.own(r.GetTag())
	if err != nil {
		return nil, err
	}
	return &pb.NumberShowReply{Tag: t.limits, Next: fmt.Sprintf("%s-20261123-%06d", r.GetTag(), t.last+1), Period: "20261123", Count: t.last + 1, Left: 999_999 - t.last}, nil
}

// Put implements pb.SegmentServer.
func (s segments) Put(_ context.Context, r *pb.SegmentPutRequest) (*pb.SegmentPutReply, error) {
	s.n.cluster.AddTag(r.GetTag().GetTag())
	return &pb.SegmentPutReply{Tag: r.GetTag(), Created: true}, nil
}

// List implements pb.SegmentServer.
func (s segments) List(context.Context, *pb.SegmentListRequest) (*pb.SegmentListReply, error) {
	c := s.n.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	out := &pb.SegmentListReply{}
	for _, t := range c.tags {
		out.Tags = append(out.Tags, t.limits)
	}
	slices.SortFunc(out.Tags, func(a, b *pb.SegmentTag) int { return cmp.Compare(a.GetTag(), b.GetTag()) })
	return out, nil
}

// Status implements pb.SegmentServer.
func (s segments) Status(ctx context.Context, r *pb.SegmentStatusRequest) (*pb.SegmentStatusReply, error) {
	if err := s.n.stall(ctx); err != nil {
		return nil, err
	}
	c := s.n.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	out := &pb.SegmentStatusReply{}
	for name := range c.tags {
		if r.GetTag() != "" && r.GetTag() != name {
			continue
		}
		if t, err := s.own(name); err == nil {
			out.Tags = append(out.Tags, &pb.SegmentStatus{
				Tag: t.limits, State: "owned", Leased: true, Current: t.last, Max: t.last + 1000, Step: 1000,
				Buffers: []*pb.SegmentBuffer{{First: 1, Last: t.last + 1000, Left: 1000}},
			})
		}
	}
	if r.GetTag() != "" && len(out.Tags) == 0 {
		_, err := s.own(r.GetTag())
		return nil, err
	}
	return out, nil
}
