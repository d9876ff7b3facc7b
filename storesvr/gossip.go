package storesvr

import (
	"context"
	"log/slog"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/version"
	"github.com/seqsvr/seqsvr/membership"
)

// goodbyeTime bounds how long a leaving store lets its goodbye spread.
const goodbyeTime = time.Second

// gossip is the store's place in the membership view, for people and tools to see: no
// decision of the store depends on it. A nil gossip is one that was not asked for.
type gossip struct {
	view *membership.View
	log  *slog.Logger
}

func startGossip(cfg Config, addr string, exposed bool, c *core) (*gossip, error) {
	if cfg.GossipListen == "" {
		return nil, nil
	}
	view, err := membership.Start(membership.Config{
		Name: c.identity.Name, ClusterID: c.identity.Cluster, BindAddr: cfg.GossipListen, Join: cfg.GossipJoin,
		Profile: membership.Profile(cfg.GossipProfile), Keys: cfg.GossipKeys, Logger: cfg.Logger,
		Meta: membership.Meta{Role: membership.RoleStore, Addr: addr, Protocol: version.Protocol, Exposed: exposed, Zone: c.zone, Incarnation: c.members.life},
	})
	if err != nil {
		return nil, err
	}
	return &gossip{view, cfg.Logger}, nil
}

func (g *gossip) addr() string {
	if g == nil {
		return ""
	}
	return g.view.Addr()
}

// members returns the members of the view, including dead members that it has not forgotten.
func (g *gossip) members() []membership.Member {
	if g == nil {
		return nil
	}
	return g.view.Members()
}

func (g *gossip) close() error {
	if g == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), goodbyeTime)
	defer cancel()
	// A goodbye that nobody hears makes the store look dead, which it then is.
	if err := g.view.Leave(ctx); err != nil {
		g.log.Info("left without a goodbye", "error", err)
	}
	return g.view.Close()
}
