package console

import (
	"context"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/ops/survey"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// Bounds of what is collected of namespaces: seqctl and the metrics have the rest.
const (
	mostNamespaces = 16
	mostWorkers    = 500 // of a namespace
	mostTags       = 500
)

// namespace is one as a page shows it.
type namespace struct {
	Name        string   `json:"name"`
	Alias       uint32   `json:"alias"`
	Layout      string   `json:"layout"`
	EndsUnixMS  int64    `json:"ends_unix_ms"`
	RetiredUnix int64    `json:"retired_unix_ms"` // zero if in use
	Used        bool     `json:"used"`            // if false, it is offered and was never used so far
	Pool        string   `json:"pool"`            // worker ids of a datacenter; a text, for there may be 2^60
	Held        int      `json:"held"`
	Workers     []worker `json:"workers"` // those ever used
	Left        int      `json:"left_out"`
	Error       string   `json:"error,omitempty"`
}

type worker struct {
	Datacenter  uint64 `json:"datacenter"`
	Worker      uint64 `json:"worker"`
	MarkUnixMS  uint64 `json:"mark_unix_ms"`
	Node        string `json:"node"`
	Session     string `json:"session"`
	LeaseLeftMS int64  `json:"lease_left_ms"`
	Free        bool   `json:"free"`
}

type idsPart struct {
	Namespaces  []namespace       `json:"namespaces"`
	Datacenters map[uint64]string `json:"datacenters"`
	Left        int               `json:"left_out"`
}

func namespacesOf(ctx context.Context, c pb.SnowflakeClient) (*idsPart, error) {
	reply, err := c.Namespaces(ctx, &pb.SnowflakeNamespacesRequest{})
	if err != nil {
		return nil, err
	}
	list := reply.GetNamespaces()
	out := &idsPart{Namespaces: make([]namespace, min(len(list), mostNamespaces)), Datacenters: map[uint64]string{}, Left: max(len(list)-mostNamespaces, 0)}
	for _, d := range reply.GetDatacenters() {
		out.Datacenters[d.GetId()] = d.GetName()
	}
	var wg sync.WaitGroup
	for i := range out.Namespaces {
		wg.Go(func() { out.Namespaces[i] = namespaceOf(ctx, c, list[i]) })
	}
	wg.Wait()
	return out, nil
}

func namespaceOf(ctx context.Context, c pb.SnowflakeClient, ns *pb.SnowflakeNamespace) namespace {
	layout := ns.GetLayout()
	out := namespace{Name: ns.GetName(), Alias: ns.GetAlias(), Layout: layout.GetName(), EndsUnixMS: layout.GetExhaustedUnixMs(),
		RetiredUnix: ns.GetRetiredUnixMs(), Used: ns.GetVersion() > 0, Workers: []worker{}}
	if out.Layout == "" {
		out.Layout = layout.GetText()
	}
	if !out.Used {
		return out
	}
	reply, err := c.Workers(ctx, &pb.SnowflakeWorkersRequest{Namespace: ns.GetName()})
	if err != nil {
		out.Error = err.Error()
		return out
	}
	out.Pool = text(reply.GetPool())
	for _, w := range reply.GetWorkers() {
		if !w.GetFree() {
			out.Held++
		}
		if len(out.Workers) == mostWorkers {
			out.Left++
			continue
		}
		out.Workers = append(out.Workers, worker{w.GetDatacenterId(), w.GetWorkerId(), w.GetMarkUnixMs(), w.GetNode(),
			survey.SessionText(w.GetSession()), w.GetLeaseLeftMs(), w.GetFree()})
	}
	return out
}

// tag is a segment tag: Leaf's /db, and its /cache where an AllocSvr serves it.
type tag struct {
	Tag         string   `json:"tag"`
	Section     uint32   `json:"section"`
	MinStep     uint64   `json:"min_step"`
	MaxStep     uint64   `json:"max_step"`
	Start       uint64   `json:"start"`
	RetiredUnix int64    `json:"retired_unix_ms"`
	Node        string   `json:"node"`  // that serves it; may be empty
	State       string   `json:"state"` // empty if no node serves it
	Leased      bool     `json:"leased"`
	Current     uint64   `json:"current"`
	Max         uint64   `json:"max"`
	Step        uint64   `json:"step"`
	Loading     bool     `json:"loading"`
	Buffers     []buffer `json:"buffers"`
}

type tagList struct {
	Tags []tag `json:"tags"`
	Left int   `json:"left_out"`
}

type buffer struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	Left  uint64 `json:"left"`
}

// tags are all tags by name, beside what each AllocSvr that answered serves of them.
func (g *gatherer) tags(ctx context.Context, conn grpc.ClientConnInterface, found *survey.Survey) (*tagList, error) {
	list, err := pb.NewSegmentClient(conn).List(ctx, &pb.SegmentListRequest{})
	if err != nil {
		return nil, err
	}
	served := map[string]tag{}
	var mu sync.Mutex // guards served
	var wg sync.WaitGroup
	for name, addr := range answeredBy(found) {
		wg.Go(func() {
			conn, err := g.conns.To(addr)
			if err != nil {
				return
			}
			reply, err := pb.NewSegmentClient(conn).Status(ctx, &pb.SegmentStatusRequest{})
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for _, s := range reply.GetTags() {
				// While a tag moves two may report it: the one that has it counts.
				if old, two := served[s.GetTag().GetTag()]; !two || s.GetState() > old.State {
					served[s.GetTag().GetTag()] = tagOf(name, s)
				}
			}
		})
	}
	wg.Wait()
	slices.SortFunc(list.Tags, func(a, b *pb.SegmentTag) int { return strings.Compare(a.GetTag(), b.GetTag()) })
	out := &tagList{Tags: []tag{}, Left: max(len(list.Tags)-mostTags, 0)}
	for _, t := range list.Tags[:min(len(list.Tags), mostTags)] {
		one := served[t.GetTag()]
		one.Tag, one.Section, one.MinStep, one.MaxStep = t.GetTag(), t.GetSection(), t.GetMinStep(), t.GetMaxStep()
		one.Start, one.RetiredUnix = t.GetStart(), t.GetRetiredUnixMs()
		if one.Buffers == nil {
			one.Buffers = []buffer{}
		}
		out.Tags = append(out.Tags, one)
	}
	return out, nil
}

func answeredBy(found *survey.Survey) map[string]string {
	addrs := map[string]string{}
	if found == nil {
		return addrs
	}
	for _, n := range found.Cluster.Table.Nodes {
		if found.Replies[n.Name] != nil {
			addrs[n.Name] = n.Addr
		}
	}
	return addrs
}

func tagOf(node string, s *pb.SegmentStatus) tag {
	out := tag{Node: node, State: s.GetState(), Leased: s.GetLeased(), Current: s.GetCurrent(), Max: s.GetMax(), Step: s.GetStep(), Loading: s.GetLoading()}
	for _, b := range s.GetBuffers() {
		out.Buffers = append(out.Buffers, buffer{b.GetFirst(), b.GetLast(), b.GetLeft()})
	}
	return out
}
