package globalid

import (
	"context"
	"fmt"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// server serves callers: checks and translation only.
type server struct {
	pb.UnimplementedSnowflakeServer
	s *Service
}

func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, defaultWait)
}

// Generate implements pb.SnowflakeServer.
func (v server) Generate(ctx context.Context, req *pb.SnowflakeGenerateRequest) (*pb.SnowflakeGenerateReply, error) {
	ids, err := v.s.agents.counter(req.Agent)
	if err != nil {
		return nil, fmt.Errorf("generate: %w", err)
	}
	form, err := encodingOf(req.Encoding)
	if err != nil {
		return nil, fmt.Errorf("generate: %w", err)
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	got, err := v.s.Generate(ctx, Ref{Name: req.Namespace, Alias: req.Alias}, int(req.Count))
	if err != nil {
		return nil, err
	}
	ids.Add(uint64(req.Count))
	reply := &pb.SnowflakeGenerateReply{
		DatacenterId: uint64(got.Datacenter), WorkerId: uint64(got.Worker), Namespace: got.Namespace, Layout: got.Layout,
	}
	if req.AsRuns {
		for _, b := range got.Batches {
			for r := range b.Runs() {
				reply.Runs = append(reply.Runs, &pb.SnowflakeRun{First: uint64(r.First), Last: uint64(r.Last), Stride: uint64(r.Stride)})
			}
		}
	} else {
		reply.Ids = expand(got.Batches, int(req.Count))
	}
	if req.Encoding == "" {
		return reply, nil
	}
	for _, id := range expand(got.Batches, int(req.Count)) {
		text, err := form.Format(snowflake.ID(id))
		if err != nil {
			return nil, fmt.Errorf("generate: %w", reading.name(err))
		}
		reply.Texts = append(reply.Texts, text)
	}
	return reply, nil
}

// expand writes the IDs out.
func expand(batches []snowflake.Batch, count int) []uint64 {
	ids := make([]uint64, 0, count)
	for _, b := range batches {
		for r := range b.Runs() {
			for id := r.First; ; id += r.Stride {
				ids = append(ids, uint64(id))
				if id == r.Last { // not >: past the last, the highest field could overflow
					break
				}
			}
		}
	}
	return ids
}

// Decode implements pb.SnowflakeServer.
func (v server) Decode(ctx context.Context, req *pb.SnowflakeDecodeRequest) (*pb.SnowflakeDecoded, error) {
	id, err := idOf(req)
	if err != nil {
		return nil, err
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	l, err := v.s.layoutOf(ctx, req.Layout, Ref{Name: req.Namespace, Alias: req.Alias})
	if err != nil {
		return nil, err
	}
	return v.s.decoded(l, id, snowflake.Decimal)
}

// Compose implements pb.SnowflakeServer.
func (v server) Compose(ctx context.Context, req *pb.SnowflakeComposeRequest) (*pb.SnowflakeDecoded, error) {
	e, err := encodingOf(req.Encoding)
	if err != nil {
		return nil, err
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	l, err := v.s.layoutOf(ctx, req.Layout, Ref{Name: req.Namespace, Alias: req.Alias})
	if err != nil {
		return nil, err
	}
	parts, err := partsOf(l, req)
	if err != nil {
		return nil, err
	}
	id, err := l.Compose(parts)
	if err != nil {
		return nil, reading.name(err)
	}
	return v.s.decoded(l, id, e)
}

// Layouts implements pb.SnowflakeServer.
func (v server) Layouts(_ context.Context, req *pb.SnowflakeLayoutsRequest) (*pb.SnowflakeLayoutsReply, error) {
	texts := snowflake.PresetNames()
	if req.Layout != "" {
		texts = []string{req.Layout}
	}
	reply := &pb.SnowflakeLayoutsReply{}
	for _, text := range texts {
		l, err := parseLayout(text)
		if err != nil {
			return nil, err
		}
		reply.Layouts = append(reply.Layouts, layoutToProto(l, v.s.cfg.Wall()))
	}
	return reply, nil
}

func (v server) namespaceToProto(ns Namespace) *pb.SnowflakeNamespace {
	return &pb.SnowflakeNamespace{Name: ns.Name, Alias: ns.Alias, Version: ns.Version, RetiredUnixMs: ns.Retired, Layout: layoutToProto(ns.Layout, v.s.cfg.Wall())}
}

// Namespaces implements pb.SnowflakeServer.
func (v server) Namespaces(ctx context.Context, req *pb.SnowflakeNamespacesRequest) (*pb.SnowflakeNamespacesReply, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	d, _, err := v.s.load(ctx)
	if err != nil {
		return nil, fmt.Errorf("namespaces: %w", err)
	}
	one := Ref{Name: req.Namespace, Alias: req.Alias}
	every := one == Ref{}
	one = one.normal()
	reply := &pb.SnowflakeNamespacesReply{}
	for _, ns := range d.all(v.s.offers) {
		if every || one.matches(ns) {
			reply.Namespaces = append(reply.Namespaces, v.namespaceToProto(ns))
		}
	}
	if len(reply.Namespaces) == 0 {
		return nil, one.unknown()
	}
	for _, dc := range d.Datacenters {
		reply.Datacenters = append(reply.Datacenters, &pb.SnowflakeDatacenter{Id: uint64(dc.ID), Name: dc.Name})
	}
	return reply, nil
}

// PutNamespace implements pb.SnowflakeServer.
func (v server) PutNamespace(ctx context.Context, req *pb.SnowflakePutNamespaceRequest) (*pb.SnowflakeNamespace, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	ns, err := v.s.put(ctx, edited{
		name: req.Name, alias: req.Alias, layout: req.Layout, overflow: req.Overflow, rollback: req.Rollback, version: req.Version,
	})
	if err != nil {
		return nil, fmt.Errorf("put: %w", err)
	}
	v.s.log.Info("namespace put", "namespace", ns.Name, "alias", ns.Alias, "layout", ns.Layout.String(), "version", ns.Version)
	if left := ns.Layout.Remaining(v.s.cfg.Wall()); left <= snowflake.ExhaustionWarning {
		v.s.log.Warn("the layout of the namespace ends soon", "namespace", ns.Name, "ends", ns.Layout.Exhausted())
	}
	return v.namespaceToProto(ns), nil
}

// RetireNamespace implements pb.SnowflakeServer.
func (v server) RetireNamespace(ctx context.Context, req *pb.SnowflakeRetireNamespaceRequest) (*pb.SnowflakeNamespace, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	ref := Ref{Name: req.Namespace, Alias: req.Alias}
	if ref == (Ref{}) {
		return nil, fmt.Errorf("retire: %w: no namespace", seq.ErrBadArgument)
	}
	ns, err := v.s.retire(ctx, ref, req.Undo)
	if err != nil {
		return nil, fmt.Errorf("retire: %w", err)
	}
	v.s.log.Info("namespace retired or brought back", "namespace", ns.Name, "retired", ns.Retired != 0, "version", ns.Version)
	return v.namespaceToProto(ns), nil
}

// Workers implements pb.SnowflakeServer.
func (v server) Workers(ctx context.Context, req *pb.SnowflakeWorkersRequest) (*pb.SnowflakeWorkersReply, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	i, err := v.s.find(ctx, Ref{Name: req.Namespace, Alias: req.Alias})
	if err != nil {
		return nil, fmt.Errorf("workers: %w", err)
	}
	found, err := v.s.look(ctx, prefixOf(i.name))
	if err != nil {
		return nil, fmt.Errorf("workers: %w", err)
	}
	layout, nodes := v.s.view.Load().spaces[i.name].Layout, v.s.nodes()
	reply := &pb.SnowflakeWorkersReply{Namespace: i.name, Pool: uint64(layout.MaxWorker()) + 1}
	for _, u := range survey(i.name, found, nobody, v.s.latest()) {
		w := &pb.SnowflakeWorker{
			DatacenterId: uint64(u.datacenter), WorkerId: uint64(u.worker), MarkUnixMs: uint64(u.mark),
			Session: uint64(u.holder), LeaseLeftMs: -1, Free: u.free,
		}
		if u.holder != 0 {
			w.Node, w.LeaseLeftMs = nodes[u.holder], u.remaining.Milliseconds()
		}
		reply.Workers = append(reply.Workers, w)
	}
	return reply, nil
}

// Delegate implements pb.SnowflakeServer.
func (v server) Delegate(ctx context.Context, req *pb.SnowflakeDelegateRequest) (*pb.SnowflakeDelegateReply, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	w := wish{holder: req.Holder, window: DefaultDelegation, extends: req.HasWorker, named: named{
		datacenter: snowflake.Datacenter(req.DatacenterId), worker: snowflake.Worker(req.WorkerId), confirmed: mark(req.ConfirmedUnixMs),
	}}
	if req.WindowMs != 0 {
		// Capped far above what is allowed, so that no number of milliseconds overflows.
		w.window = time.Duration(min(req.WindowMs, 1<<32)) * time.Millisecond
	}
	d, err := v.s.delegate(ctx, Ref{Name: req.Namespace, Alias: req.Alias}, w)
	if err != nil {
		return nil, err
	}
	return &pb.SnowflakeDelegateReply{
		Namespace: d.ns.Name, Layout: d.ns.Layout.String(), DatacenterId: uint64(d.datacenter), WorkerId: uint64(d.worker),
		FloorTick: uint64(d.floor), LastTick: uint64(d.last), ConfirmedUnixMs: uint64(d.confirmed),
		ValidUntilUnixMs: d.validUntil().UnixMilli(), Continues: d.continues,
	}, nil
}

// Info implements pb.SnowflakeServer.
func (v server) Info(ctx context.Context, req *pb.SnowflakeInfoRequest) (*pb.SnowflakeInfoReply, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	i, err := v.s.find(ctx, Ref{Name: req.Namespace, Alias: req.Alias})
	if err != nil {
		return nil, fmt.Errorf("info: %w", err)
	}
	l, err := v.s.leaseOf(ctx, i)
	if err != nil {
		return nil, fmt.Errorf("info: %w", err)
	}
	now := v.s.cfg.Wall()
	return &pb.SnowflakeInfoReply{
		Node: v.s.cfg.Name, Namespace: i.name, Layout: layoutToProto(l.ns.Layout, now),
		WorkerId: uint64(l.worker), DatacenterId: uint64(l.datacenter), Datacenter: v.s.cfg.Datacenter,
		TimestampUnixMs: now.UnixMilli(), ConfirmedUnixMs: uint64(l.mark()),
	}, nil
}
