package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/router"
)

// checkRESP: what the front does not own it asks others for, as this node. To them that is no
// caller with grants.
func (o *options) checkRESP() error {
	if o.resp.RESPListen != "" && o.Config.Guard != nil {
		return daemon.Usage(errors.New("--resp needs --auth off: an AllocSvr may not take numbers of others; use a router's front"))
	}
	return nil
}

// withRESP is an AllocSvr with a front for clients of Redis.
type withRESP struct {
	*allocsvr.Server
	front *router.RESP
}

// openRESP listens for clients of Redis, if that is wanted.
func (o *options) openRESP(server *allocsvr.Server) (daemon.Service, error) {
	if o.resp.RESPListen == "" {
		return server, nil
	}
	cfg := o.resp
	cfg.Allocs, cfg.ClusterID, cfg.TLS, cfg.Refused, cfg.Logger = []string{server.Addr()}, o.ClusterID, o.Config.TLS, o.Config.Refused, o.Common.Logger
	front, err := router.NewRESP(cfg, server)
	if err != nil {
		return nil, fmt.Errorf("front for clients of Redis (--resp): %w", err)
	}
	return withRESP{server, front}, nil
}

// Run implements daemon.Service. The end of one part is the end of both.
func (w withRESP) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		defer stop()
		ended <- w.front.Run(ctx)
	}()
	err := w.Server.Run(ctx)
	stop()
	if failed := <-ended; failed != nil {
		return errors.Join(err, failed)
	}
	return err
}

// Collect implements prometheus.Collector.
func (w withRESP) Collect(ch chan<- prometheus.Metric) {
	w.Server.Collect(ch)
	w.front.Send(ch)
}
