package router

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seqsvr/seqsvr/client"
	calls "github.com/seqsvr/seqsvr/internal/sdk/call"
	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/router/line"
	"github.com/seqsvr/seqsvr/router/line/resp"
)

// RESP is the front for clients of Redis alone, within the process of an AllocSvr: numbers of
// the sections that this one owns are taken without a network, the others are forwarded.
type RESP struct {
	cfg Config
	lis net.Listener
	sdk *client.Client
	srv *line.Server
}

// nearFirst takes from near what is there.
type nearFirst struct {
	admitted
	near calls.Local
}

// Begin implements line.Numbers.
func (n nearFirst) Begin(ctx context.Context, orders ...*stream.Order) {
	n.Caller().BeginLocal(ctx, n.near, orders...)
}

// NewRESP listens at cfg.RESPListen. Of cfg it takes what a router has for this front, and how
// it finds the cluster.
func NewRESP(cfg Config, near calls.Local) (*RESP, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if err := cfg.checkLimits(); err != nil {
		return nil, fmt.Errorf("RESP: %w", err)
	}
	lis, err := net.Listen("tcp", cfg.RESPListen)
	if err == nil {
		lis, err = cfg.TLS.Listen(lis, rpc.OptionalClients)
	}
	if err != nil {
		return nil, fmt.Errorf("RESP: %w", err)
	}
	sdk, err := client.New(context.Background(), client.Config{
		Addrs: cfg.Allocs, ClusterID: cfg.ClusterID, AllowUnordered: true, Lazy: true, Logger: cfg.Logger, DialOptions: cfg.TLS.DialSets(auth.Alloc),
	})
	if err != nil {
		return nil, fmt.Errorf("RESP: %w", errors.Join(err, lis.Close()))
	}
	cfg.TLS.WarnExposed(cfg.Logger, lis.Addr().String())
	r := &RESP{cfg: cfg, lis: lis, sdk: sdk}
	r.srv = line.New(resp.New(), nearFirst{newAdmitted(sdk, gate.NewAdmission(DefaultMaxInWork)), near}, cfg.Logger)
	r.srv.CountRefused(cfg.Refused)
	r.srv.SetLimits(line.Limits{MaxConns: cfg.RESPMaxConns, MaxPipeline: cfg.RESPMaxPipeline})
	return r, nil
}

// Addr is where it listens.
func (r *RESP) Addr() string { return r.lis.Addr().String() }

// Run serves until ctx ends, then lets what was begun finish for at most gate.StopBound.
func (r *RESP) Run(ctx context.Context) error {
	defer r.sdk.Close()
	r.cfg.Logger.Info("RESP listens", "resp", r.Addr())
	return r.srv.Serve(ctx, r.lis, gate.StopBound)
}

// Close closes a RESP that never ran.
func (r *RESP) Close() error { return errors.Join(r.lis.Close(), r.sdk.Close()) }

// Send gives the metrics.
func (r *RESP) Send(ch chan<- prometheus.Metric) { r.srv.Send(ch) }
