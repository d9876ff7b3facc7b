package segment

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// Register serves the tags on srv, before Serve. Errors are those of the Service; the
// server must translate them, as rpc.NewServer's does.
func (s *Service) Register(srv grpc.ServiceRegistrar) { pb.RegisterSegmentServer(srv, server{s: s}) }

// server is translation only.
type server struct {
	pb.UnimplementedSegmentServer
	s *Service
}

// Take implements pb.SegmentServer.
func (v server) Take(ctx context.Context, req *pb.SegmentTakeRequest) (*pb.SegmentTakeReply, error) {
	ctx, cancel := rpc.Bounded(ctx)
	defer cancel()
	r, err := v.s.Take(ctx, req.GetTag(), req.GetCount())
	if err != nil {
		return nil, err
	}
	return &pb.SegmentTakeReply{First: r.First, Last: r.Last, Max: r.Max, RouteVersion: v.s.cfg.RouteVersion()}, nil
}

// Put implements pb.SegmentServer.
func (v server) Put(ctx context.Context, req *pb.SegmentPutRequest) (*pb.SegmentPutReply, error) {
	ctx, cancel := rpc.Bounded(ctx)
	defer cancel()
	t := req.GetTag()
	entry, created, err := v.s.Put(ctx, Tag{Name: t.GetTag(), MinStep: t.GetMinStep(), MaxStep: t.GetMaxStep(), Start: t.GetStart()})
	if err != nil {
		return nil, err
	}
	return &pb.SegmentPutReply{Tag: v.tag(entry), Created: created}, nil
}

// Retire implements pb.SegmentServer.
func (v server) Retire(ctx context.Context, req *pb.SegmentRetireRequest) (*pb.SegmentTag, error) {
	ctx, cancel := rpc.Bounded(ctx)
	defer cancel()
	entry, err := v.s.Retire(ctx, req.GetTag(), req.GetUndo())
	if err != nil {
		return nil, fmt.Errorf("retire: %w", err)
	}
	v.s.cfg.Logger.Info("tag retired or brought back", "tag", entry.Name, "retired", entry.Retired != 0)
	return v.tag(entry), nil
}

// List implements pb.SegmentServer.
func (v server) List(ctx context.Context, _ *pb.SegmentListRequest) (*pb.SegmentListReply, error) {
	ctx, cancel := rpc.Bounded(ctx)
	defer cancel()
	all, err := v.s.List(ctx)
	if err != nil {
		return nil, err
	}
	reply := &pb.SegmentListReply{Tags: make([]*pb.SegmentTag, len(all))}
	for i, t := range all {
		reply.Tags[i] = v.tag(t)
	}
	return reply, nil
}

// Status implements pb.SegmentServer.
func (v server) Status(ctx context.Context, req *pb.SegmentStatusRequest) (*pb.SegmentStatusReply, error) {
	all := []Status(nil)
	if req.GetTag() == "" {
		all = v.s.Statuses()
	} else {
		ctx, cancel := rpc.Bounded(ctx)
		defer cancel()
		one, err := v.s.Status(ctx, req.GetTag())
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	reply := &pb.SegmentStatusReply{Tags: make([]*pb.SegmentStatus, len(all))}
	for i, st := range all {
		out := &pb.SegmentStatus{
			Tag: v.tag(st.Tag), State: st.State, Leased: st.Leased, Current: st.Current,
			Max: st.Max, Step: st.Step, Loading: st.Loading,
		}
		for _, b := range st.Buffers {
			out.Buffers = append(out.Buffers, &pb.SegmentBuffer{First: b.First, Last: b.Last, Left: b.Left})
		}
		reply.Tags[i] = out
	}
	return reply, nil
}

func (v server) tag(t Tag) *pb.SegmentTag {
	return &pb.SegmentTag{Tag: t.Name, MinStep: t.MinStep, MaxStep: t.MaxStep, Start: t.Start, RetiredUnixMs: t.Retired,
		Section: uint32(v.s.cfg.Mapping.SectionOfName(t.Name))}
}
