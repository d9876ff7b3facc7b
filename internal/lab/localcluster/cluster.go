package localcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Cluster is a running layout: one process a node. Processes are fixed by Start.
// All methods but Close are safe for concurrent use.
type Cluster struct {
	*Layout
	processes []*Process // in the order of Layout.Nodes, then AddStore's and the further Sets' processes
	clones    []*Process // that CloneStore made
	make      func(Node) *Process
}

// Start lays out a directory, or takes up the cluster in it, and starts everything. It does not wait until
// the cluster serves: WaitReady does. The caller must Close. Start returns the errors of Open, or the error
// of a process that it could not start.
func Start(cfg Config) (*Cluster, error) {
	layout, err := Open(cfg)
	if err != nil {
		return nil, err
	}
	c := &Cluster{Layout: layout}
	if err := c.buildAll(cfg); err != nil {
		layout.Close()
		return nil, err
	}
	if err := c.StartAll(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) build(cfg Config) error {
	binaries := map[Role]string{}
	for i, role := range []Role{RoleStore, RoleAlloc, RoleRouter} {
		if len(c.Role(role)) == 0 {
			continue
		}
		path, err := cfg.binary([]string{"storesvr", "allocsvr", "router"}[i])
		if err != nil {
			return err
		}
		binaries[role] = path
	}
	logs := filepath.Join(c.Dir, "logs")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return fmt.Errorf("make the folder of logs: %w", err)
	}
	env := cfg.Env
	if env == nil {
		env = cleanEnv(os.Environ())
	}
	var err error
	if cfg.Etcd.Given() {
		err = c.InitialiseEtcd(context.Background(), cfg)
	} else {
		err = c.Initialise(func(store Node) error { return runInit(cfg, c.Layout, binaries[RoleStore], env, store) })
	}
	if err != nil {
		return err
	}
	c.make = func(n Node) *Process {
		p := &Process{Node: n, Log: filepath.Join(logs, n.Name+".log"), env: env}
		p.argv = append([]string{binaries[n.Role]}, c.arguments(cfg, n)...)
		if n.Role == RoleAlloc && cfg.Supervise {
			p.pidFile = filepath.Join(c.Dir, n.Name+".pid")
			p.argv = append(p.argv, "--supervise", "--pid-file", p.pidFile)
		}
		p.argv = append(p.argv, cfg.Args[n.Role]...)
		if cfg.Wrap != nil {
			p.argv = cfg.Wrap(n.Name, p.argv)
		}
		return p
	}
	for _, n := range c.Nodes {
		if len(cfg.Roles) > 0 && !slices.Contains(cfg.Roles, n.Role) {
			continue
		}
		c.processes = append(c.processes, c.make(n))
	}
	return nil
}

// cleanEnv drops the settings that a daemon would read: what this cluster is set to
// stands on its command lines alone.
func cleanEnv(env []string) []string {
	return slices.DeleteFunc(env, func(pair string) bool { return strings.HasPrefix(pair, "SEQ_") })
}

func runInit(cfg Config, l *Layout, storesvr string, env []string, store Node) error {
	args := []string{"init", "--data-dir", store.Dir, "--cluster", l.ClusterID, "--name", store.Name,
		"--members", strings.Join(l.StoreNames(), ",")}
	if zones := l.StoreZones(); zones != nil {
		args = append(args, "--zones", strings.Join(zones, ","))
	}
	if cfg.Sections != 0 {
		args = append(args, "--sections", strconv.FormatUint(uint64(cfg.Sections), 10))
	}
	if cfg.Step != 0 {
		args = append(args, "--step", strconv.FormatUint(cfg.Step, 10))
	}
	for _, space := range cfg.Spaces {
		args = append(args, "--space", space)
	}
	cmd := exec.Command(storesvr, args...)
	cmd.Env = env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %w: %s", ErrExited, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// arguments is a daemon's command line without its name.
func (c *Cluster) arguments(cfg Config, n Node) []string {
	args := []string{"--listen", n.Addr, "--cluster", c.ClusterID, "--admin", "",
		"--gossip-listen", n.Gossip, "--gossip-join", strings.Join(c.GossipAddrs(), ",")}
	if cfg.GossipProfile != "" {
		args = append(args, "--gossip-profile", cfg.GossipProfile)
	}
	if told := n.Told(); told != "" {
		args = append(args, "--advertise", told)
	}
	if n.Zone != "" {
		args = append(args, "--zone", n.Zone)
	}
	args = append(args, c.Secured.arguments(n)...)
	switch n.Role {
	case RoleStore:
		return append([]string{"serve", "--data-dir", n.Dir}, args...)
	case RoleAlloc:
		args = append(args, "--name", n.Name, "--data-dir", n.Dir, "--expect-allocs", strconv.Itoa(len(c.Role(RoleAlloc))))
		if cfg.Etcd.Given() {
			args = append(args, cfg.Etcd.Arguments()...)
		} else {
			args = append(args, "--stores", strings.Join(c.Addrs(RoleStore), ","))
		}
		if cfg.Lease != 0 {
			args = append(args, "--lease", cfg.Lease.String())
		}
		return args
	}
	if n.Console != "" {
		args = append(args, "--console", n.Console)
	}
	return append(args, "--name", n.Name, "--http", n.HTTP, "--resp", n.RESP, "--allocs", strings.Join(c.AllocsOfAllSets(), ","))
}

// Processes lists the processes of the roles in order, or all of them: stores,
// allocators, routers.
func (c *Cluster) Processes(roles ...Role) []*Process {
	return slices.DeleteFunc(slices.Clone(c.processes), func(p *Process) bool {
		return len(roles) > 0 && !slices.Contains(roles, p.Role)
	})
}

// Process finds a process by its name, such as "alloc-2", or nil.
func (c *Cluster) Process(name string) *Process {
	if i := slices.IndexFunc(c.processes, func(p *Process) bool { return p.Name == name }); i >= 0 {
		return c.processes[i]
	}
	return nil
}

// GRPC is the gRPC address of the first router.
func (c *Cluster) GRPC() string { return c.Role(RoleRouter)[0].Addr }

// HTTP is the HTTP address of the first router.
func (c *Cluster) HTTP() string { return c.Role(RoleRouter)[0].HTTP }

// StartAll starts every process that does not run, all at once: each waits for those
// that it needs.
func (c *Cluster) StartAll() error {
	for _, p := range c.processes {
		if err := p.Start(); err != nil && !errors.Is(err, ErrRunning) {
			return err
		}
	}
	return nil
}

// StopAll stops the cluster in order: routers, allocators, stores. Every process is
// stopped, or killed when ctx ends, whatever the others did; the errors are joined.
// StartAll starts it again.
func (c *Cluster) StopAll(ctx context.Context) error {
	var errs []error
	for _, role := range []Role{RoleRouter, RoleAlloc, RoleStore} {
		errs = append(errs, together(c.Processes(role), func(p *Process) error { return p.Stop(ctx) })...)
	}
	return errors.Join(errs...)
}

// KillAll is kill -9 on everything, supervising parents and clones too, and waits until all of
// it is gone. StartAll starts it again, without clones.
func (c *Cluster) KillAll() {
	_ = together(append(slices.Clone(c.processes), c.clones...), func(p *Process) error {
		if r, err := p.current(); err == nil {
			p.killTree(r)
		}
		return nil
	})
}

// Close kills what still runs and gives up the directory and the ports.
func (c *Cluster) Close() {
	c.KillAll()
	c.Layout.Close()
}

// together does something with all processes at once and waits for it.
func together(processes []*Process, do func(*Process) error) []error {
	errs := make([]error, len(processes))
	var wg sync.WaitGroup
	for i, p := range processes {
		wg.Go(func() { errs[i] = do(p) })
	}
	wg.Wait()
	return errs
}
