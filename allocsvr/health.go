package allocsvr

import (
	"context"
	"time"

	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
)

// healthPause is how often Ready is asked for grpc.health.v1: a lost quorum shows within
// a lease of this node, and this comes on top.
const healthPause = 200 * time.Millisecond

// reportHealth makes grpc.health.v1 say what Ready says, under the empty name, and logs
// each change once; and whether there is a quorum, under rpc.QuorumHealth. Both start as
// NOT_SERVING; in leave they are shut down for good.
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
