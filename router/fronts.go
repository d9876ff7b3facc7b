package router

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seqsvr/seqsvr/internal/process/telemetry"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
)

// The names of the fronts in errors and, in lower case, in logs.
const (
	grpcFront    = "gRPC"
	httpFront    = "HTTP"
	respFront    = "RESP"
	consoleFront = "console"
)

// port is a front with a listener of its own. All fronts share the admission, the readiness and the
// end of the router.
type port struct {
	name string
	at   string // host:port of the Config; if empty, the router has no such front
	// own means that serve does TLS itself.
	own bool
	// serve answers callers until ctx ends. Then it lets calls in flight finish, for at most
	// gate.StopBound, and closes the listener.
	serve func(ctx context.Context, lis net.Listener) error
	// send and totals give what the front counts. They are nil for a front without calls.
	send   func(chan<- prometheus.Metric)
	totals func() (ended, failed uint64, took telemetry.Buckets)

	lis net.Listener // nil until open
}

// ports returns the fronts of the configuration. Their functions are for a Router that New has made.
func (r *Router) ports() []*port {
	all := []*port{
		{name: grpcFront, at: r.cfg.Listen, own: true, send: r.calls.Send,
			serve:  func(ctx context.Context, lis net.Listener) error { return gate.Serve(ctx, r.srv, lis) },
			totals: func() (ended, failed uint64, took telemetry.Buckets) { return r.calls.Totals("/seqsvr.") }},
		{name: httpFront, at: r.cfg.HTTPListen, serve: r.serveHTTP, send: r.http.send, totals: r.http.totals},
		{name: respFront, at: r.cfg.RESPListen,
			serve:  func(ctx context.Context, lis net.Listener) error { return r.resp.Serve(ctx, lis, gate.StopBound) },
			send:   func(ch chan<- prometheus.Metric) { r.resp.Send(ch) },
			totals: func() (ended, failed uint64, took telemetry.Buckets) { return r.resp.Totals() }},
		{name: consoleFront, at: r.cfg.ConsoleListen, serve: r.serveConsole},
	}
	return slices.DeleteFunc(all, func(p *port) bool { return p.at == "" })
}

// listen opens the listeners of all fronts, or of none.
func (r *Router) listen() error {
	for _, p := range r.fronts {
		lis, err := net.Listen("tcp", p.at)
		if err == nil && !p.own {
			lis, err = r.cfg.TLS.Listen(lis, rpc.OptionalClients)
		}
		if err != nil {
			r.unlisten()
			return fmt.Errorf("router: %s: %w", p.name, err)
		}
		p.lis = lis
	}
	return nil
}

func (r *Router) unlisten() {
	for _, p := range r.fronts {
		if p.lis != nil {
			_ = p.lis.Close()
		}
	}
}

// addr returns the address of a front; "" without it.
func (r *Router) addr(name string) string {
	for _, p := range r.fronts {
		if p.name == name {
			return p.lis.Addr().String()
		}
	}
	return ""
}

// Addr returns the address of the gRPC front.
func (r *Router) Addr() string { return r.addr(grpcFront) }

// HTTPAddr returns the address of the HTTP front. Without the front, it is empty.
func (r *Router) HTTPAddr() string { return r.addr(httpFront) }

// RESPAddr returns the address of the front for clients of Redis. Without the front, it is empty.
func (r *Router) RESPAddr() string { return r.addr(respFront) }

// ConsoleAddr returns the address of the console. Without a console, it is empty.
func (r *Router) ConsoleAddr() string { return r.addr(consoleFront) }

// addrs returns the addresses of all fronts.
func (r *Router) addrs() (all []string) {
	for _, p := range r.fronts {
		all = append(all, p.lis.Addr().String())
	}
	return all
}

// logged returns the address of each front by its name, as a logger takes them. Fronts that the
// router does not have are empty.
func (r *Router) logged() (all []any) {
	for _, name := range []string{grpcFront, httpFront, respFront, consoleFront} {
		all = append(all, strings.ToLower(name), r.addr(name))
	}
	return all
}
