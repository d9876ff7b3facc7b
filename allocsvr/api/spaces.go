package api

import (
	"context"

	"github.com/seqsvr/seqsvr/allocsvr/arbiter"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Growth has the steps that add a space to the cluster. Each step may be repeated.
type Growth struct {
	// Decide makes the stores decide to add the space to the spaces that this node knows.
	Decide func(ctx context.Context, have seq.Mapping, s seq.Space) (seq.Mapping, error)
	// Tell sends the mapping to the stores, until W of them have it.
	Tell func(ctx context.Context, m seq.Mapping) error
	// Extend makes this node use the mapping.
	Extend func(ctx context.Context, m seq.Mapping) error
}

// AddSpace implements pb.AdminServer. A crash after any step leaves what the same call, at any
// node, goes on from. The event comes first: a crash leaves a line too many, never one too few.
func (s *Admin) AddSpace(ctx context.Context, req *pb.AddSpaceRequest) (*pb.AddSpaceReply, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	have, space := *s.Sections.Mapping(), rpc.SpaceFromProto(req.GetSpace())
	form := space
	form.First = 0 // this node may not have heard of spaces before it
	if _, _, err := have.Add(form); err != nil {
		return nil, err
	}
	if keys := req.GetKeys(); len(keys) > 0 {
		if err := s.KeyHashes.AdoptSpace(ctx, keys, space.Name); err != nil {
			return nil, err
		}
	}
	err := s.Routes.Record(ctx, []arbiter.Event{{Kind: "space", Subject: "space " + space.Name, Reason: "operator: added to the cluster"}})
	if err != nil {
		return nil, err
	}
	m, err := s.Growth.Decide(ctx, have, space)
	if err != nil {
		return nil, err
	}
	if err := s.Growth.Tell(ctx, m); err != nil {
		return nil, err
	}
	if err := s.Growth.Extend(ctx, m); err != nil {
		return nil, err
	}
	// Nodes hear of a new table at once, and look at the stores if it has more sections than
	// they know. The arbiter places them.
	t, err := s.Routes.Change(ctx, func(t *seq.RouteTable) ([]arbiter.Event, error) {
		if t.Version == 0 || !t.Cover(m.Sections()) {
			return nil, arbiter.ErrUnchanged
		}
		return nil, nil
	})
	if err != nil {
		return nil, err
	}
	made, err := m.Space(space.Name)
	if err != nil {
		return nil, err
	}
	return &pb.AddSpaceReply{Space: rpc.SpaceToProto(made), RouteVersion: t.Version}, nil
}
