package clienttest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/allocsvr/api"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/memstore"
)

// Datacenter is the datacenter id in all snowflake IDs of a Cluster, and its name.
const (
	Datacenter     = 1
	DatacenterName = "cn"
)

// namespaces are configured in every Cluster.
var namespaces = []string{"name=default layout=twitter", "name=regional-1 layout=regional alias=1", "name=regional-2 layout=regional alias=2", "name=orders layout=leaf",
	"name=clicks layout=time:41,worker:6,sequence:16;epoch=1700000000000;overflow=borrow"}

// Bounds of a backend. The lease outlasts any time that a busy machine takes from a test.
const (
	lease    = 10 * time.Second
	patience = 30 * time.Second
)

// backend is the AllocSvr that answers for all nodes of a Cluster: it owns every section, and its
// stores are in memory.
type backend struct {
	node     *allocsvr.Node
	stores   *memstore.Cluster
	services services
}

// services are the services of a node, with their implementations.
type services map[string]service

type service struct {
	desc *grpc.ServiceDesc
	impl any
}

// RegisterService implements grpc.ServiceRegistrar.
func (s services) RegisterService(desc *grpc.ServiceDesc, impl any) {
	s[desc.ServiceName] = service{desc, impl}
}

// add makes a segment tag.
func (b *backend) add(tag *pb.SegmentTag) {
	segments := b.services[pb.Segment_ServiceDesc.ServiceName].impl.(pb.SegmentServer)
	if _, err := segments.Put(context.Background(), &pb.SegmentPutRequest{Tag: tag}); err != nil {
		panic(err) // a test asked for a tag that cannot be; the stores in memory do not fail
	}
}

// AddNumbers makes a tag of business numbers, such as order-2026-000001.
func (c *Cluster) AddNumbers(name string) {
	c.back.add(&pb.SegmentTag{Tag: name, Template: name + "-{date:2006}-{seq:6}", Reset_: "yearly"})
}

// startBackend runs an AllocSvr until the test ends, and waits until it owns all sections.
func startBackend(t testing.TB, cluster string, m seq.Mapping) *backend {
	t.Helper()
	b := &backend{stores: memstore.New(3, m, clock.Boot(), lease), services: services{}}
	b.stores.Rename(cluster)
	cfg := allocsvr.DefaultConfig()
	cfg.Name, cfg.Logger, cfg.Lease, cfg.UIDMemory = nameOf(0), slog.New(slog.DiscardHandler), lease, 0
	cfg.DatacenterID, cfg.Datacenter, cfg.Namespaces = Datacenter, DatacenterName, namespaces
	var err error
	b.node, err = allocsvr.NewNode(cfg, allocsvr.Wiring{
		Identity: quorum.Identity{Ref: b.stores.Ref, N: 3, R: 2, W: 2, Mapping: m, MaxLease: lease},
		Stores:   b.stores.Named(), Addr: "backend", Secret: seq.NewSecret(""), Clock: clock.Boot(), Wall: time.Now,
		Dial: func(string) (api.PeerConn, error) { return nil, errors.New("there is no peer") },
		Stop: func(err error) { t.Errorf("the stores refuse the AllocSvr: %v", err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	b.node.Register(b.services)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.node.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		b.node.Close()
	})
	b.ready(t, m)
	return b
}

// ready waits until the AllocSvr serves all sections of a mapping.
func (b *backend) ready(t testing.TB, m seq.Mapping) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for late := time.After(patience); len(b.node.Sections()) < m.Sections() || b.node.Ready() != nil; {
		select {
		case <-late:
			t.Fatalf("the AllocSvr has %d of %d sections after %v: %v", len(b.node.Sections()), m.Sections(), patience, b.node.Ready())
		case <-tick.C:
		}
	}
}

// extend adds the spaces of a mapping.
func (b *backend) extend(m seq.Mapping) error {
	for _, s := range b.stores.Stores {
		if err := s.Extend(seq.SectionID(b.stores.Mapping.Sections()), seq.SectionID(m.Sections())); err != nil {
			return err
		}
	}
	b.stores.Mapping = m
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return b.node.Extend(ctx, m)
}

// nameOf returns the name of a node in the route table.
func nameOf(index int) string { return fmt.Sprintf("alloc-%d", index) }
