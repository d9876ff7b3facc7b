package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/seqsvr/seqsvr/internal/wire/gate"
)

// Bounds of an admin connection. A profile may take a minute.
const (
	headerTimeout = 5 * time.Second
	writeTimeout  = 2 * time.Minute
	idleTimeout   = 2 * time.Minute
	maxHeader     = 16 << 10
	maxScrapes    = 4 // at once; more are refused
)

// Admin is what an admin listener answers with.
type Admin struct {
	Daemon  string // storesvr, allocsvr or router
	Subject Subject
	Pprof   bool // serve /debug/pprof/ too
	Logger  *slog.Logger
	// Dropped returns how many lines of the log were lost. If nil, none is counted.
	Dropped func() uint64
}

// Handler answers /metrics, /livez and /readyz, and /debug/pprof/ if that was asked for.
// Everything is text. /readyz gives 503 with the reason in one line.
func (a Admin) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(a.Registry(), promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(a.Logger.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError,
		MaxRequestsInFlight: maxScrapes,
	}))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := a.Subject.Ready(); err != nil {
			say(w, http.StatusServiceUnavailable, "not ready: "+err.Error())
			return
		}
		say(w, http.StatusOK, "ok")
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		text := a.Daemon + "\n\n/metrics\n/livez\n/readyz"
		if a.Pprof {
			text += "\n/debug/pprof/"
		}
		say(w, http.StatusOK, text)
	})
	if a.Pprof {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	return mux
}

var logDropped = Counter("log_dropped_lines_total", "Lines of the log that were dropped since it was not read or could not be written.")

// Registry returns all that /metrics shows.
func (a Admin) Registry() *prometheus.Registry {
	r := NewRegistry(a.Daemon, a.Subject)
	if a.Dropped != nil {
		r.MustRegister(Func(func(ch chan<- prometheus.Metric) { logDropped.Send(ch, float64(a.Dropped())) }))
	}
	return r
}

func say(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = fmt.Fprintln(w, text) // the caller has left
}

// Serve answers on lis until ctx ends, and closes it. Calls in flight are cut off
// then: nothing depends on them. Nil after ctx ended; else why the listener failed.
func (a Admin) Serve(ctx context.Context, lis net.Listener) error {
	srv := &http.Server{
		Handler:           gate.EndTests(a.Handler()),
		ReadHeaderTimeout: headerTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(a.Logger.Handler(), slog.LevelWarn),
	}
	defer context.AfterFunc(ctx, func() { _ = srv.Close() })()
	err := srv.Serve(lis)
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("serve admin on %s: %w", lis.Addr(), err)
}
