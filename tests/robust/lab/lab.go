package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/internal/localcluster"
	"github.com/seqsvr/seqsvr/internal/netlab"
	"github.com/seqsvr/seqsvr/internal/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/tests/robust/proxy"
)

// Config is the cluster of a run.
type Config struct {
	Dir      string // everything is kept here
	Bin      string // folder of the daemons' binaries
	ForgetFS string // the disk helper's binary; empty: no faults of disks that forget
	Stores   int
	Allocs   int
	Routers  int
	Lease    time.Duration
	// Patience bounds every wait for something that must happen: a start, an end, the
	// recovery after a fault. It is there so that a run ends at all. What takes seconds on
	// an idle machine must not fail because another one is a hundred times as slow.
	Patience time.Duration
	Network  *netlab.Network // nil: on loopback, without the faults of a network
}

// DefaultConfig is 3 stores, 3 allocators and a router, with a lease of a second.
func DefaultConfig() Config {
	return Config{Stores: 3, Allocs: 3, Routers: 1, Lease: time.Second, Patience: 10 * time.Minute}
}

// Names are the nodes that a cluster of this Config has.
func (c Config) Names() (names []string) {
	for _, role := range []struct {
		role  localcluster.Role
		count int
	}{{localcluster.RoleStore, c.Stores}, {localcluster.RoleAlloc, c.Allocs}, {localcluster.RoleRouter, c.Routers}} {
		for i := range role.count {
			names = append(names, fmt.Sprintf("%s-%d", role.role, i+1))
		}
	}
	return names
}

// Sections and the step are small, so that stores write all the time and numbers of many
// users meet in one section.
const (
	sections = 256
	step     = 200
)

// Lab is a running cluster with everything that can be broken.
type Lab struct {
	*localcluster.Cluster
	cfg     Config
	network *netlab.Network
	proxies map[pair]*proxy.Proxy
	disks   map[string]*disk // by store; empty without a helper
}

// pair is the way from an allocator to a store.
type pair struct{ alloc, store string }

// Start starts the cluster and waits until it serves. Close it in the end.
func Start(ctx context.Context, cfg Config) (*Lab, error) {
	l := &Lab{cfg: cfg, network: cfg.Network, proxies: map[pair]*proxy.Proxy{}, disks: map[string]*disk{}}
	if err := l.start(ctx); err != nil {
		l.Close()
		return nil, fmt.Errorf("%w: %w", ErrSetup, err)
	}
	return l, nil
}

func (l *Lab) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Patience)
	defer cancel()
	if err := l.listen(); err != nil {
		return err
	}
	cluster, err := localcluster.Start(l.clusterConfig())
	if err != nil {
		return err
	}
	l.Cluster = cluster
	if l.cfg.ForgetFS != "" {
		// The databases are made by now. What the disks hold becomes their durable state.
		l.KillAll()
		l.mountDisks()
		if err := l.StartAll(); err != nil {
			return err
		}
	}
	if err := l.WaitReady(ctx); err != nil {
		return err
	}
	return l.addTags(ctx)
}

// mountDisks mounts all disks or, where FUSE is not to be had, none: then the faults that
// need them are skipped.
func (l *Lab) mountDisks() {
	for _, p := range l.Processes(localcluster.RoleStore) {
		d, err := mountDisk(l.cfg.ForgetFS, p.Dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, "robust: without disks that forget:", err)
			for _, d := range l.disks {
				d.close()
			}
			clear(l.disks)
			l.cfg.ForgetFS = ""
			return
		}
		l.disks[p.Name] = d
	}
}

func (l *Lab) clusterConfig() localcluster.Config {
	cfg := localcluster.DefaultConfig(filepath.Join(l.cfg.Dir, "cluster"))
	cfg.Stores, cfg.Allocs, cfg.Routers = l.cfg.Stores, l.cfg.Allocs, l.cfg.Routers
	cfg.Bin, cfg.Lease, cfg.Sections, cfg.Step = l.cfg.Bin, l.cfg.Lease, sections, step
	if l.network != nil {
		cfg.Host = l.network.Host
	}
	cfg.Wrap = l.wrap
	return cfg
}

// listen makes a proxy for every way from an allocator to a store. Where they lead is
// known once the cluster has its addresses.
func (l *Lab) listen() error {
	host := "127.0.0.1"
	if l.network != nil {
		host = netlab.HubAddr
	}
	names := l.cfg.Names()
	for _, alloc := range names[l.cfg.Stores : l.cfg.Stores+l.cfg.Allocs] {
		for _, store := range names[:l.cfg.Stores] {
			p, err := proxy.Listen(net.JoinHostPort(host, "0"))
			if err != nil {
				return err
			}
			l.proxies[pair{alloc, store}] = p
		}
	}
	return nil
}

// wrap gives an allocator the proxies in place of the stores, and runs a node in its
// namespace.
func (l *Lab) wrap(name string, argv []string) []string {
	argv = slices.Clone(argv)
	if at := slices.Index(argv, "--stores"); at >= 0 {
		var ways []string
		for i, addr := range strings.Split(argv[at+1], ",") {
			p := l.proxies[pair{name, l.cfg.Names()[i]}]
			p.Target(addr)
			ways = append(ways, p.Addr())
		}
		argv[at+1] = strings.Join(ways, ",")
	}
	if l.network != nil {
		return l.network.Wrap(name, argv)
	}
	return argv
}

// addPause is between two tries to add a named counter.
const addPause = 100 * time.Millisecond

// tags are the named counters that callers use.
var tags = []string{"orders", "invoices", "rooms"}

func (l *Lab) addTags(ctx context.Context) error {
	conn, err := rpc.Dial(l.Addrs(localcluster.RoleAlloc)[0])
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, tag := range tags {
		put := &pb.SegmentPutRequest{Tag: &pb.SegmentTag{Tag: tag, MinStep: 50, MaxStep: 500}}
		for { // a lease that lapses just now is no reason to give up
			_, err := pb.NewSegmentClient(conn).Put(ctx, put)
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("add tag %s: %w", tag, err)
			case <-time.After(addPause):
			}
		}
	}
	return nil
}

// Recovered waits until every process runs and serves.
func (l *Lab) Recovered(ctx context.Context) error {
	wait, cancel := context.WithTimeout(ctx, l.cfg.Patience)
	defer cancel()
	for _, p := range l.Processes() {
		if !p.Running() {
			return fmt.Errorf("%w: %s does not run: %s", ErrNotRecovered, p.Name, p.Exit())
		}
	}
	if err := l.WaitReady(wait); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: %w", ErrNotRecovered, err)
	}
	return nil
}

// Close ends all processes, takes the disks down and closes the proxies.
func (l *Lab) Close() {
	if l.Cluster != nil {
		l.KillAll()
	}
	for _, d := range l.disks {
		d.close()
	}
	if l.Cluster != nil {
		l.Cluster.Close()
	}
	for _, p := range l.proxies {
		_ = p.Close()
	}
}

// Stop stops the cluster in order; the error names what did not end well.
func (l *Lab) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Patience)
	defer cancel()
	return l.StopAll(ctx)
}

// logged is how much a process has written into its log.
func logged(p *localcluster.Process) int64 {
	info, err := os.Stat(p.Log)
	if err != nil {
		return 0
	}
	return info.Size()
}

// said is what a process has written into its log since.
func said(p *localcluster.Process, since int64) string {
	text, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	return string(text[min(since, int64(len(text))):])
}

// lastLines is the end of a process's log, for a report of a failure.
func (l *Lab) lastLines(name string, n int) string {
	p := l.Process(name)
	if p == nil {
		return ""
	}
	text, err := os.ReadFile(p.Log)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
