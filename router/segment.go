package router

import (
	"cmp"
	"context"
	"slices"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// segmentServer passes calls on to the owner of a tag, or to any AllocSvr.
type segmentServer struct {
	pb.UnimplementedSegmentServer
	sdk admitted
	any pb.SegmentClient
}

// Take implements pb.SegmentServer.
func (s *segmentServer) Take(ctx context.Context, r *pb.SegmentTakeRequest) (*pb.SegmentTakeReply, error) {
	if err := seq.CheckTag(r.GetTag()); err != nil {
		return nil, err
	}
	rpc.OneIfNone(&r.Count)
	if err := seq.CheckCount("count", uint64(r.GetCount())); err != nil {
		return nil, err
	}
	return pb.NewSegmentClient(s.sdk.Owner(r.GetTag())).Take(ctx, r)
}

// NextNumbers implements pb.SegmentServer.
func (s *segmentServer) NextNumbers(ctx context.Context, r *pb.NumbersNextRequest) (*pb.NumbersNextReply, error) {
	if err := seq.CheckTag(r.GetTag()); err != nil {
		return nil, err
	}
	rpc.OneIfNone(&r.Count)
	if err := seq.CheckNumbers("count", uint64(r.GetCount())); err != nil {
		return nil, err
	}
	return pb.NewSegmentClient(s.sdk.Owner(r.GetTag())).NextNumbers(ctx, r)
}

// ShowNumber implements pb.SegmentServer.
func (s *segmentServer) ShowNumber(ctx context.Context, r *pb.NumberShowRequest) (*pb.NumberShowReply, error) {
	if err := seq.CheckTag(r.GetTag()); err != nil {
		return nil, err
	}
	return pb.NewSegmentClient(s.sdk.Owner(r.GetTag())).ShowNumber(ctx, r)
}

// Put implements pb.SegmentServer.
func (s *segmentServer) Put(ctx context.Context, r *pb.SegmentPutRequest) (*pb.SegmentPutReply, error) {
	return s.any.Put(ctx, r)
}

// Retire implements pb.SegmentServer.
func (s *segmentServer) Retire(ctx context.Context, r *pb.SegmentRetireRequest) (*pb.SegmentTag, error) {
	return s.any.Retire(ctx, r)
}

// List implements pb.SegmentServer.
func (s *segmentServer) List(ctx context.Context, r *pb.SegmentListRequest) (*pb.SegmentListReply, error) {
	return s.any.List(ctx, r)
}

// Status implements pb.SegmentServer: unlike an AllocSvr's, for all tags it is the
// whole cluster's.
func (s *segmentServer) Status(ctx context.Context, r *pb.SegmentStatusRequest) (*pb.SegmentStatusReply, error) {
	if r.GetTag() != "" {
		return pb.NewSegmentClient(s.sdk.Owner(r.GetTag())).Status(ctx, r)
	}
	place, err := s.sdk.door.root(ctx)
	if err != nil {
		return nil, err
	}
	defer place.Leave()
	all, err := tagStatuses(ctx, s.sdk.Client)
	if err != nil {
		return nil, err
	}
	return &pb.SegmentStatusReply{Tags: all}, nil
}

// tagStatuses asks each AllocSvr for the tags that it serves, and gives them by name.
// One that does not answer serves none, so an error means that none answered.
func tagStatuses(ctx context.Context, sdk *client.Client) ([]*pb.SegmentStatus, error) {
	nodes, err := sdk.Caller().Nodes(ctx)
	if err != nil {
		return nil, err
	}
	replies, errs := make([]*pb.SegmentStatusReply, len(nodes)), make([]error, len(nodes))
	inParallel(len(nodes), func(i int) {
		replies[i], errs[i] = pb.NewSegmentClient(nodes[i]).Status(ctx, &pb.SegmentStatusRequest{})
	})
	answered := false
	var all []*pb.SegmentStatus
	for i, reply := range replies {
		if errs[i] != nil {
			err = errs[i]
			continue
		}
		answered = true
		all = append(all, reply.GetTags()...)
	}
	if !answered {
		return nil, err
	}
	// While a tag moves, two AllocSvr may report it: the one that has it goes first.
	slices.SortStableFunc(all, func(a, b *pb.SegmentStatus) int {
		return cmp.Or(cmp.Compare(a.GetTag().GetTag(), b.GetTag().GetTag()), cmp.Compare(b.GetState(), a.GetState()))
	})
	return slices.CompactFunc(all, func(a, b *pb.SegmentStatus) bool { return a.GetTag().GetTag() == b.GetTag().GetTag() }), nil
}
