package clienttest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// fakeNamespaces stand in a Cluster without a backend.
var fakeNamespaces = []struct {
	name, layout string
	alias        uint32
}{
	{"default", "twitter", 0}, {"regional-1", "regional", 1}, {"regional-2", "regional", 2}, {"orders", "leaf", 0}, {"clicks", "time:41,worker:6,sequence:16;epoch=1700000000000;overflow=borrow", 0},
}

// snowflakes is a node's Snowflake service: real IDs, under a worker id that is the
// node's index. It answers what an AllocSvr would, short of details.
type snowflakes struct {
	pb.UnimplementedSnowflakeServer
	n *Node
}

// in checks that the node is in the named datacenter. Node i is in "dc-i", and does not know the
// datacenters of nodes with a higher index.
func (n *Node) in(datacenter string) error {
	for i := range n.index + 1 {
		switch {
		case datacenter != "" && datacenter != fmt.Sprint("dc-", i):
		case datacenter == "", i == n.index:
			return nil
		default:
			return fmt.Errorf("%w: this node is of datacenter \"dc-%d\", not %q", seq.ErrNodeUnfit, n.index, datacenter)
		}
	}
	return fmt.Errorf("%w: %q", seq.ErrUnknownDatacenter, datacenter)
}

// Generate implements pb.SnowflakeServer.
func (s snowflakes) Generate(ctx context.Context, r *pb.SnowflakeGenerateRequest) (*pb.SnowflakeGenerateReply, error) {
	s.n.Generates.Add(1)
	if err := s.n.stall(ctx); err != nil {
		return nil, err
	}
	c := s.n.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := cmp.Or(s.n.refused(), c.fault); err != nil {
		return nil, err
	}
	if c.atOnce > 0 && int(r.GetCount()) > c.atOnce {
		return nil, fmt.Errorf("%w: %d of one tick", seq.ErrTickUsedUp, c.atOnce)
	}
	if err := s.n.in(r.GetDatacenter()); err != nil {
		return nil, err
	}
	form, err := encoding(r.GetEncoding())
	if err != nil {
		return nil, err
	}
	name, l, err := resolve(r.GetNamespace(), r.GetAlias())
	if err != nil {
		return nil, err
	}
	g, err := s.n.generator(name, l)
	if err != nil {
		return nil, err
	}
	c.agents[r.GetAgent()] += int(r.GetCount())
	out := &pb.SnowflakeGenerateReply{Namespace: name, Layout: layoutOf(name), WorkerId: uint64(s.n.index)}
	if l.HasDatacenter() {
		out.DatacenterId = Datacenter
	}
	for left := int(r.GetCount()); left > 0; {
		b, err := g.Take(ctx, left)
		if err != nil {
			return nil, err
		}
		left -= b.Len()
		for run := range b.Runs() {
			out.Runs = append(out.Runs, &pb.SnowflakeRun{First: uint64(run.First), Last: uint64(run.Last), Stride: uint64(run.Stride)})
		}
		for _, id := range b.AppendTo(nil) {
			if !r.GetAsRuns() {
				out.Ids = append(out.Ids, uint64(id))
			}
			if r.GetEncoding() == "" {
				continue
			}
			text, err := form.Format(id)
			if err != nil {
				return nil, err
			}
			out.Texts = append(out.Texts, text)
		}
	}
	if !r.GetAsRuns() {
		out.Runs = nil
	}
	return out, nil
}

// generator is the node's for a namespace, under c.mu. It outlives Kill.
func (n *Node) generator(name string, l snowflake.Layout) (*snowflake.Generator, error) {
	if g := n.generators[name]; g != nil {
		return g, nil
	}
	dc := snowflake.Datacenter(0)
	if l.HasDatacenter() {
		dc = Datacenter
	}
	g, err := snowflake.New(l, dc, snowflake.Worker(n.index), 0,
		snowflake.WithPolicy(snowflake.Policy{Overflow: snowflake.OverflowBorrow, Rollback: snowflake.RollbackBorrow}))
	if err != nil {
		return nil, err
	}
	g.Extend(l.MaxTick())
	n.generators[name] = g
	return g, nil
}

func layoutOf(namespace string) string {
	for _, ns := range fakeNamespaces {
		if ns.name == namespace {
			return ns.layout
		}
	}
	return ""
}

func resolve(name string, alias uint32) (string, snowflake.Layout, error) {
	if name == "" && alias == 0 {
		name = "default"
	}
	for _, ns := range fakeNamespaces {
		if name == ns.name || alias != 0 && alias == ns.alias || ns.alias != 0 && name == fmt.Sprint(ns.alias) {
			l, err := snowflake.Preset(ns.layout)
			if err != nil {
				l, err = snowflake.ParseLayout(ns.layout)
			}
			return ns.name, l, err
		}
	}
	return "", snowflake.Layout{}, fmt.Errorf("%w: %q", seq.ErrUnknownNamespace, name)
}

// layout returns the layout of a request for an ID's parts, and the layout's name.
func layout(text, namespace string, alias uint32) (string, snowflake.Layout, error) {
	if text == "" {
		name, l, err := resolve(namespace, alias)
		return layoutOf(name), l, err
	}
	if l, err := snowflake.Preset(text); err == nil {
		return text, l, nil
	}
	l, err := snowflake.ParseLayout(text)
	if err != nil {
		return "", l, fmt.Errorf("%w: %w", seq.ErrBadLayout, err)
	}
	return l.String(), l, nil
}

func encoding(name string) (snowflake.Encoding, error) {
	if name == "" {
		return snowflake.Decimal, nil
	}
	e, err := snowflake.ParseEncoding(name)
	if err != nil {
		return e, fmt.Errorf("%w: %w", seq.ErrBadArgument, err)
	}
	return e, nil
}

// Decode implements pb.SnowflakeServer.
func (s snowflakes) Decode(_ context.Context, r *pb.SnowflakeDecodeRequest) (*pb.SnowflakeDecoded, error) {
	e, err := encoding(r.GetEncoding())
	if err != nil {
		return nil, err
	}
	id := snowflake.ID(r.GetNumber())
	if text, ok := r.GetId().(*pb.SnowflakeDecodeRequest_Text); ok {
		if id, err = e.Parse(text.Text); err != nil {
			return nil, fmt.Errorf("%w: %w", seq.ErrBadID, err)
		}
	}
	name, l, err := layout(r.GetLayout(), r.GetNamespace(), r.GetAlias())
	if err != nil {
		return nil, err
	}
	return decoded(name, l, id, snowflake.Decimal)
}

func decoded(name string, l snowflake.Layout, id snowflake.ID, e snowflake.Encoding) (*pb.SnowflakeDecoded, error) {
	p, err := l.Decode(id)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", seq.ErrBadID, err)
	}
	at, err := l.TimeOf(p.Tick)
	if err != nil {
		return nil, err
	}
	text, err := e.Format(id)
	if err != nil {
		return nil, err
	}
	out := &pb.SnowflakeDecoded{
		Id: int64(id), Text: text, Layout: name, UnixMs: at.UnixMilli(), Tick: uint64(p.Tick), DatacenterId: uint64(p.Datacenter),
		WorkerId: uint64(p.Worker), Sequence: p.Sequence, HasDatacenter: l.HasDatacenter(),
	}
	if l.HasDatacenter() && p.Datacenter == Datacenter {
		out.Datacenter = DatacenterName
	}
	return out, nil
}

// Compose implements pb.SnowflakeServer.
func (s snowflakes) Compose(_ context.Context, r *pb.SnowflakeComposeRequest) (*pb.SnowflakeDecoded, error) {
	e, err := encoding(r.GetEncoding())
	if err != nil {
		return nil, err
	}
	name, l, err := layout(r.GetLayout(), r.GetNamespace(), r.GetAlias())
	if err != nil {
		return nil, err
	}
	tick := snowflake.Tick(r.GetTick())
	if at, ok := r.GetTime().(*pb.SnowflakeComposeRequest_UnixMs); ok {
		tick, err = l.TickAt(time.UnixMilli(at.UnixMs))
	}
	var id snowflake.ID
	if err == nil {
		id, err = l.Compose(snowflake.Parts{
			Tick: tick, Datacenter: snowflake.Datacenter(r.GetDatacenterId()), Worker: snowflake.Worker(r.GetWorkerId()), Sequence: r.GetSequence(),
		})
	}
	if errors.Is(err, snowflake.ErrTimeExhausted) {
		return nil, fmt.Errorf("%w: %w", seq.ErrTimeExhausted, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", seq.ErrBadID, err)
	}
	return decoded(name, l, id, e)
}

// Layouts implements pb.SnowflakeServer.
func (s snowflakes) Layouts(_ context.Context, r *pb.SnowflakeLayoutsRequest) (*pb.SnowflakeLayoutsReply, error) {
	texts := snowflake.PresetNames()
	if r.GetLayout() != "" {
		texts = []string{r.GetLayout()}
	}
	out := &pb.SnowflakeLayoutsReply{}
	for _, text := range texts {
		_, l, err := layout(text, "", 0)
		if err != nil {
			return nil, err
		}
		one := &pb.SnowflakeLayout{
			Text: l.String(), EpochUnixMs: l.Epoch().UnixMilli(), UnitMs: l.Unit().Milliseconds(), ExhaustedUnixMs: l.Exhausted().UnixMilli(),
			Exhausted: l.Remaining(time.Now()) <= 0, HasDatacenter: l.HasDatacenter(), MaxDatacenter: uint64(l.MaxDatacenter()),
			MaxWorker: uint64(l.MaxWorker()), MaxSequence: l.MaxSequence(), Overflow: l.Policy().Overflow.String(), Rollback: l.Policy().Rollback.String(),
		}
		if _, err := snowflake.Preset(text); err == nil {
			one.Name = text
		}
		out.Layouts = append(out.Layouts, one)
	}
	return out, nil
}

// Info implements pb.SnowflakeServer.
func (s snowflakes) Info(_ context.Context, r *pb.SnowflakeInfoRequest) (*pb.SnowflakeInfoReply, error) {
	name, _, err := resolve(r.GetNamespace(), r.GetAlias())
	if err != nil {
		return nil, err
	}
	return &pb.SnowflakeInfoReply{Node: s.n.cluster.Routes().Nodes[s.n.index].Name, Namespace: name, WorkerId: uint64(s.n.index), DatacenterId: Datacenter}, nil
}

// Namespaces implements pb.SnowflakeServer.
func (s snowflakes) Namespaces(context.Context, *pb.SnowflakeNamespacesRequest) (*pb.SnowflakeNamespacesReply, error) {
	out := &pb.SnowflakeNamespacesReply{Datacenters: []*pb.SnowflakeDatacenter{{Id: Datacenter, Name: DatacenterName}}}
	for _, ns := range fakeNamespaces {
		out.Namespaces = append(out.Namespaces, &pb.SnowflakeNamespace{Name: ns.name, Alias: ns.alias})
	}
	return out, nil
}

// PutNamespace implements pb.SnowflakeServer: every change is one too late.
func (s snowflakes) PutNamespace(context.Context, *pb.SnowflakePutNamespaceRequest) (*pb.SnowflakeNamespace, error) {
	s.n.Calls.Add(1)
	return nil, seq.ErrConflict
}

// Workers implements pb.SnowflakeServer.
func (s snowflakes) Workers(_ context.Context, r *pb.SnowflakeWorkersRequest) (*pb.SnowflakeWorkersReply, error) {
	name, l, err := resolve(r.GetNamespace(), r.GetAlias())
	if err != nil {
		return nil, err
	}
	return &pb.SnowflakeWorkersReply{Namespace: name, Pool: uint64(l.MaxWorker()) + 1}, nil
}
