package localcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
)

// ErrNoEtcd: the program etcd is not installed.
var ErrNoEtcd = errors.New("etcd is not installed: apt-get install etcd-server, or put its binary etcd into PATH")

// EtcdConfig is an etcd of one's own for clusters that keep their registers there (Config.Etcd).
type EtcdConfig struct {
	Dir     string // of data and logs; required
	Members int    // 1 to MaxStores

	Host func(name string) string                  // as Config.Host
	Wrap func(name string, argv []string) []string // as Config.Wrap
}

// Etcd is a running etcd with the members etcd-1, etcd-2 ..., a process each, in the role of stores. All
// methods except Close are safe for concurrent use.
type Etcd struct {
	members []*Process
	guard   net.Listener // of the ports; nil with EtcdConfig.Host
}

// EtcdNodes are the members that there will be, with role and name only.
func EtcdNodes(members int) (nodes []Node) {
	for i := range members {
		nodes = append(nodes, Node{Role: RoleStore, Name: fmt.Sprintf("etcd-%d", i+1)})
	}
	return nodes
}

// StartEtcd starts the binary etcd of PATH; it does not wait for a leader. The
// caller must Close. ErrNoEtcd, ErrConfig, ErrNoPorts.
func StartEtcd(cfg EtcdConfig) (*Etcd, error) {
	if cfg.Members < 1 || cfg.Members > MaxStores {
		return nil, fmt.Errorf("%w: %d members of etcd, expected 1 to %d", ErrConfig, cfg.Members, MaxStores)
	}
	binary, err := exec.LookPath("etcd")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoEtcd, err)
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of etcd: %w", err)
	}
	e, port := &Etcd{}, 2379
	if cfg.Host == nil {
		block, lis, err := pickBlock()
		if err != nil {
			return nil, err
		}
		e.guard, port = lis, block*blockSize+1
	}
	e.members = plan(binary, cfg, port)
	for _, p := range e.members {
		if err := p.Start(); err != nil {
			e.Close()
			return nil, err
		}
	}
	return e, nil
}

// plan lays the members out: two ports each from port on.
func plan(binary string, cfg EtcdConfig, port int) (members []*Process) {
	var peers []string
	for i, n := range EtcdNodes(cfg.Members) {
		addr := func(port int) string {
			if cfg.Host != nil {
				return net.JoinHostPort(cfg.Host(n.Name), strconv.Itoa(port))
			}
			return loopback(port)
		}
		n.Addr, n.Gossip, n.Dir = addr(port+2*i), addr(port+2*i+1), filepath.Join(cfg.Dir, n.Name)
		peers = append(peers, n.Name+"=http://"+n.Gossip)
		members = append(members, &Process{Node: n, Log: n.Dir + ".log", env: cleanEnv(os.Environ()), bySign: true})
	}
	for _, p := range members {
		client, peer := "http://"+p.Addr, "http://"+p.Gossip
		p.argv = []string{binary, "--name", p.Name, "--data-dir", p.Dir, "--log-level", "warn",
			"--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
			"--initial-advertise-peer-urls", peer, "--initial-cluster", strings.Join(peers, ","),
			"--auto-compaction-retention", "5m", "--pre-vote"}
		if cfg.Wrap != nil {
			p.argv = cfg.Wrap(p.Name, p.argv)
		}
	}
	return members
}

// Processes lists the members in order.
func (e *Etcd) Processes() []*Process { return e.members }

// Endpoints are the members' addresses for clients.
func (e *Etcd) Endpoints() (addrs []string) {
	for _, p := range e.members {
		addrs = append(addrs, p.Addr)
	}
	return addrs
}

// Leader waits until every running member answers and knows the same leader, and gives that one.
// ErrExited if a member ended by itself; ErrNotReady when ctx ends. client is on the Endpoints.
func (e *Etcd) Leader(ctx context.Context, client *etcdclient.Client) (*Process, error) {
	for {
		leader, err := e.led(client.Status(ctx))
		if err == nil || errors.Is(err, ErrExited) {
			return leader, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("etcd: %w: %w", ErrNotReady, err)
		case <-time.After(5 * poll):
		}
	}
}

// led is the leader that all running members know.
func (e *Etcd) led(status []etcdclient.Member) (leader *Process, err error) {
	known := uint64(0)
	for i, m := range status {
		switch p := e.members[i]; {
		case p.Failed():
			return nil, fmt.Errorf("%s: %w: %s", p.Name, ErrExited, p.Exit())
		case !p.Running():
			continue
		case m.Err != nil:
			return nil, fmt.Errorf("%s: %w", p.Name, m.Err)
		case m.Leader == 0 || known != 0 && m.Leader != known:
			return nil, fmt.Errorf("%s: %w: it knows no leader, or another", p.Name, errUnready)
		case m.Leader == m.ID:
			leader = p
		}
		known = m.Leader
	}
	if leader == nil {
		return nil, fmt.Errorf("%w: no running member leads", errUnready)
	}
	return leader, nil
}

// Close kills what runs and gives up the ports. Safe to call twice.
func (e *Etcd) Close() {
	_ = together(e.members, func(p *Process) error {
		if r, err := p.current(); err == nil {
			p.killTree(r)
		}
		return nil
	})
	if e.guard != nil {
		_ = e.guard.Close()
	}
}
