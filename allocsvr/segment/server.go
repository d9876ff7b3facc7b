package segment

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/allocsvr/numbers"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Register registers the service of tags on srv, before Serve. The server must translate the errors of the
// Service, as the server of gate.NewServer does.
func (s *Service) Register(srv grpc.ServiceRegistrar) { pb.RegisterSegmentServer(srv, server{s: s}) }

// server translates between gRPC and the Service.
type server struct {
	pb.UnimplementedSegmentServer
	s *Service
}

// Take implements pb.SegmentServer.
func (v server) Take(ctx context.Context, req *pb.SegmentTakeRequest) (*pb.SegmentTakeReply, error) {
	ctx, cancel := rpc.Bounded(ctx)
	defer cancel()
	rpc.OneIfNone(&req.Count)
	r, err := v.s.Take(ctx, req.GetTag(), req.GetCount())
	if err != nil {
		return nil, err
	}
	return &pb.SegmentTakeReply{First: r.First, Last: r.Last, Max: r.Max, RouteVersion: v.s.cfg.RouteVersion()}, nil
}

// NextNumbers implements pb.SegmentServer.
func (v server) NextNumbers(ctx context.Context, req *pb.NumbersNextRequest) (*pb.NumbersNextReply, error) {
	ctx, cancel := rpc.Bounded(ctx)
	defer cancel()
	rpc.OneIfNone(&req.Count)
	got, err := v.s.NextNumbers(ctx, req.GetTag(), req.GetCount())
	if err != nil {
		return nil, err
	}
	return &pb.NumbersNextReply{Numbers: got.Texts, Period: got.Period, First: got.First, Last: got.Last, RouteVersion: v.s.cfg.RouteVersion()}, nil
}

// ShowNumber implements pb.SegmentServer.
func (v server) ShowNumber(ctx context.Context, req *pb.NumberShowRequest) (*pb.NumberShowReply, error) {
	ctx, cancel := rpc.Bounded(ctx)
	defer cancel()
	got, err := v.s.ShowNumber(ctx, req.GetTag())
	if err != nil {
		return nil, err
	}
	return &pb.NumberShowReply{Tag: v.tag(got.Tag), Next: got.Text, Period: got.Period, Count: got.Count, Left: got.Left, UsedUp: got.Text == ""}, nil
}

// Put implements pb.SegmentServer.
func (v server) Put(ctx context.Context, req *pb.SegmentPutRequest) (*pb.SegmentPutReply, error) {
	ctx, cancel := rpc.Bounded(ctx)
	defer cancel()
	if len(req.GetTags()) > 0 {
		return v.putAll(ctx, req)
	}
	entry, created, err := v.s.Put(ctx, wanted(req.GetTag()))
	if err != nil {
		return nil, err
	}
	return &pb.SegmentPutReply{Tag: v.tag(entry), Created: created}, nil
}

// wanted is a tag of a Put.
func wanted(t *pb.SegmentTag) Tag {
	return Tag{Name: t.GetTag(), MinStep: t.GetMinStep(), MaxStep: t.GetMaxStep(), Start: t.GetStart(),
		Format: numbers.Format{Template: t.GetTemplate(), Reset: t.GetReset_(), Zone: t.GetZone()}}
}

func (v server) putAll(ctx context.Context, req *pb.SegmentPutRequest) (*pb.SegmentPutReply, error) {
	if req.GetTag() != nil {
		return nil, fmt.Errorf("%w: tag and tags, expected one of them", seq.ErrBadArgument)
	}
	wants := make([]Tag, len(req.GetTags()))
	for i, t := range req.GetTags() {
		wants[i] = wanted(t)
	}
	results, err := v.s.PutAll(ctx, wants, req.GetCheckOnly())
	if err != nil {
		return nil, err
	}
	reply := &pb.SegmentPutReply{}
	for i, r := range results {
		switch {
		case r.err != nil:
			reply.Errors = append(reply.Errors, rpc.ToKeyError(i, r.err))
		case r.created:
			reply.TagsCreated++
		case r.changed:
			reply.TagsChanged++
		}
	}
	return reply, nil
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
	if req.GetTag() == "" {
		return &pb.SegmentStatusReply{Tags: v.statuses()}, nil
	}
	ctx, cancel := rpc.Bounded(ctx)
	defer cancel()
	if err := seq.CheckTag(req.GetTag()); err != nil {
		return nil, err
	}
	c, err := v.s.cell(ctx, place{tag: req.GetTag()})
	if err != nil {
		return nil, fmt.Errorf("status of tag %q: %w", req.GetTag(), err)
	}
	return &pb.SegmentStatusReply{Tags: []*pb.SegmentStatus{v.status(c)}}, nil
}

// statuses returns the statuses of all tags that this node serves, by name.
func (v server) statuses() (all []*pb.SegmentStatus) {
	for _, c := range v.s.all() {
		if mine, _ := v.s.cfg.Owner(c.section); mine {
			all = append(all, v.status(c))
		}
	}
	slices.SortFunc(all, func(a, b *pb.SegmentStatus) int { return strings.Compare(a.Tag.Tag, b.Tag.Tag) })
	return all
}

// status returns the status of a tag on this node. Its numbers are 0 unless this node owns the tag.
func (v server) status(c *cell) *pb.SegmentStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	st := &pb.SegmentStatus{Tag: v.tag(c.limits), State: c.state.String()}
	st.Tag.Tag = c.name // each period by itself
	if c.state != owned {
		return st
	}
	b := c.buffers
	st.Leased = c.leased(v.s.cfg.Clock.Now())
	st.Current, st.Max, st.Step, st.Loading = b.low(), b.confirmed, b.step, b.target > b.confirmed
	st.Buffers = append(st.Buffers, &pb.SegmentBuffer{First: b.from + 1, Last: b.end, Left: b.end - min(b.low(), b.end)})
	if b.confirmed > b.end {
		st.Buffers = append(st.Buffers, &pb.SegmentBuffer{First: b.end + 1, Last: b.confirmed, Left: b.confirmed - max(b.end, min(b.low(), b.confirmed))})
	}
	return st
}

func (v server) tag(t Tag) *pb.SegmentTag {
	return &pb.SegmentTag{InEffectInMs: t.Later.Milliseconds(), Tag: t.Name, MinStep: t.MinStep, MaxStep: t.MaxStep, Start: t.Start, RetiredUnixMs: t.Retired,
		Template: t.Format.Template, Reset_: t.Format.Reset, Zone: t.Format.Zone, Section: uint32(v.s.cfg.Mapping.SectionOfName(t.Name))}
}
