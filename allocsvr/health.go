package allocsvr

import (
	"context"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// healthPause is how often Ready is asked for grpc.health.v1: a lost quorum shows within
// a lease of this node, and this comes on top.
const healthPause = 200 * time.Millisecond

// reportHealth makes grpc.health.v1 say what Ready says, under the empty name, and logs
// each change once. It starts as NOT_SERVING; in leave it is shut down for good.
func (s *Server) reportHealth(ctx context.Context, p *assembled) error {
	tick := time.NewTicker(healthPause)
	defer tick.Stop()
	was := false
	for {
		err := p.alloc.Ready()
		if is := err == nil; is != was {
			was = is
			if is {
				p.health.SetServingStatus("", healthpb.HealthCheckResponse_SERVING)
				s.cfg.Logger.Info("ready")
			} else {
				p.health.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
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
