package rounds

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/internal/lab"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/lab/netlab"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/tests/robust/proxy"
)

const (
	store  = localcluster.RoleStore
	alloc  = localcluster.RoleAlloc
	router = localcluster.RoleRouter
)

// Config is the cluster of a run. Its patience is there so that a run ends at all: what
// takes seconds on an idle machine must not fail because another one is a hundred times as
// slow.
type Config struct {
	lab.Config
	ForgetFS string // the disk helper's binary; if empty, no disk forgets
}

// exactSpace is the space of mode=exact.
const exactSpace = "ledger"

// Sections and the step are small, so that stores write all the time and numbers of many
// users meet in one section.
const (
	sections = 256
	step     = 200
)

// DefaultConfig is 3 stores, 3 allocators and a router, with a lease of a second.
func DefaultConfig() Config {
	cfg := Config{Config: lab.Config{Config: localcluster.DefaultConfig(""), Temp: "seqsvr-robust-", Patience: 10 * time.Minute}}
	cfg.Lease, cfg.Sections, cfg.Step = time.Second, sections, step
	cfg.Spaces = []string{lab.ExactSpace(exactSpace) + fmt.Sprintf(",sections=%d", sections)}
	return cfg
}

// Site is a running cluster with proxies between allocators and stores, and with disks
// that forget where there is a helper. Close it in the end.
type Site struct {
	*lab.Cluster
	cfg     Config
	proxies map[pair]*proxy.Proxy
	disks   map[string]*disk // by store; empty without a helper
}

// pair is the way from an allocator to a store.
type pair struct{ alloc, store string }

// Start starts the cluster and waits until it serves.
func Start(ctx context.Context, cfg Config) (*Site, error) {
	s := &Site{cfg: cfg, proxies: map[pair]*proxy.Proxy{}, disks: map[string]*disk{}}
	if cfg.Sets < 2 {
		s.cfg.Wrap, s.cfg.Release = s.wrap, s.release
	}
	if cfg.ForgetFS != "" {
		s.cfg.Prepare = s.mountDisks
	}
	var err error
	if s.cfg.Wrap != nil {
		err = s.listen()
	}
	if err == nil {
		s.Cluster, err = lab.Start(ctx, s.cfg.Config)
	}
	if err != nil {
		s.release()
		return nil, fmt.Errorf("%w: %w", ErrSetup, err)
	}
	if err := s.addTags(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("%w: %w", ErrSetup, err)
	}
	return s, nil
}

// mountDisks mounts all disks. Without FUSE it mounts none, and the faults that need them are skipped. The
// databases exist already. The present content of the disks becomes their durable state.
func (s *Site) mountDisks(c *localcluster.Cluster) error {
	c.KillAll()
	for _, p := range c.Processes(store) {
		d, err := mountDisk(s.cfg.ForgetFS, p.Dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, "robust: without disks that forget:", err)
			s.closeDisks()
			s.cfg.ForgetFS = ""
			break
		}
		s.disks[p.Name] = d
	}
	return c.StartAll()
}

func (s *Site) closeDisks() {
	for _, d := range s.disks {
		d.close()
	}
	clear(s.disks)
}

// release takes the disks down and closes the proxies.
func (s *Site) release() {
	s.closeDisks()
	for _, p := range s.proxies {
		_ = p.Close()
	}
	clear(s.proxies)
}

// listen makes a proxy for every way from an allocator to a store. Where they lead is
// known once the cluster has its addresses.
func (s *Site) listen() error {
	host := "127.0.0.1"
	if s.cfg.Network != nil {
		host = netlab.HubAddr
	}
	for _, a := range s.cfg.Planned() {
		for _, st := range s.cfg.Planned() {
			if a.Role != alloc || st.Role != store {
				continue
			}
			p, err := proxy.Listen(net.JoinHostPort(host, "0"))
			if err != nil {
				return err
			}
			s.proxies[pair{a.Name, st.Name}] = p
		}
	}
	return nil
}

// wrap gives an allocator the proxies in place of the stores.
func (s *Site) wrap(name string, argv []string) []string {
	argv = slices.Clone(argv)
	if at := slices.Index(argv, "--stores"); at >= 0 {
		var ways []string
		for i, addr := range strings.Split(argv[at+1], ",") {
			p := s.proxies[pair{name, s.cfg.Planned()[i].Name}] // stores come first
			p.Target(addr)
			ways = append(ways, p.Addr())
		}
		argv[at+1] = strings.Join(ways, ",")
	}
	return argv
}

// addPause is between two tries to add a named counter.
const addPause = 100 * time.Millisecond

// tags are the named counters that callers use.
var tags = []string{"orders", "invoices", "rooms"}

func (s *Site) addTags(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	conn, err := rpc.Dial(s.Addrs(alloc)[0])
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

// Stop stops the cluster in order; the error names what did not end well.
func (s *Site) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	return s.Own.StopAll(ctx)
}

// lacks returns the need of the scenario that is missing here, or "".
func (s *Site) lacks(sc lab.Scenario) string {
	if sc.Needs == lab.NeedNetwork && s.Network == nil || sc.Needs == needDisk && len(s.disks) == 0 {
		return sc.Needs
	}
	return ""
}

// logged returns the size of a process's log.
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
func lastLines(p *localcluster.Process, n int) string {
	lines := strings.Split(strings.TrimSpace(said(p, 0)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
