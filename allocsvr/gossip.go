package allocsvr

import (
	"context"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/version"
	"github.com/seqsvr/seqsvr/membership"
	"github.com/seqsvr/seqsvr/seq"
)

// startGossip joins the membership view; nil without a gossip address.
func (s *Server) startGossip(cluster string, life seq.Incarnation) (*membership.View, error) {
	if s.cfg.GossipListen == "" {
		return nil, nil
	}
	profile, err := membership.ParseProfile(s.cfg.GossipProfile)
	if err != nil {
		return nil, err
	}
	return membership.Start(membership.Config{
		Name: s.cfg.Name, ClusterID: cluster, BindAddr: s.cfg.GossipListen, Profile: profile, Join: s.cfg.GossipJoin,
		Meta:   membership.Meta{Role: membership.RoleAlloc, Addr: s.addr, Session: uint64(s.Session()), Protocol: version.Protocol, Exposed: s.exposed(), Zone: s.cfg.Zone, Incarnation: life},
		Keys:   s.cfg.GossipKeys,
		Logger: s.cfg.Logger,
	})
}

// followGossip spreads the version of the route table, the number only, and looks
// sooner when another member has a newer one. Nothing else rests on the view.
func followGossip(ctx context.Context, a *Alloc, view *membership.View) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			view.SetTableVersion(a.routes.Table().Version())
			a.routes.Hint(view.HighestTableVersion())
		}
	}
}
