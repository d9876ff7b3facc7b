package own

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/tests/e2e/bench/host"
)

// startPatience bounds the start of a cluster.
const startPatience = 90 * time.Second

// errRunning: a process of the cluster does not run.
var errRunning = errors.New("process does not run")

// Size of a cluster. 0 sections: the default.
type Size struct {
	Stores, Allocs int
	Etcd           int // members of an etcd in place of the stores; if zero, StoreSvr
	Sections       uint32
	Modes          bool // with ExactSpace and StrictSpace, of their modes, and TicketSpace
}

// The names of the exact space, the strict space, and the space with tickets.
const (
	ExactSpace  = "exact"
	StrictSpace = "strict"
	TicketSpace = "inbox"
)

// Cluster is a running one.
type Cluster struct {
	*localcluster.Cluster
	seqctl  string
	etcd    etcdclient.Flags
	members *localcluster.Etcd // nil on StoreSvr
	Ready   time.Duration      // from the start of its processes until all sections are served
}

// Start initialises a cluster in dir, starts it from the binaries in bin, and waits
// until it serves. The caller closes it. localcluster.ErrNoEtcd.
func Start(ctx context.Context, bin, dir string, size Size) (*Cluster, error) {
	cfg := localcluster.DefaultConfig(dir)
	cfg.Bin, cfg.Stores, cfg.Allocs, cfg.Sections, cfg.RESP = bin, size.Stores, size.Allocs, size.Sections, "127.0.0.1:0"
	if size.Modes {
		cfg.Spaces = []string{ExactSpace + ":mode=exact,sections=64", StrictSpace + ":mode=strict,sections=64", TicketSpace + ":tickets=10s,sections=64"}
	}
	wait, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	c := &Cluster{seqctl: filepath.Join(bin, "seqctl")}
	var err error
	if size.Etcd > 0 {
		if c.members, c.etcd, err = startEtcd(wait, dir, size.Etcd); err != nil {
			return nil, err
		}
		cfg.Etcd, cfg.Lease = c.etcd, etcdclient.DefaultLease
	}
	began := time.Now()
	if c.Cluster, err = localcluster.Start(cfg); err == nil {
		err = c.WaitReady(wait)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	c.Ready = time.Since(began)
	return c, nil
}

// Close ends all processes.
func (c *Cluster) Close() {
	if c.Cluster != nil {
		c.Cluster.Close()
	}
	if c.members != nil {
		c.members.Close()
	}
}

// all are the processes, members of etcd among them.
func (c *Cluster) all() []*localcluster.Process {
	list := c.Processes()
	if c.members != nil {
		list = append(list, c.members.Processes()...)
	}
	return list
}

// Pids are all processes.
func (c *Cluster) Pids() (out []int) {
	for _, p := range c.all() {
		out = append(out, p.Pid())
	}
	return out
}

// cpu is what all processes used so far.
func (c *Cluster) cpu() (time.Duration, error) {
	for _, p := range c.all() {
		if !p.Running() {
			return 0, fmt.Errorf("%w: %s %s", errRunning, p.Name, p.Exit())
		}
	}
	return host.CPU(c.Pids()...)
}

// MemoryMB is what all AllocSvr have in memory.
func (c *Cluster) MemoryMB() (float64, error) {
	var all float64
	for _, p := range c.Processes(localcluster.RoleAlloc) {
		m, err := host.Memory(p.Pid())
		if err != nil {
			return 0, err
		}
		all += m / 1e6
	}
	return all, nil
}

// commits returns how many commits each store has made, by its id. For etcd it returns the revision.
func (c *Cluster) commits(ctx context.Context) (map[string]uint64, error) {
	conn, err := rpc.Dial(c.Addrs(localcluster.RoleAlloc)[0])
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	reply, err := pb.NewAdminClient(conn).Status(ctx, &pb.StatusRequest{})
	if err != nil {
		return nil, err
	}
	out := map[string]uint64{}
	for _, s := range reply.GetStores() {
		out[s.GetUuid()] = s.GetCommits()
	}
	return out, nil
}
