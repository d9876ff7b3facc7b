package router

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/seqsvr/seqsvr/internal/ops/console"
	"github.com/seqsvr/seqsvr/internal/process/telemetry"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/browser"
)

// serveConsole shows the cluster until ctx ends. It reaches the AllocSvr and the
// other routers on connections of its own, and past the admission: a page takes no place of callers.
func (r *Router) serveConsole(ctx context.Context, lis net.Listener) error {
	return console.New(console.Config{
		Server: r.cfg.Name, Client: r.sdk, Dial: r.cfg.TLS.DialSets(auth.Alloc, auth.Router), Names: browser.NewNames("console-hosts", r.cfg.ConsoleListen, r.cfg.ConsoleHosts),
		Guard: r.cfg.Guard, Evidence: r.cfg.TLS.Evidence, Calls: r.seen, Refused: r.cfg.Refused, Logger: r.cfg.Logger,
	}).Serve(ctx, lis)
}

// seen is what callers saw of all fronts. Messages on streams of SDKs are not timed here.
func (r *Router) seen() console.Calls {
	var c console.Calls
	for _, p := range r.fronts {
		if p.totals != nil {
			ended, failed, took := p.totals()
			c.Ended, c.Failed, c.Took = c.Ended+ended, c.Failed+failed, c.Took.Plus(took)
		}
	}
	return c
}

// isCall tells calls from what asks about the router itself.
func isCall(route string) bool {
	return strings.HasPrefix(route, "/v1/") || strings.HasPrefix(route, "/api/")
}

// totals returns the number of calls that ended, the number that failed, and their durations.
func (s *httpStats) totals() (ended, failed uint64, took telemetry.Buckets) {
	s.ended.Range(func(key, n any) bool {
		if k := key.(endedKey); isCall(k.route) {
			ended += n.(*atomic.Uint64).Load()
			if k.code >= http.StatusBadRequest {
				failed += n.(*atomic.Uint64).Load()
			}
		}
		return true
	})
	s.took.Range(func(route, h any) bool {
		if isCall(route.(string)) {
			took = took.Plus(h.(*telemetry.Histogram).Buckets())
		}
		return true
	})
	return ended, failed, took
}
