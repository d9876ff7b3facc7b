package allocsvr

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/allocsvr/api"
	"github.com/seqsvr/seqsvr/allocsvr/globalid"
	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/allocsvr/globalid/workers"
	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/allocsvr/segment"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
	"github.com/seqsvr/seqsvr/snowflake"
)

// endpoint is a service with registers of its own, beside sections.
type endpoint interface {
	// Run works until ctx ends; an error is a broken invariant.
	Run(ctx context.Context) error
	// Release gives every register up in order; nothing is handed out afterwards.
	Release(ctx context.Context) error
	// Lost tells that a store gave the register to another session.
	Lost(reg seq.Register, round uint64)
	// Register puts the service on the server.
	Register(srv grpc.ServiceRegistrar)
	// Send gives the metrics.
	Send(ch chan<- prometheus.Metric)
}

// endpointsOf makes the services for segments and snowflake IDs.
func (n *Node) endpointsOf(cfg Config, w Wiring) error {
	a := n.alloc
	segments, err := segment.New(segment.Config{
		Holder: n.holder("tag", w.Secret), Mapping: w.Identity.Mapping, Documents: n.group, Owner: a.mine, ReadPrefix: n.group.ReadPrefix, Tell: n.tell(segment.RefreshedWithin), Quorum: guide{a}.FailFast, Clock: w.Clock, Wall: w.Wall, RouteVersion: func() uint64 { return a.routes.Table().Version() }, Logger: cfg.Logger,
	})
	if err != nil {
		return err
	}
	configured, err := cfg.namespaces()
	if err != nil {
		return err
	}
	ids, err := globalid.New(globalid.Config{Documents: n.group, Namespaces: configured, Audit: w.Audit, Cluster: w.Identity.Ref.Cluster, Life: w.Identity.Incarnation, Regions: w.Regions, Root: idsRoot{n, w.DialSet},
		Caller: func(ctx context.Context) workers.Caller {
			name, via := rpc.Asker(ctx, cfg.Guard)
			return workers.Caller{Name: name, Via: via}
		}, Config: workers.Config{
			Name: cfg.Name, Node: namespaces.Node{Datacenter: namespaces.Datacenter{ID: snowflake.Datacenter(cfg.DatacenterID), Name: cfg.Datacenter}, Worker: cfg.worker()},
			Holder: n.holder("worker", w.Secret), ReadPrefix: n.group.ReadPrefix, Sessions: n.leases.Sessions, ClockAhead: n.leases.ClockAhead, Tell: n.tell(namespaces.FollowedWithin), Quorum: guide{a}.FailFast,
			Window: cfg.WorkerWindow, Wall: w.Wall, Clock: w.Clock, Logger: cfg.Logger,
		}})
	if err != nil {
		return err
	}
	a.routes.OnChange(segments.Recheck)
	n.endpoints, n.ids, n.tags = []endpoint{segments, ids}, ids, segments
	return nil
}

// idsRoot is the root Set as the endpoint of global IDs asks it: namespaces.Root.
type idsRoot struct {
	n    *Node
	dial func(addr string) (api.PeerConn, error)
}

// Elsewhere implements namespaces.Root.
func (r idsRoot) Elsewhere() error {
	if record := r.n.alloc.sets.Known(); !record.IsRoot() {
		return guide{r.n.alloc}.atRoot(0, record)
	}
	return nil
}

// Settled implements namespaces.Root.
func (r idsRoot) Settled(ctx context.Context) error {
	m, err := r.n.alloc.sets.LoadMap(ctx)
	if errors.Is(err, seq.ErrUnknownRegister) { // stores that know no Sets
		return nil
	}
	if err == nil && m.Restored {
		err = fmt.Errorf("%w: %w: which worker ids other Sets have is not known before seqctl set settle", seq.ErrWorkersKept, sets.ErrMapRestored)
	}
	return err
}

// Name implements namespaces.Root.
func (r idsRoot) Name(cluster string) string {
	for _, s := range r.n.alloc.sets.Map().Sets {
		if s.Cluster == cluster {
			return s.Name
		}
	}
	return ""
}

// Ask implements namespaces.Root: of the first node of the root that answers.
func (r idsRoot) Ask(ctx context.Context, wish namespaces.AllotmentRequest) ([]byte, error) {
	req := &pb.AllotRequest{ClusterId: r.n.ClusterID(), Namespace: wish.Namespace, Have: wish.Have,
		DatacenterId: uint64(wish.Datacenter.ID), Datacenter: wish.Datacenter.Name}
	if wish.Worker != nil {
		id := uint64(*wish.Worker)
		req.WorkerId = &id
	}
	var told []byte
	err := atRoot(ctx, r.n.alloc.sets.Known().Root, r.dial, func(ctx context.Context, root pb.SetsClient) error {
		reply, err := root.Allot(ctx, req)
		told = reply.GetNamespaces()
		return err
	})
	return told, err
}

// holder returns the Holder of the registers of a kind for the node's session.
func (n *Node) holder(kind string, secret seq.Secret) *ownership.Holder {
	return &ownership.Holder{Session: secret.Session(), Registers: n.measure(kind), Leases: keeper{n.leases}}
}

// measure returns the group with its writes counted under a kind of register.
func (n *Node) measure(kind string) *measured {
	m := newMeasured(n.group, kind)
	n.measured = append(n.measured, m)
	return m
}

// worker returns the configured worker id. If nil, any free worker id will do.
func (c Config) worker() *snowflake.Worker {
	if c.WorkerID < 0 {
		return nil
	}
	w := snowflake.Worker(c.WorkerID)
	return &w
}

// lost tells the room that holds the register.
func (n *Node) lost(h *quorum.Hold) {
	n.alloc.lost(h.Register(), h.Round())
	for _, e := range n.endpoints {
		e.Lost(h.Register(), h.Round())
	}
}

// release gives up the registers of all endpoints.
func (n *Node) release(ctx context.Context) error {
	var errs []error
	for _, e := range n.endpoints {
		errs = append(errs, e.Release(ctx))
	}
	return errors.Join(errs...)
}
