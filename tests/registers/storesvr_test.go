package registers_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/storesvr"
	"github.com/seqsvr/seqsvr/tests/registers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStoreSvrKeepsThePromisesOfRegisters(t *testing.T) {
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprintf("N=%d", n), func(t *testing.T) {
			registers.Run(t, func(t *testing.T) registers.Harness { return overGRPC(t, n) })
		})
	}
}

// process is a StoreSvr on a directory of its own, and a client of it. As in a killed process, the memory
// is lost and the disk stays.
type process struct {
	t     *testing.T
	dir   string
	clock clock.Clock
	kill  func()
	uuid  string

	client atomic.Pointer[storeclient.Client] // of the last start
}

// start runs the store on a free port, and waits until it answers.
func (p *process) start() {
	p.t.Helper()
	cfg := storesvr.DefaultConfig()
	cfg.DataDir, cfg.Listen, cfg.NearFull, cfg.MaxLease, cfg.Clock = p.dir, "127.0.0.1:0", 0, maxLease, p.clock
	store, err := storesvr.New(cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- store.Run(context.Background()) }()
	client, err := storeclient.Dial(store.Addr())
	if err != nil {
		p.t.Fatal(err)
	}
	p.kill = func() {
		if err := store.Close(); err != nil {
			p.t.Errorf("close: %v", err)
		}
		<-ran
	}
	if old := p.client.Swap(client); old != nil {
		_ = old.Close()
	}
	if id, err := client.Describe(p.t.Context()); err != nil || p.uuid != "" && id.UUID != p.uuid {
		p.t.Fatalf("after the start: %+v, %v, want store %q", id, err, p.uuid)
	}
}

func (p *process) end() {
	_ = p.client.Load().Close()
	p.kill()
}

// overGRPC is a bound cluster of n stores.
func overGRPC(t *testing.T, n int) registers.Harness {
	t.Helper()
	c := clock.NewManual(time.Hour)
	dir := t.TempDir()
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("store-%d", i+1))
	}
	var processes []*process
	var addrs []string
	for _, name := range names {
		p := &process{t: t, dir: filepath.Join(dir, name), clock: c}
		err := storesvr.Init(storesvr.InitConfig{DataDir: p.dir, ClusterID: "conformance", Name: name, MemberNames: names, Spaces: mapping(t).Spaces})
		if err != nil {
			t.Fatal(err)
		}
		p.start()
		t.Cleanup(p.end)
		processes = append(processes, p)
		addrs = append(addrs, p.client.Load().Addr())
	}
	cluster, err := storeclient.Connect(t.Context(), addrs)
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.Close(); err != nil {
		t.Error(err)
	}
	id := cluster.Identity
	h := registers.Harness{Ref: id.Ref, R: id.R, W: id.W, Mapping: id.Mapping, MaxLease: id.MaxLease,
		Advance: func(d time.Duration) { c.Advance(d) }}
	for i, p := range processes {
		p.uuid = cluster.Stores[i].UUID
		r := registers.Replica{Name: names[i], UUID: p.uuid, Store: p}
		if n > 1 { // one store alone has no fellows to be compared with, and waits, which the clock here does not
			r.Kill = func() { p.kill() }
			r.Restart = func() {
				p.start()
				introduce(t, processes)
			}
		}
		h.Replicas = append(h.Replicas, r)
	}
	return h
}

// introduce has stores that have just started hear what their fellows remember of them, as
// whoever connects to a cluster does. It gives up if too few are there.
func introduce(t *testing.T, processes []*process) {
	t.Helper()
	var addrs []string
	for _, p := range processes {
		addrs = append(addrs, p.client.Load().Addr())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if cluster, err := storeclient.Connect(ctx, addrs); err == nil {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Read implements quorum.Store.
func (p *process) Read(ctx context.Context, req quorum.ReadRequest) (quorum.Reply, error) {
	return p.client.Load().Read(ctx, req)
}

// Prepare implements quorum.Store.
func (p *process) Prepare(ctx context.Context, req quorum.PrepareRequest) (quorum.Reply, error) {
	return p.client.Load().Prepare(ctx, req)
}

// Step implements quorum.Store.
func (p *process) Step(ctx context.Context, req quorum.StepRequest) (quorum.Reply, error) {
	return p.client.Load().Step(ctx, req)
}

// Renew implements quorum.Store.
func (p *process) Renew(ctx context.Context, req quorum.RenewRequest) (quorum.RenewReply, error) {
	return p.client.Load().Renew(ctx, req)
}

// Release implements quorum.Store.
func (p *process) Release(ctx context.Context, req quorum.ReleaseRequest) (string, error) {
	return p.client.Load().Release(ctx, req)
}
