package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/seqsvr/seqsvr/allocsvr/arbiter"
	"github.com/seqsvr/seqsvr/allocsvr/documents"
	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/allocsvr/owner"
	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/internal/base/counters"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
	"github.com/seqsvr/seqsvr/snowflake"
)

// Sets serves the tools that move sections between Sets. It translates, and writes the log of events.
type Sets struct {
	pb.UnimplementedSetsServer
	Cluster string
	Era     seq.Era
	// Incarnation is the life of the cluster. If it is not known, replies leave it out.
	Incarnation seq.Incarnation
	Name        string // of this node
	Docs        *documents.Sets
	Sections    *section.Table
	Moves       *owner.Moves
	Routes      *arbiter.Routes
	Keyhash     *documents.Keys
	IDs         IDs
	// Room is the number of bytes that the counters of one answer may take. Zero means the size of a
	// message.
	Room owner.Room
	// Rehash makes this node hash string keys in a new way. The node must own no section.
	Rehash func(documents.KeyEntries) error
	// Require keeps builds that do not know Sets out of the cluster, durably. If nil, the cluster has no
	// such builds.
	Require func(ctx context.Context) error
}

// IDs is the part of globalid.Service that Sets calls.
type IDs interface {
	Join(ctx context.Context) error
	Gave(ctx context.Context, cluster string) (bool, error)
	Allot(ctx context.Context, cluster string, others []string, wish namespaces.AllotmentRequest) ([]byte, error)
	Settle(ctx context.Context, told [][]byte) error
}

func (s *Sets) record(r sets.Record) *pb.SetRecordReply {
	reply := rpc.SetRecordToProto(r)
	reply.ClusterId, reply.Era, reply.Sections = s.Cluster, uint64(s.Era), uint32(s.Sections.Len())
	reply.Incarnation = rpc.IncarnationToProto(s.Incarnation)
	if r.IsRoot() {
		reply.Used = s.used()
	}
	return reply
}

// Record implements pb.SetsServer.
func (s *Sets) Record(ctx context.Context, _ *pb.SetRecordRequest) (*pb.SetRecordReply, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	r, err := s.Docs.Load(ctx)
	if err != nil {
		return nil, err
	}
	return s.record(r), nil
}

// Keys implements pb.SetsServer.
func (s *Sets) Keys(ctx context.Context, _ *pb.SetKeysRequest) (*pb.SetKeysReply, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	keys, err := s.Keyhash.Share(ctx)
	return &pb.SetKeysReply{Keys: keys}, err
}

// Step implements pb.SetsServer.
func (s *Sets) Step(ctx context.Context, req *pb.SetStepRequest) (*pb.SetRecordReply, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	step := sets.Step{Op: sets.Op(req.GetOp()), Move: req.GetMove(), To: req.GetTo(), Above: rpc.OfSections(req.GetAbove())}
	if step.Op == sets.Finish {
		s.Moves.SendOn(step.Move, rpc.OfSections(req.GetOwners()))
	}
	r, err := s.Docs.Step(ctx, step, rpc.RangesFromProto(req.GetSections()))
	if err != nil {
		return nil, err
	}
	s.Moves.Settle()
	return s.record(r), nil
}

// Stop implements pb.SetsServer.
func (s *Sets) Stop(ctx context.Context, req *pb.StopSectionsRequest) (*pb.StopSectionsReply, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	ids := make([]seq.SectionID, len(req.GetSections()))
	for i, id := range req.GetSections() {
		if err := s.section(id); err != nil {
			return nil, err
		}
		ids[i] = seq.SectionID(id)
	}
	room := cmp.Or(s.Room, owner.Room{Message: rpc.MaxCounters, Section: rpc.MaxSection})
	stopped, left, err := s.Moves.Stop(ctx, req.GetMove(), ids, req.GetUnowned(), room)
	if err != nil {
		return nil, err
	}
	reply := &pb.StopSectionsReply{Left: plainIDs(left)}
	for _, one := range stopped {
		reply.Stopped = append(reply.Stopped, &pb.StoppedSection{Section: uint32(one.ID), Ceiling: one.Ceiling, Counters: one.Body, Mark: one.Mark})
	}
	return reply, nil
}

// Open implements pb.SetsServer.
func (s *Sets) Open(ctx context.Context, req *pb.OpenSectionsRequest) (*pb.OpenSectionsReply, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	in := make([]owner.Stopped, len(req.GetSections()))
	for i, p := range req.GetSections() {
		if err := s.section(p.GetSection()); err != nil {
			return nil, err
		}
		if p.GetCeiling() > uint64(seq.MaxSeq) {
			return nil, fmt.Errorf("%w: ceiling %d of section %d, expected at most %d", seq.ErrBadArgument, p.GetCeiling(), p.GetSection(), uint64(seq.MaxSeq))
		}
		in[i] = owner.Stopped{ID: seq.SectionID(p.GetSection()), Ceiling: p.GetCeiling(), Mark: p.GetMark()}
		if len(p.GetCounters()) == 0 {
			continue
		}
		table, err := counters.Decode(p.GetCounters())
		if err != nil {
			return nil, fmt.Errorf("%w: counters of section %d: %w", seq.ErrBadArgument, p.GetSection(), err)
		}
		if table.High() > p.GetCeiling() {
			return nil, fmt.Errorf("%w: counters of section %d go to %d, above the ceiling %d", seq.ErrBadArgument, p.GetSection(), table.High(), p.GetCeiling())
		}
		in[i].Table = table
	}
	slices.SortFunc(in, func(x, y owner.Stopped) int { return cmp.Compare(x.ID, y.ID) })
	opened, active, left, err := s.Moves.Open(ctx, req.GetMove(), in, req.GetKeep())
	if err != nil {
		return nil, err
	}
	return &pb.OpenSectionsReply{Opened: plainIDs(opened), Active: plainIDs(active), Left: plainIDs(left)}, nil
}

// Allot implements pb.SetsServer.
func (s *Sets) Allot(ctx context.Context, req *pb.AllotRequest) (*pb.AllotReply, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	wish := namespaces.AllotmentRequest{Namespace: req.GetNamespace(), Have: req.GetHave(),
		Datacenter: namespaces.Datacenter{ID: snowflake.Datacenter(req.GetDatacenterId()), Name: req.GetDatacenter()}}
	if req.WorkerId != nil {
		w := snowflake.Worker(req.GetWorkerId())
		wish.Worker = &w
	}
	var others []string
	if wish.Namespace != "" {
		all, err := s.Docs.LoadMap(ctx)
		if err != nil {
			return nil, err
		}
		for _, one := range all.Sets {
			if one.Cluster != s.Cluster {
				others = append(others, one.Cluster)
			}
		}
		if !slices.Contains(others, req.GetClusterId()) {
			return nil, fmt.Errorf("%w: cluster %q is no other Set of this root", seq.ErrForeignCluster, req.GetClusterId())
		}
	}
	told, err := s.IDs.Allot(ctx, req.GetClusterId(), others, wish)
	return &pb.AllotReply{Namespaces: told}, err
}

func (s *Sets) section(id uint32) error {
	if n := s.Sections.Len(); int64(id) >= int64(n) {
		return fmt.Errorf("%w: %d, expected 0 to %d", seq.ErrUnknownSection, id, n-1)
	}
	return nil
}

func plainIDs(ids []seq.SectionID) []uint32 {
	out := make([]uint32, len(ids))
	for i, id := range ids {
		out[i] = uint32(id)
	}
	return out
}
