package router

import (
	"context"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/version"
	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/membership"
)

// gossipPause is the time between two comparisons of the table's version with the versions of peers.
const gossipPause = 50 * time.Millisecond

// gossip shows the router to the others and listens for newer route tables, so that
// an idle router has them before the next call. It waits for the cluster's id first.
// Routing never depends on it.
func (r *Router) gossip(ctx context.Context) error {
	for r.sdk.Caller().Table().ClusterID() == "" && ctx.Err() == nil {
		_ = r.sdk.Ready(ctx) // reportHealth logs why not
		if !wake.Sleep(ctx, gossipPause) {
			return nil
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	profile, err := membership.ParseProfile(r.cfg.GossipProfile)
	if err != nil {
		return fmt.Errorf("gossip: %w", err)
	}
	addr := r.cfg.Advertise
	if addr == "" {
		addr = r.Addr()
	}
	view, err := membership.Start(membership.Config{
		Name: r.cfg.Name, ClusterID: r.sdk.Caller().Table().ClusterID(), BindAddr: r.cfg.GossipListen,
		Join: r.cfg.GossipJoin, Profile: profile, Keys: r.cfg.GossipKeys, Logger: r.cfg.Logger,
		Meta: membership.Meta{Role: membership.RoleRouter, Addr: addr, HTTP: r.HTTPAddr(), Zone: r.cfg.Zone, Protocol: version.Protocol, Incarnation: r.sdk.Caller().Table().Incarnation(),
			Exposed: len(r.cfg.TLS.Exposed(r.addrs()...)) > 0},
	})
	if err != nil {
		return fmt.Errorf("gossip: %w", err)
	}
	defer func() { _ = view.Close() }()
	r.view.Store(view)
	for wake.Sleep(ctx, gossipPause) {
		view.SetIncarnation(r.sdk.Caller().Table().Incarnation())
		var own uint64
		if routes := r.sdk.Caller().Table().Routes(); routes != nil {
			own = routes.Version
		}
		view.SetTableVersion(own)
		if view.HighestTableVersion() > own || view.LaterEra() {
			r.sdk.Caller().Table().Refresh()
		}
	}
	leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = view.Leave(leave) // the others find out also if none hears the goodbye
	return nil
}
