package router_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

// asked counts the calls of a client by the address that they go to.
type asked struct {
	mu sync.Mutex // guards to
	to map[string]int
}

func (a *asked) option() grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if strings.HasSuffix(method, "/Current") {
			a.mu.Lock()
			a.to[cc.CanonicalTarget()]++
			a.mu.Unlock()
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	})
}

// during tells which addresses were asked by n calls.
func (a *asked) during(t *testing.T, sdk *client.Client, n int) (addrs []string) {
	t.Helper()
	a.mu.Lock()
	clear(a.to)
	a.mu.Unlock()
	for range n {
		if values, err := sdk.Current(bounded(t), "", []seq.UID{0, 64, 128}); err != nil || values[0].Err != nil {
			t.Fatalf("current: %+v, %v", values, err)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for target := range a.to {
		addrs = append(addrs, target[strings.LastIndex(target, "/")+1:])
	}
	return addrs
}

// until asks until the calls go to one address alone; to no other than it from then on.
func (a *asked) until(t *testing.T, sdk *client.Client, addr string) {
	t.Helper()
	for ctx := bounded(t); ; {
		if got := a.during(t, sdk, 10); len(got) == 1 && got[0] == addr {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("calls still go to others than %s", addr)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// running is a router that is stopped before the test ends.
func running(t *testing.T, cfg router.Config) (r *router.Router, stop func()) {
	t.Helper()
	r, err := router.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		_ = r.Close()
	})
	t.Cleanup(stop)
	return r, stop
}

func TestTheSDKAsksTheRouterOfItsZoneBeforeOthers(t *testing.T) {
	cluster := clienttest.Start(t, 2, seq.Space{Name: "user", Sections: 16})
	far := start(t, router.Config{Allocs: cluster.Addrs(), Zone: "b"})
	near, stop := running(t, router.Config{Allocs: cluster.Addrs(), Listen: "127.0.0.1:0", Zone: "a"})
	unnamed := start(t, router.Config{Allocs: cluster.Addrs()})
	calls := &asked{to: map[string]int{}}
	sdk, err := client.New(bounded(t), client.Config{Addrs: []string{far.Addr(), near.Addr(), unnamed.Addr()}, Indirect: true, Zone: "a",
		DialOptions: []grpc.DialOption{calls.option()}})
	if err != nil {
		t.Fatal(err)
	}
	defer sdk.Close()
	calls.until(t, sdk, near.Addr())
	if got := calls.during(t, sdk, 100); len(got) != 1 {
		t.Errorf("100 calls went to %v, want the router of the zone alone", got)
	}
	stop()
	calls.during(t, sdk, 10) // each has its answer from the others
	start(t, router.Config{Allocs: cluster.Addrs(), Listen: near.Addr(), Zone: "a"})
	calls.until(t, sdk, near.Addr())
}

func TestOwnersAreAskedInWhateverZoneTheyAre(t *testing.T) {
	cluster := clienttest.Start(t, 2, seq.Space{Name: "user", Sections: 16})
	r := start(t, router.Config{Allocs: cluster.Addrs(), Zone: "a"})
	for _, cfg := range []client.Config{{Addrs: append(cluster.Addrs(), r.Addr()), Zone: "a"}, {Addrs: []string{r.Addr()}, Zone: "b", Indirect: true}} {
		before := []int64{cluster.Nodes[0].Keys.Load(), cluster.Nodes[1].Keys.Load()}
		sdk, err := client.New(bounded(t), cfg)
		if err != nil {
			t.Fatal(err)
		}
		for uid := range seq.UID(64) {
			if _, err := sdk.Next(bounded(t), client.Key{UID: uid << seq.BlockBits}); err != nil {
				t.Error(err)
			}
		}
		sdk.Close()
		for i, n := range cluster.Nodes {
			if n.Keys.Load() == before[i] {
				t.Errorf("no call came to node %d", i)
			}
		}
	}
}

func TestAZoneThatIsNoNameIsRefused(t *testing.T) {
	for _, zone := range []string{"a b", "-a", strings.Repeat("z", seq.MaxZone+1), "a/b"} {
		if err := (router.Config{Listen: "127.0.0.1:0", Allocs: []string{"127.0.0.1:1"}, Zone: zone}).Validate(); err == nil || !strings.Contains(err.Error(), "zone") {
			t.Errorf("router, zone %q: %v", zone, err)
		}
		if _, err := client.New(bounded(t), client.Config{Addrs: []string{"127.0.0.1:1"}, Lazy: true, Zone: zone}); err == nil {
			t.Errorf("client, zone %q: no error", zone)
		}
	}
}
