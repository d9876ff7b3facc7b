package dev

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/storesvr"
)

// here is a cluster inside this process.
type here struct {
	layout  *localcluster.Layout
	members []*member // in the order of the layout's nodes
	log     *os.File
	news    chan string // closed by the first member that ends by itself
	fail    sync.Once
}

// member is one daemon inside this process.
type member struct {
	localcluster.Node
	cancel context.CancelFunc
	kill   func()        // ends it at once
	done   chan struct{} // closed after err was set
	err    error         // of its Run
}

// server has the methods of all daemons once they listen.
type server struct {
	run  func(ctx context.Context) error
	kill func()
}

// startHere starts all daemons in this process. Their log is a file in the directory.
func startHere(o *options) (running, *localcluster.Layout, error) {
	layout, err := localcluster.Open(o.Config)
	if err != nil {
		return nil, nil, err
	}
	h := &here{layout: layout, news: make(chan string, 1)}
	if err := h.start(o, layout); err != nil {
		err = errors.Join(err, stopNow(h))
		layout.Close()
		return nil, nil, err
	}
	return h, layout, nil
}

func (h *here) start(o *options, layout *localcluster.Layout) error {
	all := append([]*localcluster.Layout{layout}, layout.Others...)
	for _, set := range all {
		if err := initialise(o, set); err != nil {
			return err
		}
	}
	var err error
	if h.log, err = os.OpenFile(logFile(layout), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	logger, _, err := daemon.NewLogger(h.log, o.logLevel, "text")
	if err != nil {
		return err
	}
	for _, set := range all {
		for _, n := range set.Nodes {
			s, err := listen(o, set, n, logFile(layout), logger.With("node", n.Name))
			if err != nil {
				return fmt.Errorf("start %s: %w", n.Name, err)
			}
			h.add(n, s)
		}
	}
	return nil
}

// initialise makes the registers of a new directory of one Set.
func initialise(o *options, set *localcluster.Layout) error {
	if set.Etcd.Given() {
		return set.InitialiseEtcd(context.Background(), o.Config)
	}
	spaces, err := o.AllSpaces()
	if err != nil {
		return err
	}
	return set.Initialise(func(n localcluster.Node) error {
		return storesvr.Init(storesvr.InitConfig{
			DataDir: n.Dir, ClusterID: set.ClusterID, Name: n.Name, MemberNames: set.StoreNames(), Zones: set.StoreZones(), Spaces: spaces,
		})
	})
}

// logFile is where all daemons of one process log.
func logFile(layout *localcluster.Layout) string { return filepath.Join(layout.Dir, "dev.log") }

// listen makes one daemon.
func listen(o *options, layout *localcluster.Layout, n localcluster.Node, log string, logger *slog.Logger) (server, error) {
	tls, guard, keys, err := layout.Secured.Open(n, logger)
	if err != nil {
		return server{}, err
	}
	switch n.Role {
	case localcluster.RoleStore:
		cfg := storesvr.DefaultConfig()
		cfg.DataDir, cfg.Listen, cfg.ClusterID, cfg.Zone, cfg.Logger = n.Dir, n.Addr, layout.ClusterID, n.Zone, logger
		cfg.GossipListen, cfg.GossipJoin = n.Gossip, layout.GossipAddrs()
		cfg.TLS, cfg.Guard, cfg.GossipKeys = tls, guard, keys
		s, err := storesvr.New(cfg)
		if err != nil {
			return server{}, err
		}
		return server{s.Run, func() { _ = s.Close() }}, nil
	case localcluster.RoleAlloc:
		cfg := allocsvr.DefaultConfig()
		cfg.Name, cfg.DataDir, cfg.Listen, cfg.ClusterID, cfg.Logger = n.Name, n.Dir, n.Addr, layout.ClusterID, logger
		cfg.Stores, cfg.Lease, cfg.ExpectAllocs, cfg.Zone = layout.Addrs(localcluster.RoleStore), o.Lease, o.Allocs, n.Zone
		cfg.GossipListen, cfg.GossipJoin, cfg.DevLog = n.Gossip, layout.GossipAddrs(), log
		cfg.TLS, cfg.Guard, cfg.GossipKeys = tls, guard, keys
		if etcd := layout.Etcd; etcd.Given() {
			with, err := etcd.Config(logger)
			if err != nil {
				return server{}, err
			}
			cfg.Etcd = allocsvr.Etcd{Config: with, Prefix: etcd.Prefix, Requirement: etcd.Requirement()}
		}
		s, err := allocsvr.New(cfg)
		if err != nil {
			return server{}, err
		}
		return server{s.Run, s.Close}, nil
	}
	r, err := router.New(router.Config{
		Name: n.Name, Listen: n.Addr, Advertise: n.Told(), HTTPListen: n.HTTP, HTTPHosts: o.httpHosts, Leaf: true, RESPListen: n.RESP, ConsoleListen: n.Console, Allocs: layout.AllocsOfAllSets(), ClusterID: layout.ClusterID,
		GossipListen: n.Gossip, GossipJoin: layout.GossipAddrs(), Zone: n.Zone, Logger: logger, TLS: tls, Guard: guard, GossipKeys: keys,
	})
	if err != nil {
		return server{}, err
	}
	run := func(ctx context.Context) error {
		defer r.Close()
		return r.Run(ctx)
	}
	return server{run, func() { _ = r.Close() }}, nil
}

// add runs a daemon. If the daemon ends before it is stopped, the whole cluster ends, because one process
// can restart nothing alone.
func (h *here) add(n localcluster.Node, s server) {
	ctx, cancel := context.WithCancel(context.Background())
	m := &member{Node: n, cancel: cancel, kill: s.kill, done: make(chan struct{})}
	h.members = append(h.members, m)
	go func() {
		defer close(m.done)
		m.err = s.run(ctx)
		if ctx.Err() == nil {
			h.fail.Do(func() {
				h.news <- fmt.Sprintf("%s ended: %v", n.Name, m.err)
				close(h.news)
			})
		}
	}()
}

func (h *here) ready(ctx context.Context) error {
	errs := make([]error, len(h.members))
	var wg sync.WaitGroup
	for i, m := range h.members {
		wg.Go(func() {
			errs[i] = h.layout.WaitNode(ctx, m.Node, m.done, func() string { return fmt.Sprint(m.err) })
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (h *here) ended() <-chan string { return h.news }

func (h *here) stop(ctx context.Context) error {
	var errs []error
	for _, role := range []localcluster.Role{localcluster.RoleRouter, localcluster.RoleAlloc, localcluster.RoleStore} {
		errs = append(errs, h.stopRole(ctx, role)...)
	}
	if h.log != nil {
		errs = append(errs, h.log.Close())
	}
	return errors.Join(errs...)
}

func (h *here) stopRole(ctx context.Context, role localcluster.Role) (errs []error) {
	for _, m := range h.members {
		if m.Role == role {
			m.cancel()
		}
	}
	for _, m := range h.members {
		if m.Role != role {
			continue
		}
		select {
		case <-m.done:
		case <-ctx.Done():
			m.kill()
			<-m.done
			errs = append(errs, fmt.Errorf("%s did not stop in time: %w", m.Name, ctx.Err()))
		}
		if m.err != nil && !errors.Is(m.err, context.Canceled) {
			errs = append(errs, fmt.Errorf("%s: %w", m.Name, m.err))
		}
	}
	return errs
}

func (h *here) processes() []process {
	var list []process
	for _, m := range h.members {
		list = append(list, process{m.Role, m.Name, os.Getpid(), m.Addr, m.Zone, m.Set})
	}
	return list
}
