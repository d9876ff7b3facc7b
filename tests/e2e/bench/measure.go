package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/tests/e2e/bench/host"
	"github.com/seqsvr/seqsvr/tests/e2e/bench/own"
	"github.com/seqsvr/seqsvr/tests/e2e/bench/peers"
	"github.com/seqsvr/seqsvr/tests/e2e/bench/report"
)

// idle is the time for which the servers are watched without calls.
const idle = 2 * time.Second

// field is everything that runs during the rounds.
type field struct {
	root, dir string // of the module; of all data
	settings  settings
	subjects  []subject
	pids      func() []int
	data      report.Data
	ends      []func()
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// measure makes all measurements. It notes in the data which measurements were impossible. It returns an
// error if there is nothing to report.
func measure(ctx context.Context, root string, s settings) (report.Data, error) {
	f := &field{root: root, settings: s}
	f.data.Runs, f.data.Seconds = s.runs, s.duration.Seconds()
	f.data.Machine = report.Machine{Date: time.Now().UTC().Format("2006-01-02 15:04 UTC"), Cores: runtime.NumCPU(), CPU: host.Processor(), Kernel: host.Kernel(),
		MemoryGB: host.MemoryGB(), LoadStart: host.LoadAverage(), Command: s.command()}
	bin := filepath.Join(root, "bin")
	if _, err := os.Stat(filepath.Join(bin, "seqctl")); err != nil {
		return report.Data{}, fmt.Errorf("%w (make build puts it there)", err)
	}
	var err error
	if f.dir, err = os.MkdirTemp(bin, "bench-"); err != nil {
		return report.Data{}, err
	}
	defer os.RemoveAll(f.dir)
	// PostgreSQL may run under another account, which must be able to enter.
	if err := os.Chmod(f.dir, 0o755); err != nil {
		return report.Data{}, err
	}
	if err := f.disk(); err != nil {
		return report.Data{}, err
	}
	defer f.end()
	defer f.awake()()
	if err := f.start(ctx, bin); err != nil {
		return report.Data{}, err
	}
	f.watchIdle(ctx)
	if err := f.rounds(ctx); err != nil {
		return report.Data{}, err
	}
	f.end() // growth has the machine for itself
	if s.wants("growth") {
		if err := f.growth(ctx, bin); err != nil {
			return report.Data{}, err
		}
	}
	f.data.Machine.LoadEnd = host.LoadAverage()
	return f.data, nil
}

func (f *field) end() {
	for i := len(f.ends) - 1; i >= 0; i-- {
		f.ends[i]()
	}
	f.ends = nil
}

// awake keeps the processors from deep idling during the whole run, unless that is not
// wanted or not allowed, and notes which it is.
func (f *field) awake() (end func()) {
	how := &f.data.Machine.Idling
	if f.settings.asleep {
		*how = "as the machine does it, which was asked for"
		return func() {}
	}
	end, err := host.StayAwake()
	if err != nil {
		say("%v", err)
		*how = "as the machine does it: " + err.Error()
		return func() {}
	}
	*how = "the processors were kept awake for all alike (`/dev/cpu_dma_latency` at 0)"
	return end
}

func (f *field) disk() error {
	p50, p99, err := host.Fsync(f.dir)
	if err != nil {
		return err
	}
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
	f.data.Machine.Disk, f.data.Machine.FsyncP50, f.data.Machine.FsyncP99 = "bin/ of the repository", us(p50), us(p99)
	return nil
}

// add adds the wanted subjects of the list.
func (f *field) add(list []subject) {
	for _, s := range list {
		if f.settings.wants(s.ID) {
			f.subjects = append(f.subjects, s)
		}
	}
}

// skip notes what is not there. Any other error ends the run.
func (f *field) skip(what string, err error) error {
	if err == nil || !errors.Is(err, peers.ErrAbsent) {
		return err
	}
	say("%s: %v", what, err)
	f.data.Skipped = append(f.data.Skipped, fmt.Sprintf("%s: %v", what, err))
	return nil
}

// start starts every server that is needed.
func (f *field) start(ctx context.Context, bin string) error {
	var pids []func() []int
	f.pids = func() (all []int) {
		for _, p := range pids {
			all = append(all, p()...)
		}
		return all
	}
	f.data.Machine.Versions = append(f.data.Machine.Versions, firstLine(filepath.Join(bin, "seqctl"), "version"), runtime.Version())
	ids := append(append(ownSubjects(nil), frontSubjects(nil)...), emptySubjects(nil)...)
	needed := f.settings.wantsAny("client/")
	for _, s := range ids {
		needed = needed || f.settings.wants(s.ID)
	}
	if needed {
		say("starting 3 stores, 1 allocator, 1 router")
		c, err := own.Start(ctx, bin, filepath.Join(f.dir, "cluster"), own.Size{Stores: 3, Allocs: 1, Modes: true})
		if err != nil {
			return err
		}
		f.ends = append(f.ends, c.Close)
		pids = append(pids, func() []int { return c.Pids() })
		if err := c.Ask(ctx, "namespace", "add", namespace, "--layout", namespaceLayout); err != nil {
			return err
		}
		f.add(ownSubjects(c))
		if err := f.startEmpty(ctx, c, &pids); err != nil {
			return err
		}
		front, err := peers.RedisFront(c.Role(localcluster.RoleRouter)[0].RESP, "seq:", c.Pids())
		if err == nil {
			f.add(frontSubjects(front))
		} else if err := f.skip("Redis clients of the router", err); err != nil {
			return err
		}
		if err := f.startClients(ctx, c.Role(localcluster.RoleRouter)[0].RESP); err != nil {
			return err
		}
	}
	if err := f.startEngines(ctx, bin, &pids); err != nil {
		return err
	}
	if err := f.startGo(ctx); err != nil {
		return err
	}
	return f.startPeers(ctx, &pids)
}

// startEngines starts the same cluster on StoreSvr and on etcd, to be measured in turn.
func (f *field) startEngines(ctx context.Context, bin string, pids *[]func() []int) error {
	if !f.settings.wantsAny("engine/") {
		return nil
	}
	var both [][]subject
	for _, e := range []struct {
		name, title string
		size        own.Size
	}{{"store", "StoreSvr", own.Size{Stores: 3, Allocs: 1}}, {"etcd", "etcd", own.Size{Stores: 3, Allocs: 1, Etcd: 3}}} {
		say("starting 3 of %s, 1 allocator, 1 router", e.title)
		c, err := own.Start(ctx, bin, filepath.Join(f.dir, "engine-"+e.name), e.size)
		if errors.Is(err, localcluster.ErrNoEtcd) {
			err = fmt.Errorf("%w: %w", peers.ErrAbsent, err)
		}
		if err != nil {
			if err := f.skip("a cluster on "+e.title, err); err != nil {
				return err
			}
			continue
		}
		f.ends, *pids = append(f.ends, c.Close), append(*pids, c.Pids)
		both = append(both, engineSubjects(e.name, e.title, "store", c))
	}
	for i := range both[0] { // one right after the other
		for _, list := range both {
			f.add(list[i : i+1])
		}
	}
	return nil
}

func (f *field) startEmpty(ctx context.Context, c *own.Cluster, pids *[]func() []int) error {
	if !f.settings.wantsAny("unary/empty") {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	e, err := c.StartEmpty(ctx, f.dir, self, "-"+emptyFlag)
	if err != nil {
		return err
	}
	f.ends, *pids = append(f.ends, e.Stop), append(*pids, func() []int { return []int{e.Pid()} })
	f.add(emptySubjects(e))
	return nil
}

func (f *field) startGo(ctx context.Context) error {
	if !f.settings.wantsAny("inside/") && !f.settings.wantsAny("takeover") {
		return nil
	}
	g, err := own.Compile(ctx, f.root, "./tests/bench", f.dir)
	if err != nil {
		return err
	}
	f.add(goSubjects(g))
	return nil
}

func (f *field) startPeers(ctx context.Context, pids *[]func() []int) error {
	version := func(program string, args ...string) {
		if line := firstLine(program, args...); line != "" {
			f.data.Machine.Versions = append(f.data.Machine.Versions, line)
		}
	}
	for _, persistence := range []string{"none", "everysec", "always"} {
		if !f.settings.wantsAny("redis/" + persistence + "/") {
			continue
		}
		say("starting Redis, persistence %s", persistence)
		r, err := peers.StartRedis(ctx, f.dir, persistence)
		if err == nil {
			f.ends, *pids = append(f.ends, r.Stop), append(*pids, r.Pids)
			f.add(redisSubjects(r, persistence))
		} else if err := f.skip("Redis", err); err != nil {
			return err
		}
	}
	version("redis-server", "--version")
	if f.settings.wantsAny("etcd/") {
		say("starting etcd")
		e, err := peers.StartEtcd(ctx, f.dir)
		if err == nil {
			f.ends, *pids = append(f.ends, e.Stop), append(*pids, e.Pids)
			f.add(etcdSubjects(e))
			version("etcd", "--version")
		} else if err := f.skip("etcd", err); err != nil {
			return err
		}
	}
	if f.settings.wantsAny("postgres/") {
		say("starting PostgreSQL")
		p, err := peers.StartPostgres(ctx, f.dir)
		if err == nil {
			f.ends, *pids = append(f.ends, p.Stop), append(*pids, p.Pids)
			f.add(postgresSubjects(p))
			version("psql", "--version")
		} else if err := f.skip("PostgreSQL", err); err != nil {
			return err
		}
	}
	return nil
}

// watchIdle measures what the servers cost each other while nobody calls.
func (f *field) watchIdle(ctx context.Context) {
	pids := f.pids()
	if len(pids) == 0 {
		return
	}
	before, err1 := host.CPU(pids...)
	select {
	case <-ctx.Done():
		return
	case <-time.After(idle):
	}
	after, err2 := host.CPU(pids...)
	if errors.Join(err1, err2) == nil {
		f.data.Machine.IdleCores = (after - before).Seconds() / idle.Seconds()
	}
}

// rounds measures every subject once, and again.
func (f *field) rounds(ctx context.Context) error {
	for _, s := range f.subjects {
		f.data.Subjects = append(f.data.Subjects, s.Subject)
	}
	failed := map[string]bool{}
	for round := range f.settings.runs {
		for i, s := range f.subjects {
			if failed[s.ID] {
				continue
			}
			got, err := s.measure(ctx, f.settings.duration)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				say("%s: %v", s.ID, err)
				f.data.Skipped = append(f.data.Skipped, fmt.Sprintf("%s, from round %d on: %v", s.ID, round+1, err))
				failed[s.ID] = true
				continue
			}
			f.data.Subjects[i].Samples = append(f.data.Subjects[i].Samples, got)
			say("round %d/%d  %-26s %14.0f/s  p50 %8.0f µs  p99 %8.0f µs", round+1, f.settings.runs, s.ID, got.Rate, got.P50, got.P99)
		}
	}
	return nil
}
