package api

import (
	"context"
	"fmt"
	"slices"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// Join implements pb.SetsServer.
func (s *Sets) Join(ctx context.Context, req *pb.JoinSetRequest) (*pb.SetRecordReply, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if err := sets.CheckName(req.GetName()); err != nil {
		return nil, err
	}
	if len(req.GetRoot()) == 0 {
		return nil, fmt.Errorf("%w: no address of the root Set", seq.ErrBadArgument)
	}
	if n := s.used(); n > 0 && s.Docs.Known().IsRoot() {
		return nil, fmt.Errorf("%w: cluster %q was used, a counter stands at %d: expected one that was initialised and never called", seq.ErrConflict, s.Cluster, n)
	}
	before := func(ctx context.Context) error {
		if err := s.require(ctx); err != nil {
			return err
		}
		return s.IDs.Join(ctx)
	}
	r, err := s.Docs.Join(ctx, req.GetName(), req.GetRoot(), req.GetRootClusterId(), before)
	if err != nil {
		return nil, err
	}
	s.Moves.Settle() // this node serves nothing any more
	s.Docs.Look()    // and sends callers on by the root's map
	if len(req.GetKeys()) > 0 {
		keys, err := s.Keyhash.Adopt(ctx, req.GetKeys())
		if err == nil {
			err = s.Rehash(keys)
		}
		if err != nil {
			return nil, err
		}
	}
	return s.record(r), nil
}

// used returns the highest number at which a counter of this node may stand, or 0 if the node has handed
// out nothing. Ceilings do not show it, because an owner raises them ahead of need.
func (s *Sets) used() (highest uint64) {
	for _, v := range s.Sections.Views() {
		highest = max(highest, v.Base, v.High)
	}
	return highest
}

func (s *Sets) require(ctx context.Context) error {
	if s.Require == nil {
		return nil
	}
	return s.Require(ctx)
}

// fresh refuses a cluster that has not joined if a cluster with the same id has joined and has sections or
// worker ids. The new cluster was initialised again, or is an older backup. A Set that is in the map and
// did not join has nothing.
func (s *Sets) fresh(ctx context.Context, cluster string) error {
	m, err := s.Docs.LoadMap(ctx)
	if err != nil {
		return err
	}
	gave, err := s.IDs.Gave(ctx, cluster)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(m.Sets, func(one sets.Set) bool { return one.Cluster == cluster })
	if gave || at > 0 && slices.Contains(m.In, uint16(at)) {
		return fmt.Errorf("%w: a cluster %q has joined before, and has sections or worker ids; the one that was found has not joined: expected that Set, or one with another cluster id and name",
			seq.ErrBadArgument, cluster)
	}
	return nil
}
