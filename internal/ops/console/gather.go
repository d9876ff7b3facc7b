package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/ops/survey"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// mostEvents is the number of decisions on a page.
const mostEvents = 200

// historyPoints is the number of snapshots whose rates are kept, for charts that have just begun.
const historyPoints = 300

// gatherer makes snapshots. For the one goroutine of a collector.
type gatherer struct {
	cfg     Config
	conns   *survey.Conns
	history []traffic
}

func newGatherer(cfg Config) *gatherer {
	return &gatherer{cfg: cfg, conns: survey.NewConns(cfg.Dial...)}
}

// overview is the part of the topic status.
type overview struct {
	Server  string          `json:"server"`
	Status  survey.Status   `json:"status"`
	Members []survey.Member `json:"members"`
	Traffic []traffic       `json:"traffic"`  // the last is of now
	Callers []string        `json:"calls_of"` // the processes whose calls traffic counts, by name
}

// gather asks for what is wanted and not in the last snapshot, or no longer fresh there.
func (g *gatherer) gather(ctx context.Context, want topicSet, last *snapshot) *snapshot {
	begun := time.Now()
	if last == nil {
		g.history = nil
		last = &snapshot{}
	}
	s := &snapshot{taken: last.taken, found: last.found, total: last.total}
	var wg sync.WaitGroup
	for t, wanted := range want {
		if p := last.parts[t]; p != nil && begun.Sub(p.taken) < fresh[t] {
			s.parts[t] = p
		} else if wanted && t != int(status) {
			wg.Go(func() { s.parts[t] = g.part(ctx, topic(t), last.found) })
		}
	}
	if s.parts[status] == nil {
		g.status(ctx, s)
	}
	wg.Wait()
	return s
}

func (g *gatherer) status(ctx context.Context, s *snapshot) {
	found, err := g.survey(ctx)
	s.taken = time.Now()
	if err != nil {
		s.found, s.parts[status] = nil, partOf(s.taken, nil, err)
		return
	}
	judged, before := found.Judge(), s.total
	s.found, s.total = found, totalsOf(judged, g.calls(found), s.taken)
	g.history = append(g.history, s.total.since(before))
	if more := len(g.history) - historyPoints; more > 0 {
		g.history = append([]traffic(nil), g.history[more:]...)
	}
	s.parts[status] = partOf(s.taken, overview{g.cfg.Server, judged, found.Members(), g.history, slices.Sorted(maps.Keys(s.total.calls))}, nil)
}

// calls returns the calls of this process and of the routers that told theirs, by name. A drill shows its own calls
// alone, because its routers count them, too.
func (g *gatherer) calls(found *survey.Survey) map[string]Calls {
	all := map[string]Calls{}
	if g.cfg.Drill == nil {
		for name, told := range found.Routers() {
			if told.GetCalls() != nil {
				all[name] = callsFromProto(told.GetCalls())
			}
		}
	}
	if g.cfg.Calls != nil {
		all[g.cfg.Server] = g.cfg.Calls()
	}
	return all
}

// survey asks all AllocSvr of all Sets, and the routers.
func (g *gatherer) survey(ctx context.Context) (*survey.Survey, error) {
	known := g.cfg.Client.Caller().Table()
	if known.Routes() == nil {
		if err := g.cfg.Client.Ready(ctx); err != nil {
			return nil, fmt.Errorf("no route table yet: %w", err)
		}
	}
	table := known.Routes()
	mapping, ok := known.Mapping()
	if table == nil || !ok {
		return nil, seq.ErrNoRoute
	}
	cluster := &survey.Cluster{ID: known.ClusterID(), Mapping: mapping, Table: table}
	if sets := g.cfg.Client.Sets(); len(sets.All) > 0 {
		cluster.Set, cluster.Sets, cluster.Incarnation = sets.All[0].Name, sets.Map, sets.All[0].Incarnation
	}
	found := survey.Whole(ctx, cluster, g.conns, asking, survey.Glance)
	if view := found.View(); view.GetRouteVersion() > table.Version {
		known.Refresh() // there are no calls, or this process would know
	}
	return found, nil
}

// errNobody: there is no AllocSvr to ask what all of them know.
var errNobody = errors.New("no AllocSvr answers")

// one is a connection to an AllocSvr that answered.
func (g *gatherer) one(found *survey.Survey) (*grpc.ClientConn, error) {
	addr := ""
	switch {
	case found != nil:
		addr = found.Answered()
	case g.cfg.Client.Caller().Table().Routes() != nil && len(g.cfg.Client.Caller().Table().Routes().Nodes) > 0: // the first snapshot
		addr = g.cfg.Client.Caller().Table().Routes().Nodes[0].Addr
	}
	if addr == "" {
		return nil, errNobody
	}
	return g.conns.To(addr)
}

// perSet asks an AllocSvr of each Set that answered a moment ago, at once, and returns the answers by the name of the
// Set. It fails if none answers: the status tells of the others.
func perSet[T any](ctx context.Context, g *gatherer, found *survey.Survey, ask func(context.Context, pb.AdminClient) (T, error)) (map[string]T, error) {
	addrs := map[string]string{}
	if found != nil {
		for _, of := range found.Each() {
			addrs[of.Cluster.Set] = of.Answered()
		}
	} else { // the first snapshot
		for _, set := range g.cfg.Client.Sets().All {
			switch {
			case set.Routes != nil && len(set.Routes.Nodes) > 0:
				addrs[set.Name] = set.Routes.Nodes[0].Addr
			case len(set.Addrs) > 0:
				addrs[set.Name] = set.Addrs[0]
			}
		}
	}
	var (
		mu   sync.Mutex // guards got and err
		got  = map[string]T{}
		err  = errNobody
		work sync.WaitGroup
	)
	for set, addr := range addrs {
		if addr == "" {
			continue
		}
		work.Go(func() {
			conn, failed := g.conns.To(addr)
			var one T
			if failed == nil {
				one, failed = ask(ctx, pb.NewAdminClient(conn))
			}
			mu.Lock()
			defer mu.Unlock()
			if failed != nil {
				err = failed
				return
			}
			got[set] = one
		})
	}
	work.Wait()
	if len(got) > 0 {
		err = nil
	}
	return got, err
}

// sections returns the sections of all Sets, each as the Set tells that has it by the map.
func (g *gatherer) sections(ctx context.Context, found *survey.Survey) (any, error) {
	replies, err := perSet(ctx, g, found, func(ctx context.Context, c pb.AdminClient) (*pb.LeasesReply, error) {
		return c.Leases(ctx, &pb.LeasesRequest{All: true})
	})
	if err != nil {
		return nil, err
	}
	known, zones := g.cfg.Client.Sets(), map[string]string{}
	setOf := func(id seq.SectionID) string { return known.Of(id).Name }
	if found != nil {
		setOf = func(id seq.SectionID) string { return found.SetOf(id).Cluster.Set }
		for _, of := range found.Each() {
			for _, node := range of.Cluster.Table.Nodes {
				zones[nodeKey(of.Cluster.Set, node.Name)] = node.Zone
			}
		}
	}
	return sectionsOf(replies, setOf, zones), nil
}

// events returns the last events of all Sets by their time.
func (g *gatherer) events(ctx context.Context, found *survey.Survey) (any, error) {
	replies, err := perSet(ctx, g, found, func(ctx context.Context, c pb.AdminClient) (*pb.EventsReply, error) {
		return c.Events(ctx, &pb.EventsRequest{Limit: mostEvents})
	})
	if err != nil {
		return nil, err
	}
	all := []survey.Event{}
	for _, set := range slices.Sorted(maps.Keys(replies)) {
		for _, e := range survey.Events(replies[set]) {
			e.Set = set
			all = append(all, e)
		}
	}
	if len(replies) > 1 {
		slices.SortStableFunc(all, func(a, b survey.Event) int { return cmp.Compare(a.UnixMS, b.UnixMS) })
	}
	return all[max(len(all)-mostEvents, 0):], nil
}

// part collects one topic, by way of an AllocSvr that answered a moment ago, or one of each Set.
func (g *gatherer) part(ctx context.Context, t topic, found *survey.Survey) *part {
	var shown any
	var err error
	switch t {
	case drill:
		if g.cfg.Drill != nil {
			shown = g.cfg.Drill()
		}
	case sections:
		shown, err = g.sections(ctx, found)
	case events:
		shown, err = g.events(ctx, found)
	case ids, segments:
		conn, failed := g.one(found)
		switch {
		case failed != nil:
			err = failed
		case t == ids:
			shown, err = namespacesOf(ctx, pb.NewSnowflakeClient(conn))
		default:
			shown, err = g.tags(ctx, conn, found)
		}
	}
	return partOf(time.Now(), shown, err)
}
