package globalid

import (
	"context"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/audit"
	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// server serves callers: checks and translation only.
type server struct {
	pb.UnimplementedSnowflakeServer
	s *Service
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
	ctx, cancel := rpc.Bounded(ctx)
	defer cancel()
	rpc.OneIfNone(&req.Count)
	ref := namespaces.Ref{Name: req.Namespace, Alias: req.Alias}
	if err := v.s.names.In(ctx, ref, req.Datacenter); err != nil {
		return nil, fmt.Errorf("generate: %w", err)
	}
	got, err := v.s.Generate(ctx, ref, int(req.Count))
	if err != nil {
		return nil, err
	}
	ids.Add(uint64(req.Count))
	v.s.cfg.Audit.Note(audit.Note{At: v.s.cfg.Wall(), Kind: audit.Issued, Agent: req.Agent, Caller: v.s.cfg.Caller(ctx).Name,
		Namespace: got.Namespace.Name, Datacenter: got.Datacenter, Worker: got.Worker, Batches: got.Batches})
	reply := &pb.SnowflakeGenerateReply{
		DatacenterId: uint64(got.Datacenter), WorkerId: uint64(got.Worker), Namespace: got.Namespace.Name, Layout: got.Layout,
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
			return nil, fmt.Errorf("generate: %w", namespaces.Reading.Name(err))
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
	if other, err := decodeOther(req); other != nil || err != nil {
		return other, err
	}
	ctx, cancel := rpc.Bounded(ctx)
	defer cancel()
	l, err := v.layoutOf(ctx, req.Layout, namespaces.Ref{Name: req.Namespace, Alias: req.Alias})
	if err != nil {
		return nil, err
	}
	id, err := idOf(req, l)
	if err != nil {
		return nil, err
	}
	return v.decoded(l, id, snowflake.Decimal)
}

// Compose implements pb.SnowflakeServer.
func (v server) Compose(ctx context.Context, req *pb.SnowflakeComposeRequest) (*pb.SnowflakeDecoded, error) {
	e, err := encodingOf(req.Encoding)
	if err != nil {
		return nil, err
	}
	ctx, cancel := rpc.Bounded(ctx)
	defer cancel()
	l, err := v.layoutOf(ctx, req.Layout, namespaces.Ref{Name: req.Namespace, Alias: req.Alias})
	if err != nil {
		return nil, err
	}
	parts, err := partsOf(l, req)
	if err != nil {
		return nil, err
	}
	id, err := l.Compose(parts)
	if err != nil {
		return nil, namespaces.Reading.Name(err)
	}
	return v.decoded(l, id, e)
}

// Layouts implements pb.SnowflakeServer.
func (v server) Layouts(_ context.Context, req *pb.SnowflakeLayoutsRequest) (*pb.SnowflakeLayoutsReply, error) {
	texts := snowflake.PresetNames()
	if req.Layout != "" {
		texts = []string{req.Layout}
	}
	reply := &pb.SnowflakeLayoutsReply{}
	for _, text := range texts {
		l, err := namespaces.ParseLayout(text)
		if err != nil {
			l, err = namespaces.ParseReadable(text)
		}
		if err != nil {
			return nil, err
		}
		reply.Layouts = append(reply.Layouts, layoutToProto(l, v.s.cfg.Wall()))
	}
	return reply, nil
}

func (v server) namespaceToProto(ns namespaces.Namespace) *pb.SnowflakeNamespace {
	return &pb.SnowflakeNamespace{Name: ns.Name, Alias: ns.Alias, Version: ns.Version, RetiredUnixMs: ns.Retired, Layout: layoutToProto(ns.Layout, v.s.cfg.Wall())}
}

// Namespaces implements pb.SnowflakeServer.
func (v server) Namespaces(ctx context.Context, req *pb.SnowflakeNamespacesRequest) (*pb.SnowflakeNamespacesReply, error) {
	ctx, cancel := rpc.Bounded(ctx)
	defer cancel()
	all, err := v.s.names.Newest(ctx)
	if err != nil {
		return nil, fmt.Errorf("namespaces: %w", err)
	}
	meant, err := all.Select(namespaces.Ref{Name: req.Namespace, Alias: req.Alias})
	if err != nil {
		return nil, err
	}
	reply := &pb.SnowflakeNamespacesReply{ClusterId: v.s.cfg.Cluster, Conflicts: v.s.abroad.conflicts(), Incarnation: rpc.IncarnationToProto(v.s.cfg.Life)}
	for _, ns := range meant {
		reply.Namespaces = append(reply.Namespaces, v.namespaceToProto(ns))
	}
	for _, dc := range all.Datacenters {
		reply.Datacenters = append(reply.Datacenters, &pb.SnowflakeDatacenter{Id: uint64(dc.ID), Name: dc.Name})
	}
	return reply, nil
}

// PutNamespace implements pb.SnowflakeServer.
func (v server) PutNamespace(ctx context.Context, req *pb.SnowflakePutNamespaceRequest) (*pb.SnowflakeNamespace, error) {
	ctx, cancel := rpc.Bounded(ctx)
	defer cancel()
	ns, err := v.s.names.Put(ctx, namespaces.Edit{
		Name: req.Name, Alias: req.Alias, Layout: req.Layout, Overflow: req.Overflow, Rollback: req.Rollback, Version: req.Version,
	})
	if err != nil {
		return nil, fmt.Errorf("put: %w", err)
	}
	v.s.cfg.Logger.Info("namespace put", "namespace", ns.Name, "alias", ns.Alias, "layout", ns.Layout.String(), "version", ns.Version)
	if left := ns.Layout.Remaining(v.s.cfg.Wall()); left <= snowflake.ExhaustionWarning {
		v.s.cfg.Logger.Warn("the layout of the namespace ends soon", "namespace", ns.Name, "ends", ns.Layout.Exhausted())
	}
	return v.told(ctx, ns)
}

// told returns the answer to a change, once it is in effect as far as nodes can be told.
func (v server) told(ctx context.Context, ns namespaces.Namespace) (*pb.SnowflakeNamespace, error) {
	e, err := v.s.workers.Told(ctx, ns.Name)
	if err != nil {
		return nil, err
	}
	if v.s.names.Known().Elsewhere(ns.Name) {
		e.Later = max(e.Later, namespaces.FollowedWithin)
	}
	reply := v.namespaceToProto(ns)
	reply.InEffectInMs, reply.WindowsUntilUnixMs = e.Later.Milliseconds(), int64(e.Lent)
	return reply, nil
}

// RetireNamespace implements pb.SnowflakeServer.
func (v server) RetireNamespace(ctx context.Context, req *pb.SnowflakeRetireNamespaceRequest) (*pb.SnowflakeNamespace, error) {
	ctx, cancel := rpc.Bounded(ctx)
	defer cancel()
	ref := namespaces.Ref{Name: req.Namespace, Alias: req.Alias}
	if ref == (namespaces.Ref{}) {
		return nil, fmt.Errorf("retire: %w: no namespace", seq.ErrBadArgument)
	}
	ns, err := v.s.names.Retire(ctx, ref, req.Undo)
	if err != nil {
		return nil, fmt.Errorf("retire: %w", err)
	}
	v.s.cfg.Logger.Info("namespace retired or brought back", "namespace", ns.Name, "retired", ns.Retired != 0, "version", ns.Version)
	return v.told(ctx, ns)
}

// Workers implements pb.SnowflakeServer.
func (v server) Workers(ctx context.Context, req *pb.SnowflakeWorkersRequest) (*pb.SnowflakeWorkersReply, error) {
	ctx, cancel := rpc.Bounded(ctx)
	defer cancel()
	ns, err := v.s.names.Find(ctx, namespaces.Ref{Name: req.Namespace, Alias: req.Alias})
	if err != nil {
		return nil, fmt.Errorf("workers: %w", err)
	}
	used, nodes, err := v.s.workers.Show(ctx, ns)
	if err != nil {
		return nil, fmt.Errorf("workers: %w", err)
	}
	reply := &pb.SnowflakeWorkersReply{Namespace: ns.Name, Pool: uint64(ns.Layout.MaxWorker()) + 1}
	for _, a := range v.s.workers.Allotted(ns.Name) {
		reply.Allotted = append(reply.Allotted, &pb.SnowflakeAllotment{DatacenterId: uint64(a.Datacenter), First: uint64(a.First), Last: uint64(a.Last),
			ClusterId: a.Cluster, Set: v.s.cfg.Root.Name(a.Cluster), Usable: a.Above > 0})
	}
	for _, u := range used {
		w := &pb.SnowflakeWorker{
			DatacenterId: uint64(u.Datacenter), WorkerId: uint64(u.Worker), MarkUnixMs: uint64(u.Mark),
			Session: uint64(u.Holder), LeaseLeftMs: -1, Free: u.Free,
		}
		if u.Mark > u.Floor {
			w.AheadMs = max(0, u.Mark.Time().Sub(v.s.cfg.Wall()).Milliseconds())
		}
		if u.Holder != 0 {
			w.Node, w.LeaseLeftMs = nodes[u.Holder], u.Remaining.Milliseconds()
		} else if !u.Free {
			w.Client = v.s.workers.Of(ns.Name).LentTo(u)
		}
		reply.Workers = append(reply.Workers, w)
	}
	return reply, nil
}

// Info implements pb.SnowflakeServer.
func (v server) Info(ctx context.Context, req *pb.SnowflakeInfoRequest) (*pb.SnowflakeInfoReply, error) {
	ctx, cancel := rpc.Bounded(ctx)
	defer cancel()
	ns, err := v.s.names.Find(ctx, namespaces.Ref{Name: req.Namespace, Alias: req.Alias})
	if err != nil {
		return nil, fmt.Errorf("info: %w", err)
	}
	l, err := v.s.workers.Of(ns.Name).Lease(ctx)
	if err != nil {
		return nil, fmt.Errorf("info: %w", err)
	}
	now := v.s.cfg.Wall()
	return &pb.SnowflakeInfoReply{
		Node: v.s.cfg.Name, Namespace: ns.Name, Layout: layoutToProto(l.Namespace.Layout, now),
		WorkerId: uint64(l.Worker), DatacenterId: uint64(l.Datacenter), Datacenter: v.s.cfg.Node.Datacenter.Name,
		TimestampUnixMs: now.UnixMilli(), ConfirmedUnixMs: uint64(l.Mark()),
	}, nil
}

func layoutToProto(l snowflake.Layout, now time.Time) *pb.SnowflakeLayout {
	policy := l.Policy()
	rollback := policy.Rollback.String()
	if policy.Rollback == snowflake.RollbackWait {
		rollback += ":" + policy.RollbackWait.String()
	}
	return &pb.SnowflakeLayout{
		Name: l.PresetName(), Text: l.String(),
		EpochUnixMs: l.Epoch().UnixMilli(), UnitMs: l.Unit().Milliseconds(),
		ExhaustedUnixMs: l.Exhausted().UnixMilli(), Exhausted: l.Remaining(now) <= 0,
		HasDatacenter: l.HasDatacenter(), MaxDatacenter: uint64(l.MaxDatacenter()),
		MaxWorker: uint64(l.MaxWorker()), MaxSequence: l.MaxSequence(),
		Overflow: policy.Overflow.String(), Rollback: rollback, ReadOnly: l.ReadOnly(),
	}
}

// layoutOf returns the layout that a request means: by itself, or by its namespace.
func (v server) layoutOf(ctx context.Context, layout string, ref namespaces.Ref) (snowflake.Layout, error) {
	if layout != "" {
		return namespaces.ParseReadable(layout)
	}
	ns, err := v.s.names.Find(ctx, ref)
	if err != nil {
		return snowflake.Layout{}, err
	}
	return ns.Layout, nil
}

// decoded describes an ID. seq.ErrBadID.
func (v server) decoded(l snowflake.Layout, id snowflake.ID, e snowflake.Encoding) (*pb.SnowflakeDecoded, error) {
	parts, err := l.Decode(id)
	if err != nil {
		return nil, namespaces.Reading.Name(err)
	}
	at, err := l.TimeOf(parts.Tick)
	if err != nil {
		return nil, namespaces.Reading.Name(err)
	}
	text, err := e.FormatOf(l, id)
	if err != nil {
		return nil, namespaces.Reading.Name(err)
	}
	out := &pb.SnowflakeDecoded{
		Id: int64(id), Text: text, Layout: l.Name(), UnixMs: at.UnixMilli(), Tick: uint64(parts.Tick),
		DatacenterId: uint64(parts.Datacenter), WorkerId: uint64(parts.Worker), Sequence: parts.Sequence,
		HasDatacenter: l.HasDatacenter(),
	}
	if l.HasDatacenter() {
		out.Datacenter = v.s.names.Known().NameOf(parts.Datacenter)
	}
	return out, nil
}

// encodingOf reads the name of a text form, "" for decimal: seq.ErrBadArgument.
func encodingOf(name string) (snowflake.Encoding, error) {
	if name == "" {
		return snowflake.Decimal, nil
	}
	e, err := snowflake.ParseEncoding(name)
	return e, namespaces.Reading.Name(err)
}

// idOf returns the ID of a request: seq.ErrBadID, seq.ErrBadArgument.
func idOf(req *pb.SnowflakeDecodeRequest, l snowflake.Layout) (snowflake.ID, error) {
	e, err := encodingOf(req.Encoding)
	if err != nil {
		return 0, err
	}
	switch id := req.Id.(type) {
	case *pb.SnowflakeDecodeRequest_Number:
		return snowflake.ID(id.Number), nil
	case *pb.SnowflakeDecodeRequest_Text:
		parsed, err := e.ParseOf(l, id.Text)
		return parsed, namespaces.Reading.Name(err)
	}
	return 0, fmt.Errorf("%w: neither number nor text", seq.ErrBadID)
}

// partsOf returns the parts of a request: seq.ErrBadID, seq.ErrTimeExhausted.
func partsOf(l snowflake.Layout, req *pb.SnowflakeComposeRequest) (snowflake.Parts, error) {
	p := snowflake.Parts{
		Datacenter: snowflake.Datacenter(req.DatacenterId), Worker: snowflake.Worker(req.WorkerId), Sequence: req.Sequence,
	}
	switch t := req.Time.(type) {
	case *pb.SnowflakeComposeRequest_Tick:
		p.Tick = snowflake.Tick(t.Tick)
	case *pb.SnowflakeComposeRequest_UnixMs:
		var err error
		p.Tick, err = l.TickAt(time.UnixMilli(t.UnixMs))
		return p, namespaces.Reading.Name(err)
	default:
		return p, fmt.Errorf("%w: neither time nor tick", seq.ErrBadArgument)
	}
	return p, nil
}
