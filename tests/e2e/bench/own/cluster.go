package own

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/seqsvr/seqsvr/internal/localcluster"
	"github.com/seqsvr/seqsvr/internal/rpc"
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
	Sections       uint32
	Exact          bool // with a space ExactSpace of mode=exact
}

// ExactSpace is the name of the exact space.
const ExactSpace = "exact"

// Cluster is a running one.
type Cluster struct {
	*localcluster.Cluster
	seqctl string
	Ready  time.Duration // from the start of its processes until all sections are served
}

// Start initialises a cluster in dir, starts it from the binaries in bin, and waits
// until it serves. The caller closes it.
func Start(ctx context.Context, bin, dir string, size Size) (*Cluster, error) {
	cfg := localcluster.DefaultConfig(dir)
	cfg.Bin, cfg.Stores, cfg.Allocs, cfg.Sections, cfg.RESP = bin, size.Stores, size.Allocs, size.Sections, "127.0.0.1:0"
	if size.Exact {
		cfg.Spaces = []string{ExactSpace + ":mode=exact,sections=64"}
	}
	began := time.Now()
	c, err := localcluster.Start(cfg)
	if err != nil {
		return nil, err
	}
	wait, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	if err := c.WaitReady(wait); err != nil {
		c.Close()
		return nil, err
	}
	return &Cluster{Cluster: c, seqctl: filepath.Join(bin, "seqctl"), Ready: time.Since(began)}, nil
}

// Pids are all processes, or those of the roles.
func (c *Cluster) Pids(roles ...localcluster.Role) []int {
	var out []int
	for _, p := range c.Processes(roles...) {
		out = append(out, p.Pid())
	}
	return out
}

// cpu is what all processes used so far.
func (c *Cluster) cpu() (time.Duration, error) {
	for _, p := range c.Processes() {
		if !p.Running() {
			return 0, fmt.Errorf("%w: %s %s", errRunning, p.Name, p.Exit())
		}
	}
	return host.CPU(c.Pids()...)
}

// MemoryMB is what all AllocSvr have in memory.
func (c *Cluster) MemoryMB() (float64, error) {
	var all float64
	for _, pid := range c.Pids(localcluster.RoleAlloc) {
		m, err := host.Memory(pid)
		if err != nil {
			return 0, err
		}
		all += m / 1e6
	}
	return all, nil
}

// commits are how many each store has made, by its id.
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
