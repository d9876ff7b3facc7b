package router

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seqsvr/seqsvr/internal/process/telemetry"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
)

var (
	mHTTP        = telemetry.Counter("router_http_requests_total", "Requests of the HTTP front by route, as the OpenAPI document has it, and status.", "route", "code")
	mHTTPSeconds = telemetry.Distribution("router_http_request_seconds", "How long requests of the HTTP front took.", "route")
	mWatches     = telemetry.Gauge("router_watches", "Watches of callers (watches), and the keys that they watch, each counted once a watch (keys); at 4,194,304 keys no more are watched.", "of")
	mTold        = telemetry.Counter("router_watch_told_total", "Values that watches were told (told), and keys that were refused because too many were watched (refused).", "event")
	mTries       = telemetry.Counter("router_retries_total", "Failed attempts that were made again, one for each key of a batch.")
	mPauses      = telemetry.Counter("router_retry_pauses_total", "Times that a call had nobody left to ask and waited for a moment.")
	mAlone       = telemetry.Counter("router_fallback_ids_total", "Snowflake IDs that this router made itself while no AllocSvr answered; see ids-fallback.")
	mAloneUntil  = telemetry.Gauge("router_fallback_window_remaining_seconds", "For how long it could go on; 0 without ids-fallback, and without a worker id for each of its namespaces.")
	mPeers       = telemetry.Gauge("router_peers", "AllocSvr that the route tables of all Sets name.")
	mSetMap      = telemetry.Gauge("router_sets_map_version", "Version of the map of Sets that this router goes by; absent if the cluster is alone.")
	mSetTable    = telemetry.Gauge("router_set_route_table_version", "Version of the route table of one of several Sets; 0: not known.", "set")
	mSetAway     = telemetry.Gauge("router_set_away", "1 while calls for the sections of one of several Sets end, as none of its AllocSvr that can be reached has a quorum, or none can be reached.", "set")
	mTable       = telemetry.Gauge("route_table_version", "Version of the route table that this process goes by; 0: none yet.")
)

// otherRoutes stands for every path that is no route: there is no end of those.
const otherRoutes = "(other)"

// httpStats counts requests by route. The routes are fixed, and the codes are HTTP statuses.
type httpStats struct {
	ended sync.Map // endedKey -> *atomic.Uint64
	took  sync.Map // route -> *telemetry.Histogram
}

type endedKey struct {
	route string
	code  int
}

// watch counts what a route answers.
func (s *httpStats) watch(route string, next http.Handler) http.Handler {
	took := telemetry.Durations()
	s.took.Store(route, took)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		out := gate.Watch(w)
		next.ServeHTTP(out, r)
		took.Observe(time.Since(begun))
		key := endedKey{route, out.Code}
		n, ok := s.ended.Load(key)
		if !ok {
			n, _ = s.ended.LoadOrStore(key, new(atomic.Uint64))
		}
		n.(*atomic.Uint64).Add(1)
	})
}

func (s *httpStats) send(ch chan<- prometheus.Metric) {
	s.ended.Range(func(key, n any) bool {
		k := key.(endedKey)
		mHTTP.Send(ch, float64(n.(*atomic.Uint64).Load()), k.route, strconv.Itoa(k.code))
		return true
	})
	s.took.Range(func(route, h any) bool {
		mHTTPSeconds.Histogram(ch, h.(*telemetry.Histogram), route.(string))
		return true
	})
}

// Describe implements prometheus.Collector; see telemetry.Func.
func (r *Router) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (r *Router) Collect(ch chan<- prometheus.Metric) {
	for _, p := range r.fronts {
		if p.send != nil {
			p.send(ch)
		}
	}
	telemetry.SendAdmission(ch, r.inWork)
	telemetry.SendAuth(ch, r.cfg.Guard)
	telemetry.SendRefused(ch, r.cfg.Refused)
	stats := r.sdk.Stats()
	mTries.Send(ch, float64(stats.Retries))
	mPauses.Send(ch, float64(stats.Pauses))
	alone := r.sdk.Stats().Fallback
	mAlone.Send(ch, float64(alone.IDs))
	mAloneUntil.Send(ch, max(0, time.Until(alone.ValidUntil).Seconds()))
	watched := r.services.seqs.watches
	mWatches.Send(ch, float64(watched.Watchers.Load()), "watches")
	mWatches.Send(ch, float64(watched.Keys.Load()), "keys")
	mTold.Send(ch, float64(watched.Told.Load()), "told")
	mTold.Send(ch, float64(watched.Refused.Load()), "refused")
	r.sendSets(ch)
	telemetry.SendMembers(ch, r.view.Load())
	telemetry.SendTraces(ch, r.cfg.Traces)
}

// sendSets gives what is known of the cluster, or of all Sets.
func (r *Router) sendSets(ch chan<- prometheus.Metric) {
	known, peers, root := r.sdk.Sets(), 0, uint64(0)
	for i, s := range known.All {
		version, away := uint64(0), 0.0
		if s.Routes != nil {
			version, peers = s.Routes.Version, peers+len(s.Routes.Nodes)
		}
		if s.Away != nil {
			away = 1
		}
		if i == 0 {
			root = version
		}
		if known.Map.Version > 0 {
			mSetTable.Send(ch, float64(version), s.Name)
			mSetAway.Send(ch, away, s.Name)
		}
	}
	if known.Map.Version > 0 {
		mSetMap.Send(ch, float64(known.Map.Version))
	}
	mTable.Send(ch, float64(root))
	mPeers.Send(ch, float64(peers))
}
