package allocsvr

import (
	"context"
	"time"

	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
)

// healthPause is the time between two calls of Ready for grpc.health.v1. A lost quorum shows within a lease
// of this node and healthPause.
const healthPause = 200 * time.Millisecond

// reportHealth sets the statuses of grpc.health.v1 until ctx ends. The empty name has the answer of Ready,
// whose changes are logged. The name rpc.QuorumHealth says whether there is a quorum. Both start as
// NOT_SERVING; leave shuts them down for good.
func (s *Server) reportHealth(ctx context.Context, p *assembled) error {
	tick := time.NewTicker(healthPause)
	defer tick.Stop()
	was := false
	for {
		p.health.SetServingStatus(rpc.QuorumHealth, gate.Serving(p.alloc.quorum() == nil))
		err := p.Ready()
		if is := err == nil; is != was {
			was = is
			p.health.SetServingStatus("", gate.Serving(is))
			if is {
				s.cfg.Logger.Info("ready")
			} else {
				s.cfg.Logger.Warn("not ready", "reason", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
