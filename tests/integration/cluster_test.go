package integration

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
	"github.com/seqsvr/seqsvr/tests/robust/proxy"
)

const (
	patience = 60 * time.Second
	sections = 24
	lease    = 500 * time.Millisecond
)

// cluster is three StoreSvr, two AllocSvr and a router. Each AllocSvr reaches the
// stores through proxies of its own.
type cluster struct {
	t      *testing.T
	all    int // sections over all spaces
	allocs []*alloc
	router *router.Router
}

type alloc struct {
	addr   string
	server *allocsvr.Server
	admin  pb.AdminClient
	links  []*proxy.Proxy // one a store
	stores []string       // that the links lead to at first
}

func start(t *testing.T, also ...seq.Space) *cluster {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	spaces := append([]seq.Space{{Name: seq.DefaultSpace, Sections: sections, Step: 500}}, also...)
	stores := harness.Stores(t, 3, spaces...)
	c := &cluster{t: t}
	for _, s := range spaces {
		c.all += int(s.Sections)
	}
	for i := range 2 {
		c.addAlloc(fmt.Sprintf("alloc-%d", i+1), stores, quiet)
	}
	var err error
	if c.router, err = router.New(router.Config{Listen: "127.0.0.1:0", Allocs: c.addrs(), Logger: quiet}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.router.Close() })
	harness.Inside(t, "router", c.router.Run)
	c.until("every section is served", func() bool { return c.served(0)+c.served(1) == c.all })
	return c
}

func (c *cluster) addAlloc(name string, stores []string, log *slog.Logger) {
	c.t.Helper()
	a := &alloc{stores: stores}
	cfg := allocsvr.DefaultConfig()
	cfg.Name, cfg.Listen, cfg.Lease, cfg.ExpectAllocs, cfg.Logger = name, "127.0.0.1:0", lease, 2, log
	for _, target := range stores {
		link, err := proxy.Listen("127.0.0.1:0")
		if err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(func() { _ = link.Close() })
		link.Target(target)
		a.links = append(a.links, link)
		cfg.Stores = append(cfg.Stores, link.Addr())
	}
	c.run(a, cfg)
}

// run starts an AllocSvr.
func (c *cluster) run(a *alloc, cfg allocsvr.Config) {
	c.t.Helper()
	s, err := allocsvr.New(cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	a.addr, a.server = s.Addr(), s
	conn, err := rpc.Dial(a.addr)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = conn.Close() })
	a.admin = pb.NewAdminClient(conn)
	c.allocs = append(c.allocs, a)
	harness.Inside(c.t, cfg.Name, s.Run)
}

func (c *cluster) addrs() (out []string) {
	for _, a := range c.allocs {
		out = append(out, a.addr)
	}
	return out
}

// served returns the number of sections that an AllocSvr serves at this moment, or -1 if it does not say.
func (c *cluster) served(i int) int {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	status, err := c.allocs[i].admin.Status(ctx, &pb.StatusRequest{})
	if err != nil {
		return -1
	}
	return int(status.GetSectionsOwned())
}

// numbers returns how many numbers an AllocSvr has handed out since it started.
func (c *cluster) numbers(i int) int {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	status, err := c.allocs[i].admin.Status(ctx, &pb.StatusRequest{})
	if err != nil {
		c.t.Fatal(err)
	}
	return int(status.GetNumbers())
}

// cut lets nothing pass between the AllocSvr and the stores; mend ends that.
func (c *cluster) cut(allocs ...int)  { c.set(proxy.Mode{StallA: true, StallB: true}, allocs) }
func (c *cluster) mend(allocs ...int) { c.set(proxy.Mode{}, allocs) }

func (c *cluster) set(m proxy.Mode, allocs []int) {
	for _, i := range allocs {
		for _, link := range c.allocs[i].links {
			link.Set(m)
		}
	}
}

func (c *cluster) until(what string, ok func() bool) {
	c.t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			c.t.Fatalf("waited %v until %s", patience, what)
		case <-tick.C:
		}
	}
}
