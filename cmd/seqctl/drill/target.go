package drill

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/internal/localcluster"
)

// process is one node of the cluster that can be hurt. localcluster.Process is one.
type process interface {
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

// target is the cluster that is drilled.
type target struct {
	nodes     []localcluster.Node
	processes map[string]process // by name; empty when only addresses are known
	fresh     bool               // nobody else has taken numbers of it
	close     func()
}

func (t *target) process(name string) process { return t.processes[name] }

// addr is a node's gRPC address.
func (t *target) addr(name string) string {
	for _, n := range t.nodes {
		if n.Name == name {
			return n.Addr
		}
	}
	return ""
}

// addrs are the gRPC addresses of the roles.
func (t *target) addrs(roles ...localcluster.Role) (list []string) {
	for _, n := range t.nodes {
		if slices.Contains(roles, n.Role) {
			list = append(list, n.Addr)
		}
	}
	return list
}

// startPatience bounds the start of a cluster of one's own.
const startPatience = 60 * time.Second

// startOwn starts a cluster in a temporary directory and waits until it serves.
func startOwn(ctx context.Context, cfg localcluster.Config, keep bool) (*target, error) {
	dir, err := os.MkdirTemp("", "seqctl-drill-")
	if err != nil {
		return nil, fmt.Errorf("make a temporary directory: %w", err)
	}
	drop := func() {
		if !keep {
			_ = os.RemoveAll(dir)
		}
	}
	cfg.Dir = filepath.Join(dir, "cluster")
	cluster, err := localcluster.Start(cfg)
	if err != nil {
		drop()
		return nil, err
	}
	t := &target{nodes: cluster.Nodes, processes: map[string]process{}, fresh: true, close: func() { cluster.Close(); drop() }}
	for _, p := range cluster.Processes() {
		t.processes[p.Name] = p
	}
	wait, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	if err := cluster.WaitReady(wait); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}
