package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// steadyPatience bounds how long a cluster of others may take to be healthy. A cluster of the drill is
// young and may take longer: a node that came late gets its share after placement.DefaultDwell.
const (
	steadyPatience = 5 * time.Second
	leastChecks    = 3 // one alone may take as long, on a busy machine
)

// DrillConfig says how a scenario is drilled.
type DrillConfig struct {
	Node   string        // to break; if empty, the scenario chooses
	Set    string        // likewise
	Pause  time.Duration // of a process or a network; if zero, the scenario chooses
	Warm   time.Duration // load before the fault, longer if a young cluster knows no marks before
	Settle time.Duration // load after everything serves again
	Times  int           // how often the scenario is played; zero means once
	Load   LoadConfig
	Tell   func(what string) // if non-nil, it is called with each step as it happens
	Live   *Live             // shows the drill while it runs; if nil, there is no page
}

// drill is one drill under way.
type drill struct {
	*Cluster
	DrillConfig
	id       string // of the cluster
	lease    time.Duration
	mode     seq.Mode // of the load's space
	load     *Load
	onces    *Onces                      // nil without a space of mode=exact
	logs     map[history.Key]history.Log // of it at the end; nil if not requested
	shelf    *shelf                      // nil without a space with tickets
	timeline *timeline
	survey   *survey
	kept     *registers
	watches  sync.WaitGroup
	shares   *shares          // nil if the scenario is of one Set
	dead     string           // Set that was killed; empty before
	moves    []batch          // between Sets
	faults   []fault          // in order
	served   [2]time.Duration // from when to when the load went on after the last one
}

// fault is one thing that was done to the cluster.
type fault struct {
	from time.Duration      // when it began
	uids func(seq.UID) bool // that it may touch
}

// Drill puts the cluster under load, breaks it and measures. The result is nil when
// nothing was broken; with an error it tells what was seen until then.
func Drill(ctx context.Context, c *Cluster, sc Scenario, cfg DrillConfig) (*Result, error) {
	d := &drill{Cluster: c, DrillConfig: cfg, timeline: newTimeline(cfg.Tell)}
	d.Load.Routed = sc.Routers > 0
	d.Load.Seen = d.Live.begin(d.timeline)
	if err := d.prepare(ctx); err != nil {
		return nil, err
	}
	defer d.survey.close()
	defer d.kept.close()
	if sc.Sets > 0 {
		if err := d.divide(ctx); err != nil {
			return nil, err
		}
	}
	var err error
	if d.load, err = StartLoad(ctx, c, d.Load); err != nil {
		return nil, err
	}
	defer d.load.Close()
	if d.shelf != nil {
		defer func() { d.shelf.stop() }() // which start replaces
		if err := d.shelf.start(d.load); err != nil {
			return nil, err
		}
	}
	d.Live.enter(PhaseLoad)
	if err := rest(ctx, max(cfg.Warm, d.shelf.warm())); err != nil {
		return nil, err
	}
	if err := d.steady(ctx, d.survey.healthy); err != nil {
		return nil, err
	}
	if err := rest(ctx, surveyEvery); err != nil { // until what the look cost is over
		return nil, err
	}
	return d.play(ctx, sc)
}

// play breaks the cluster while the membership and the leases are looked at.
func (d *drill) play(ctx context.Context, sc Scenario) (*Result, error) {
	look, cancel := context.WithCancel(context.Background())
	defer cancel()
	var follower sync.WaitGroup
	follower.Go(func() { d.survey.follow(look) })

	watched, stop := context.WithCancel(ctx)
	var failed error
	for played := 0; failed == nil && played < max(d.Times, 1); played++ {
		d.Live.enter(PhaseFault)
		failed = sc.Run(watched, &Scene{Cluster: d.Cluster, Lease: d.lease, timeline: d.timeline, drill: d})
		if failed == nil {
			d.Live.enter(PhaseSettling)
			d.served[0] = d.timeline.clock.Now()
			failed = rest(ctx, d.Settle)
			d.served[1] = d.timeline.clock.Now()
		}
	}
	stop()
	d.watches.Wait()
	d.load.End()
	account, unknown := d.accounts(ctx, sc)
	audit := d.audit(ctx)
	reading, examples := d.shelf.end(d.load)
	d.survey.events(context.WithoutCancel(ctx), sc.Sets > 0)
	cancel()
	follower.Wait()
	if len(d.faults) == 0 {
		return nil, failed
	}
	r := d.measure(sc)
	r.Account = account
	r.Reading, r.Examples = reading, append(r.Examples, examples...)
	err := errors.Join(r.broken(), failed, unknown, audit, account.err(), spread(r.Sets))
	if sc.Sets > 0 && failed == nil {
		err = errors.Join(err, d.CheckSets(ctx))
	}
	return r, err
}

// audit asks for what an exact space holds at the end.
func (d *drill) audit(ctx context.Context) (err error) {
	if d.onces != nil {
		d.logs, err = d.onces.Audit(ctx, d.load)
	}
	return err
}

// prepare looks at the cluster, and refuses one that is not healthy.
func (d *drill) prepare(ctx context.Context) error {
	survey, err := newSurvey(d.Role(alloc), d.Load.Space, d.timeline)
	if err != nil {
		return err
	}
	d.survey = survey
	if err := d.steady(ctx, d.even); err != nil {
		survey.close()
		return err
	}
	call, done := context.WithTimeout(ctx, surveyTimeout)
	defer done()
	if d.kept, err = openRegisters(call, d.Cluster); err != nil {
		survey.close()
		return fmt.Errorf("%w: %w", ErrUnhealthy, err)
	}
	if err := d.kept.of(d.id); err != nil {
		survey.close()
		d.kept.close()
		return err
	}
	return nil
}

// steady waits a little until the cluster is as it should be: nodes of a young one may
// not know each other yet, and the membership may be wrong for a moment. The error is
// the last of check.
func (d *drill) steady(ctx context.Context, check func(context.Context) error) error {
	patience := steadyPatience
	if d.Own != nil {
		patience = d.Patience
	}
	deadline := time.Now().Add(patience)
	for checks := 1; ; checks++ {
		err := check(ctx)
		if err == nil || checks >= leastChecks && time.Now().After(deadline) {
			return err
		}
		if err := rest(ctx, surveyEvery/4); err != nil {
			return err
		}
	}
}

// even is nil if the cluster is healthy and each of its AllocSvr owns something.
func (d *drill) even(ctx context.Context) error {
	first := d.survey.allocs[0].Name
	if err := d.survey.healthy(ctx); err != nil {
		if d.Own != nil && errors.Is(err, errFrozen) {
			// A cluster that starts on a busy machine may look as if it lost nodes.
			_, _ = pb.NewAdminClient(d.survey.conns[first]).Rebalance(ctx, &pb.RebalanceRequest{})
		}
		return err
	}
	t, space, err := d.survey.table(ctx)
	if err != nil {
		return err
	}
	status, err := d.survey.status(ctx, first, true)
	if err != nil {
		return err
	}
	d.mode = space.Mode
	d.callIn(*space)
	d.id, d.lease = status.GetClusterId(), time.Duration(status.GetLeaseUs())*time.Microsecond
	if d.Own == nil {
		return nil
	}
	for _, n := range ofSet(d.survey.allocs, sets.RootName) {
		if i := t.Index(n.Name); i < 0 || len(ownedBy(t, i)) == 0 {
			return fmt.Errorf("%w: %s has no sections yet", ErrUnhealthy, n.Name)
		}
	}
	return nil
}

// callIn has the load make the calls that the space is for.
func (d *drill) callIn(space seq.Space) {
	if d.shelf == nil && space.Tickets > 0 {
		d.shelf = newShelf(space, d.Patience)
		d.Load.Kinds = []Kind{d.shelf.kind()}
	}
	if d.onces == nil && space.Mode == seq.Exact {
		d.onces = NewOnces(space, d.Patience)
		d.onces.shelf = d.shelf
		d.Load.Kinds = []Kind{d.onces.Kind(100)}
	}
}

// victims are the node asked for, or the first of the roles, AllocSvr with most sections
// before others: their loss is felt most.
func (d *drill) victims(ctx context.Context, count int, roles ...localcluster.Role) ([]string, error) {
	list := names(d.Role(roles...))
	if d.Node != "" {
		return []string{d.Node}, known(d.Node, list)
	}
	if len(roles) == 1 && roles[0] == alloc {
		t, _, err := d.survey.table(ctx)
		if err != nil {
			return nil, err
		}
		list = d.busiest(t)
	}
	if d.OnEtcd() && len(roles) == 1 && roles[0] == store { // the leader is for drills of its own
		leader, err := leading(ctx, &Scene{Cluster: d.Cluster, drill: d})
		if err != nil {
			return nil, err
		}
		list = append(slices.DeleteFunc(list, func(name string) bool { return name == leader[0] }), leader...)
	}
	return list[:min(count, len(list))], nil
}

// busiest are the AllocSvr, those with most sections in front.
func (d *drill) busiest(t *seq.RouteTable) []string {
	list := names(d.Role(alloc))
	slices.SortStableFunc(list, func(a, b string) int { return len(ownedBy(t, t.Index(b))) - len(ownedBy(t, t.Index(a))) })
	return list
}

func ownedBy(t *seq.RouteTable, node int) (ids []seq.SectionID) {
	for id, p := range t.Sections {
		if node >= 0 && int(p.Owner) == node {
			ids = append(ids, seq.SectionID(id))
		}
	}
	return ids
}

// watchLeases follows one section of each node for each of its first standbys, and tells
// which UIDs are theirs.
func (d *drill) watchLeases(ctx context.Context, nodes []string) (theirs func(seq.UID) bool, err error) {
	t, space, err := d.survey.table(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range nodes {
		i := t.Index(name)
		if i < 0 {
			return nil, fmt.Errorf("%w: %s is not in the route table", ErrUnhealthy, name)
		}
		w := &watch{places: d.kept, timeline: d.timeline, node: name, session: uint64(t.Nodes[i].Session),
			names: d.survey.name, since: d.timeline.clock.Now()}
		seen := map[int16]bool{}
		for _, id := range ownedBy(t, i) {
			if standby := t.Sections[id].Standby; !seen[standby] {
				seen[standby] = true
				w.sections = append(w.sections, id)
			}
		}
		if len(w.sections) > 0 {
			d.watches.Go(func() { w.follow(ctx) })
		}
		d.survey.avoid(name)
	}
	return func(uid seq.UID) bool {
		owner, _ := t.Owner(space.SectionOf(uid))
		return slices.Contains(nodes, owner.Name)
	}, nil
}
