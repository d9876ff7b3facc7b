package router

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/seq"
)

// DefaultUnreadyAfter is Config.UnreadyAfter if nothing else is said: beyond every
// failover, and before a load balancer's own patience ends.
const DefaultUnreadyAfter = 5 * time.Second

// How the cluster is watched.
const (
	probePause = time.Second
	probeBound = 2 * time.Second // for an answer of any AllocSvr
	// silences is the number of probes in a row that must fail, however long that takes. A process
	// that was suspended has heard no answer, and can conclude nothing from that.
	silences = 3
	// answersBack is the number of probes in a row that must succeed before the cluster counts as
	// back. So a flapping cluster does not change the router's readiness.
	answersBack = 2
)

// reach decides from answers and silence whether a cluster is there. It is pure: time
// comes in. At the start it is.
//
//	away => the last answersBack questions were not all answered
//	becomes away => silent >= silences, and heard lies at least after back
type reach struct {
	after  time.Duration
	heard  time.Duration // when an AllocSvr answered last, or the start
	silent int           // questions since
	back   int           // answers in a row, while away
	away   bool
}

// note takes what became of a question and tells whether away has changed.
func (r *reach) note(now time.Duration, answered bool) (changed bool) {
	was := r.away
	if answered {
		r.heard, r.silent = now, 0
		r.back++
		r.away = r.away && r.back < answersBack
	} else {
		r.back = 0
		r.silent++
		r.away = r.away || r.silent >= silences && now-r.heard >= r.after
	}
	return was != r.away
}

// watchCluster says SERVING once there is a route table, and NOT_SERVING while no AllocSvr
// is thought to be there, until ctx ends.
func (r *Router) watchCluster(ctx context.Context) {
	if !r.awaitTable(ctx) || !r.awaitSets(ctx) {
		return
	}
	r.health.SetServingStatus("", healthpb.HealthCheckResponse_SERVING)
	ticks := clock.Boot()
	state := reach{after: cmp.Or(r.cfg.UnreadyAfter, DefaultUnreadyAfter), heard: ticks.Now()}
	for wake.Sleep(ctx, probePause) {
		bound, end := context.WithTimeout(ctx, probeBound)
		err := r.sdk.Caller().Probe(bound)
		end()
		switch {
		case ctx.Err() != nil:
			return
		case !state.note(ticks.Now(), err == nil):
		case state.away:
			err = fmt.Errorf("%w: nobody answered for %v: %w", seq.ErrNoRoute, state.after, err)
			r.away.Store(&err)
			r.health.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
			r.cfg.Logger.Warn("not ready: no AllocSvr answers", "for", state.after, "error", err)
		default:
			r.away.Store(nil)
			r.health.SetServingStatus("", healthpb.HealthCheckResponse_SERVING)
			r.cfg.Logger.Info("ready again: an AllocSvr answers")
		}
	}
}

// quorumPause is the time between two checks of the quorum's state that calls observed.
const quorumPause = 100 * time.Millisecond

// watchQuorum says under rpc.QuorumHealth whether calls end for want of a quorum, until
// ctx ends.
func (r *Router) watchQuorum(ctx context.Context) {
	lost := false
	for wake.Sleep(ctx, quorumPause) {
		if was := lost; (r.sdk.Caller().QuorumLost() != nil) != was {
			lost = !was
			r.health.SetServingStatus(rpc.QuorumHealth, gate.Serving(!lost))
		}
	}
}

// awaitTable waits for the first route table; false when the router ends before.
func (r *Router) awaitTable(ctx context.Context) bool {
	for ctx.Err() == nil {
		err := r.sdk.Ready(ctx)
		if err == nil {
			return true
		}
		if errors.Is(err, client.ErrClosed) {
			return false
		}
		if ctx.Err() == nil {
			r.cfg.Logger.Warn("no route table yet", "error", err)
		}
		wake.Sleep(ctx, time.Second)
	}
	return false
}

// awaitSets waits for the tables of all Sets but those that cannot be reached; false when the
// router ends before.
func (r *Router) awaitSets(ctx context.Context) bool {
	for r.lacking() != nil {
		bound, end := context.WithTimeout(ctx, probeBound)
		_ = r.sdk.Caller().Probe(bound) // it finds out which cannot be reached
		end()
		if !wake.Sleep(ctx, quorumPause) {
			return false
		}
	}
	r.complete.Store(true)
	return true
}

// lacking is seq.ErrNoRoute as long as the table of a Set is not known that may be there.
func (r *Router) lacking() error {
	for _, s := range r.sdk.Sets().All {
		if s.Routes == nil && s.Away == nil {
			return fmt.Errorf("%w: of Set %q", seq.ErrNoRoute, s.Name)
		}
	}
	return nil
}

// Ready returns nil while the router can forward calls: it has a route table, an AllocSvr answered
// within Config.UnreadyAfter, and the router is not stopping. At startup it also needs the tables
// of all Sets that it can reach. Otherwise Ready returns the reason.
func (r *Router) Ready() error {
	select {
	case <-r.leaving:
		return seq.ErrShuttingDown
	default:
	}
	if len(r.sdk.Sets().All) == 0 {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		return r.sdk.Ready(now)
	}
	if !r.complete.Load() {
		if err := r.lacking(); err != nil {
			return err
		}
	}
	if why := r.away.Load(); why != nil {
		return *why
	}
	return nil
}
