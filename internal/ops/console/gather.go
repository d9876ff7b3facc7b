package console

import (
	"context"
	"errors"
	"fmt"
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
	Traffic []traffic       `json:"traffic"` // the last is of now
	Calls   bool            `json:"has_calls"`
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
	s.found, s.total = found, totalsOf(judged, g.cfg.Calls, s.taken)
	g.history = append(g.history, s.total.since(before))
	if more := len(g.history) - historyPoints; more > 0 {
		g.history = append([]traffic(nil), g.history[more:]...)
	}
	s.parts[status] = partOf(s.taken, overview{g.cfg.Server, judged, survey.Members(found.View()), g.history, g.cfg.Calls != nil}, nil)
}

// survey asks all AllocSvr, and one of them about namespaces.
func (g *gatherer) survey(ctx context.Context) (*survey.Survey, error) {
	if g.cfg.Client.Caller().Table().Routes() == nil {
		if err := g.cfg.Client.Ready(ctx); err != nil {
			return nil, fmt.Errorf("no route table yet: %w", err)
		}
	}
	table := g.cfg.Client.Caller().Table().Routes()
	mapping, ok := g.cfg.Client.Caller().Table().Mapping()
	if table == nil || !ok {
		return nil, seq.ErrNoRoute
	}
	found := survey.Glance(ctx, &survey.Cluster{ID: g.cfg.Client.Caller().Table().ClusterID(), Mapping: mapping, Table: table}, g.conns, patience)
	if view := found.View(); view.GetRouteVersion() > table.Version {
		g.cfg.Client.Caller().Table().Refresh() // there are no calls, or this process would know
	}
	if conn, err := g.one(found); err == nil {
		found.AskIDs(ctx, pb.NewSnowflakeClient(conn), time.Now())
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

// part collects one topic, by way of an AllocSvr that answered a moment ago.
func (g *gatherer) part(ctx context.Context, t topic, found *survey.Survey) *part {
	if t == drill {
		var shown any
		if g.cfg.Drill != nil {
			shown = g.cfg.Drill()
		}
		return partOf(time.Now(), shown, nil)
	}
	conn, err := g.one(found)
	if err != nil {
		return partOf(time.Now(), nil, err)
	}
	var shown any
	switch t {
	case sections:
		var reply *pb.LeasesReply
		reply, err = pb.NewAdminClient(conn).Leases(ctx, &pb.LeasesRequest{All: true})
		shown = sectionsOf(reply)
	case events:
		var reply *pb.EventsReply
		reply, err = pb.NewAdminClient(conn).Events(ctx, &pb.EventsRequest{Limit: mostEvents})
		shown = survey.Events(reply)
	case ids:
		shown, err = namespacesOf(ctx, pb.NewSnowflakeClient(conn))
	case segments:
		shown, err = g.tags(ctx, conn, found)
	}
	return partOf(time.Now(), shown, err)
}
