package registers_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/etcdmodel"
	"github.com/seqsvr/seqsvr/tests/kit/etcdtest"
	"github.com/seqsvr/seqsvr/tests/registers"
)

func TestEtcdInMemoryKeepsThePromisesOfRegisters(t *testing.T) {
	for _, adapters := range []int{1, 2} {
		t.Run(fmt.Sprintf("adapters=%d", adapters), func(t *testing.T) {
			registers.Run(t, func(t *testing.T) registers.Harness {
				model := etcdmodel.New(1)
				return overEtcdAt(t, "/seqsvr", adapters, func() etcdstore.KV { return &etcdmodel.Client{Etcd: model} })
			})
		})
	}
}

// plain has no exact space: etcd keeps none.
func plain() []seq.Space {
	return []seq.Space{{Name: seq.DefaultSpace, Sections: 4}, {Name: "group", Sections: 2, Step: 10}}
}

// overEtcdAt is a new cluster below a prefix of etcd, seen through so many adapters on clocks of their own.
func overEtcdAt(t *testing.T, prefix string, adapters int, connect func() etcdstore.KV) registers.Harness {
	t.Helper()
	if err := etcdstore.Init(t.Context(), connect(), etcdstore.InitConfig{Prefix: prefix, Cluster: "conformance", Spaces: plain()}); err != nil {
		t.Fatal(err)
	}
	all := make([]*adapter, adapters)
	for i := range all {
		// The first clock goes at the rate of the rows, and each next one half a percent faster.
		all[i] = &adapter{t: t, prefix: prefix, connect: connect, clock: clock.NewManual(time.Duration(i+1) * time.Hour), rate: 1 + float64(i)*quorum.Rho/2}
		all[i].start()
	}
	id := all[0].now.Load().Identity()
	store := shared(all)
	return registers.Harness{Ref: id.Ref, R: id.R, W: id.W, Mapping: id.Mapping, MaxLease: id.MaxLease, PromiseFirst: true, Advance: store.advance,
		Replicas: []registers.Replica{{Name: "etcd", UUID: id.UUID, Store: store, Kill: store.kill, Restart: store.restart}}}
}

// adapter is the etcdstore.Store of one process, which can be killed.
type adapter struct {
	t       *testing.T
	prefix  string
	connect func() etcdstore.KV
	clock   *clock.Manual
	rate    float64
	now     atomic.Pointer[etcdstore.Store]
}

func (a *adapter) start() {
	a.t.Helper()
	s, err := etcdstore.Open(a.t.Context(), etcdstore.Config{KV: a.connect(), Prefix: a.prefix, Clock: a.clock, MaxLease: maxLease})
	if err != nil {
		a.t.Fatal(err)
	}
	a.now.Store(s)
}

// shared is a store whose sessions are spread over the adapters.
type shared []*adapter

var errKilled = errors.New("the adapter was killed")

func (s shared) of(who seq.Session) (*etcdstore.Store, error) {
	a := s[uint64(who)%uint64(len(s))].now.Load()
	if a == nil {
		return nil, errKilled
	}
	return a, nil
}

func (s shared) kill() {
	for _, a := range s {
		a.now.Store(nil)
	}
}

func (s shared) restart() {
	for _, a := range s {
		a.start()
	}
}

// advance moves all clocks. Every process that renews a session watches the others; the rows
// renew none while time passes, so the adapters watch five times the shortest lease.
func (s shared) advance(d time.Duration) {
	const every = time.Second / 5
	for d > 0 {
		step := min(d, every)
		d -= step
		for _, a := range s {
			a.clock.Advance(time.Duration(float64(step) * a.rate))
		}
		for _, a := range s {
			if store := a.now.Load(); store != nil {
				if err := store.Observe(a.t.Context()); err != nil {
					a.t.Errorf("observe: %v", err)
				}
			}
		}
	}
}

// Read implements quorum.Store.
func (s shared) Read(ctx context.Context, req quorum.ReadRequest) (quorum.Reply, error) {
	store, err := s.of(req.Session)
	if err != nil {
		return quorum.Reply{}, err
	}
	return store.Read(ctx, req)
}

// Prepare implements quorum.Store.
func (s shared) Prepare(ctx context.Context, req quorum.PrepareRequest) (quorum.Reply, error) {
	store, err := s.of(req.Session)
	if err != nil {
		return quorum.Reply{}, err
	}
	return store.Prepare(ctx, req)
}

// Step implements quorum.Store.
func (s shared) Step(ctx context.Context, req quorum.StepRequest) (quorum.Reply, error) {
	store, err := s.of(req.Session)
	if err != nil {
		return quorum.Reply{}, err
	}
	return store.Step(ctx, req)
}

// Renew implements quorum.Store.
func (s shared) Renew(ctx context.Context, req quorum.RenewRequest) (quorum.RenewReply, error) {
	store, err := s.of(req.Session)
	if err != nil {
		return quorum.RenewReply{}, err
	}
	return store.Renew(ctx, req)
}

// Release implements quorum.Store.
func (s shared) Release(ctx context.Context, req quorum.ReleaseRequest) (string, error) {
	store, err := s.of(req.Session)
	if err != nil {
		return "", err
	}
	return store.Release(ctx, req)
}

// TestEtcdItselfKeepsThePromisesOfRegisters has one etcd for all rows, each below a prefix of its
// own.
func TestEtcdItselfKeepsThePromisesOfRegisters(t *testing.T) {
	if testing.Short() {
		t.Skip("runs etcd")
	}
	etcd := etcdtest.Start(t, 1)
	client := etcd.Dial()
	rows := 0
	registers.Run(t, func(t *testing.T) registers.Harness {
		rows++
		return overEtcdAt(t, fmt.Sprintf("/row-%d", rows), 2, func() etcdstore.KV { return client })
	})
}
