package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/lab/netlab"
)

// The roles, for short.
const (
	store  = localcluster.RoleStore
	alloc  = localcluster.RoleAlloc
	router = localcluster.RoleRouter
)

// Process is one node of the cluster that can be hurt. localcluster.Process is one.
type Process interface {
	// Start starts it where it does not run; it does not wait until it serves.
	Start() error
	// Stop asks it to leave and waits until it has.
	Stop(ctx context.Context) error
	// Kill is kill -9; the process is gone when it returns.
	Kill() error
	// Pause is SIGSTOP, Resume SIGCONT.
	Pause() error
	Resume() error
}

// Cluster is a running cluster of real processes. Close it in the end.
type Cluster struct {
	// Nodes are the daemons. They include the members of an etcd that was started with the cluster, in the
	// role of stores.
	Nodes    []localcluster.Node
	Own      *localcluster.Cluster // nil if others run the cluster, whose use is then unknown
	Network  *netlab.Network       // nil outside of namespaces
	Patience time.Duration         // bounds every wait for what must happen

	etcd      etcdclient.Flags   // Given: where the registers are; else in StoreSvr
	members   *localcluster.Etcd // that Start started; may be nil
	supervise bool               // each AllocSvr has a supervising parent
	processes map[string]Process // by name; empty when only addresses are known
	release   func()             // of Config; may be nil
	drop      func()             // removes the directory; nil if there is nothing to remove
	orphans   orphans
}

// Config is a cluster of one's own. Dir is not looked at: all is kept in a temporary
// directory.
type Config struct {
	localcluster.Config
	// Members is the number of members of an etcd that Start starts in place of stores, and that ends with
	// the cluster. If zero, the registers are in StoreSvr, or in the etcd of Config.Etcd.
	Members  int
	Temp     string          // the temporary directory's name begins so
	Keep     bool            // leave the directory after Close
	Network  *netlab.Network // if nil, on loopback
	Patience time.Duration   // bounds the start, and every wait for what must happen
	// Prepare is called when everything was started and does not serve yet. Release is called in Close when
	// nothing runs any more. Both may be nil.
	Prepare func(*localcluster.Cluster) error
	Release func()
}

// Planned are the nodes that Start will have, with role and name only.
func (c Config) Planned() []localcluster.Node {
	return append(localcluster.EtcdNodes(c.Members), c.daemons().Planned()...)
}

// Validate names the first field that cannot work, as localcluster.ErrConfig.
func (c Config) Validate() error { return c.daemons().Validate() }

// daemons is the part that localcluster.Start gets, with an endpoint in place of those that there
// will be.
func (c Config) daemons() localcluster.Config {
	if c.Members > 0 {
		c.Etcd.Endpoints = []string{"127.0.0.1:0"}
	}
	return c.Config
}

// Start starts a cluster in a temporary directory and waits until it serves.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	dir, err := os.MkdirTemp("", cfg.Temp)
	if err != nil {
		return nil, fmt.Errorf("make a temporary directory: %w", err)
	}
	c := &Cluster{Network: cfg.Network, Patience: cfg.Patience, supervise: cfg.Supervise, processes: map[string]Process{}, release: cfg.Release}
	if !cfg.Keep {
		c.drop = func() { _ = os.RemoveAll(dir) }
	}
	if err := c.start(ctx, dir, cfg); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, dir string, cfg Config) (err error) {
	layout := cfg.Config
	layout.Dir = filepath.Join(dir, "cluster")
	if n := cfg.Network; n != nil {
		layout.Host, layout.Wrap = n.Host, n.Wrap
		if cfg.Wrap != nil {
			layout.Wrap = func(name string, argv []string) []string { return n.Wrap(name, cfg.Wrap(name, argv)) }
		}
	}
	if cfg.Members > 0 {
		if err := c.startEtcd(ctx, filepath.Join(dir, "etcd"), cfg.Members, layout); err != nil {
			return err
		}
		layout.Etcd = c.etcd
	}
	c.etcd = layout.Etcd
	if c.Own, err = localcluster.Start(layout); err != nil {
		return err
	}
	c.Nodes = append(c.Nodes, c.Own.AllNodes()...)
	for _, p := range c.Own.Processes() {
		c.processes[p.Name] = p
	}
	if cfg.Prepare != nil {
		if err := cfg.Prepare(c.Own); err != nil {
			return err
		}
	}
	wait, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	if err := c.Own.WaitReady(wait); err != nil || cfg.Sets < 2 {
		return err
	}
	if err := c.Own.JoinSets(wait); err != nil {
		return err
	}
	return c.Own.WaitReady(wait)
}

// Close ends what runs of a cluster of one's own and removes its directory. A cluster of
// others goes on.
func (c *Cluster) Close() {
	if c.Own != nil {
		c.Own.KillAll()
	}
	if c.release != nil {
		c.release()
	}
	if c.Own != nil {
		c.Own.Close()
	}
	if c.members != nil {
		c.members.Close()
	}
	if c.drop != nil {
		c.drop()
	}
}

// Role lists the nodes of the roles.
func (c *Cluster) Role(roles ...localcluster.Role) []localcluster.Node {
	return slices.DeleteFunc(slices.Clone(c.Nodes), func(n localcluster.Node) bool { return !slices.Contains(roles, n.Role) })
}

// Addrs are the gRPC addresses of the roles.
func (c *Cluster) Addrs(roles ...localcluster.Role) (list []string) {
	for _, n := range c.Role(roles...) {
		list = append(list, n.Addr)
	}
	return list
}

// find is a node by its name.
func (c *Cluster) find(name string) localcluster.Node {
	at := slices.IndexFunc(c.Nodes, func(n localcluster.Node) bool { return n.Name == name })
	return c.Nodes[at]
}

// Recovered waits until every process of a cluster of one's own runs and serves.
func (c *Cluster) Recovered(ctx context.Context) error {
	wait, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	processes := c.Own.Processes()
	if c.members != nil {
		processes = append(processes, c.members.Processes()...)
	}
	for _, p := range processes {
		if !p.Running() {
			return fmt.Errorf("%w: %s does not run: %s", ErrNotRecovered, p.Name, p.Exit())
		}
		if line := localcluster.PanicIn(p.Log); line != "" {
			return fmt.Errorf("%w: %s: %s", ErrNotRecovered, p.Name, line)
		}
	}
	if err := c.Own.WaitReady(wait); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: %w", ErrNotRecovered, err)
	}
	return nil
}

func names(nodes []localcluster.Node) (list []string) {
	for _, n := range nodes {
		list = append(list, n.Name)
	}
	return list
}
