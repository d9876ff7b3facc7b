package storeadmin_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/ops/storeadmin"
	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
	"github.com/seqsvr/seqsvr/tests/kit/waits"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	patience = 60 * time.Second
	sections = 8
)

// places says where the stores listen now, by the address that clients know them by.
var (
	places sync.Map
	last   atomic.Int64
)

func dialPlace(ctx context.Context, addr string) (net.Conn, error) {
	place, ok := places.Load(addr)
	if !ok {
		return nil, fmt.Errorf("nobody listens at %s", addr)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", place.(string))
}

var dialer = grpc.WithContextDialer(dialPlace)

// store is a StoreSvr on a directory of its own.
type store struct {
	t    *testing.T
	dir  string
	name string
	addr string
	stop func()
}

func newStore(t *testing.T, name string, initialise func(dir string) error) *store {
	t.Helper()
	s := &store{t: t, dir: filepath.Join(t.TempDir(), name), name: name, addr: fmt.Sprintf("%s-%d.test:1", name, last.Add(1))}
	if err := initialise(s.dir); err != nil {
		t.Fatal(err)
	}
	s.start()
	t.Cleanup(func() { s.stop() })
	return s
}

func (s *store) start() {
	s.t.Helper()
	cfg := storesvr.DefaultConfig()
	cfg.DataDir, cfg.Listen, cfg.NearFull, cfg.Advertise = s.dir, "127.0.0.1:0", 0, s.addr
	svr, err := storesvr.New(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	places.Store(s.addr, svr.Addr())
	ran := make(chan error, 1)
	go func() { ran <- svr.Run(context.Background()) }()
	s.stop = sync.OnceFunc(func() {
		places.Delete(s.addr)
		svr.Close()
		<-ran
	})
}

// founders are stores a, b and so on of cluster c1, bound.
func founders(t *testing.T, n int, more ...seq.Space) []*store {
	t.Helper()
	names := []string{"a", "b", "c", "d", "e"}[:n]
	stores := make([]*store, n)
	for i, name := range names {
		stores[i] = newStore(t, name, func(dir string) error {
			return storesvr.Init(storesvr.InitConfig{DataDir: dir, ClusterID: "c1", Name: name, MemberNames: names,
				Spaces: append([]seq.Space{{Name: "user", Sections: sections}}, more...)})
		})
	}
	cluster := connect(t, stores...)
	if err := cluster.Close(); err != nil {
		t.Fatal(err)
	}
	return stores
}

func learner(t *testing.T, name string, more ...seq.Space) *store {
	t.Helper()
	mapping, err := seq.NewMapping(append([]seq.Space{{Name: "user", Sections: sections, KeyHash: seq.SecretKeys}}, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	return newStore(t, name, func(dir string) error {
		return storesvr.InitLearner(storesvr.LearnerConfig{DataDir: dir, ClusterID: "c1", Name: name, Mapping: mapping})
	})
}

func addrs(stores ...*store) (out []string) {
	for _, s := range stores {
		out = append(out, s.addr)
	}
	return out
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waits.AtMost(t, patience))
	t.Cleanup(cancel)
	return ctx
}

func connect(t *testing.T, stores ...*store) storeclient.Cluster {
	t.Helper()
	c, err := storeclient.Connect(within(t), addrs(stores...), dialer)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// group talks to the cluster of the stores, under its newest list.
func group(t *testing.T, stores ...*store) *quorum.Group {
	t.Helper()
	c := connect(t, stores...)
	id := c.Identity
	named := storeclient.NamedStores(c.Stores)
	for i := range named {
		named[i].Store = sessiontest.Signed(named[i].Store)
	}
	g, err := quorum.NewGroup(quorum.Config{Ref: id.Ref, N: id.N, R: id.R, W: id.W, Timeout: patience}, named)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close(); c.Close() })
	return g
}

// at is the one store alone, under its own member list.
func at(t *testing.T, s *store) (*storeclient.Client, quorum.Identity) {
	t.Helper()
	client, err := storeclient.Dial(s.addr, dialer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	for ctx := within(t); ; <-time.After(10 * time.Millisecond) {
		id, err := client.Describe(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if id.Nonce == 0 { // else it has just started and waits for its fellows' word
			return client, id
		}
	}
}

// prepareAndStep writes to some stores, as a session whose messages to the others are
// lost: it is confirmed if these are W.
func prepareAndStep(t *testing.T, reg seq.Register, e seq.Epoch, value uint64, stores ...*store) {
	t.Helper()
	for _, s := range stores {
		client, id := at(t, s)
		reply, err := client.Prepare(within(t), quorum.PrepareRequest{Ref: id.Ref, Session: e.Session, Secret: sessiontest.SecretOf(e.Session),
			Items: []quorum.PrepareItem{{Register: reg, Round: e.Round, Create: reg.OnDemand()}}})
		if err != nil || reply.Results[0].Verdict != quorum.VerdictOK {
			t.Fatalf("prepare %s at %s: %v, %+v", reg, s.name, err, reply.Results)
		}
		if value == 0 {
			continue
		}
		reply, err = client.Step(within(t), quorum.StepRequest{Ref: id.Ref, Session: e.Session, Secret: sessiontest.SecretOf(e.Session),
			Items: []quorum.StepItem{{Register: reg, Round: e.Round, Max: value}}})
		if err != nil || reply.Results[0].Verdict != quorum.VerdictOK {
			t.Fatalf("step %s at %s: %v, %+v", reg, s.name, err, reply.Results)
		}
	}
}

func open(t *testing.T, stores ...*store) *storeadmin.Care {
	t.Helper()
	c, err := storeadmin.Open(within(t), addrs(stores...), dialer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func run(t *testing.T, steps []storeadmin.Step, err error) {
	t.Helper()
	if err == nil {
		err = storeadmin.Run(within(t), steps, func(name string) { t.Log(name) })
	}
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
