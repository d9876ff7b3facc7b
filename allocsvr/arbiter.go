package allocsvr

import (
	"context"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/placement"
	"github.com/seqsvr/seqsvr/seq"
)

// arbiter plans who should own what, while this node holds the lease for it. It never
// touches an AllocSvr: it writes the route table, and everybody follows it.
type arbiter struct {
	a      *Alloc
	lease  arbiterLease
	loop   *loop
	expect int
	weight uint32

	mu       sync.Mutex               // guards alive, lost, emptying
	alive    map[string]spell         // the live nodes
	lost     []time.Duration          // when nodes were lost without leaving
	emptying map[string]time.Duration // since when a node is left to empty itself
}

// emptyPatience is how long a node that is drained or leaves is left to hand its sections
// over itself.
const emptyPatience = 10 * time.Second

// leftToItself says whether some live node that is drained or leaves still has sections
// and time to hand them over; its own way of doing so is gentler than a new table.
func (r *arbiter) leftToItself(t *seq.RouteTable, now time.Duration) bool {
	live := r.a.present()
	r.mu.Lock()
	defer r.mu.Unlock()
	left := false
	for _, n := range t.Nodes {
		if s, ok := live[n.Name]; !ok || n.Takes(s.Session) || countOwned(t, n.Name) == 0 {
			delete(r.emptying, n.Name)
			continue
		}
		since, ok := r.emptying[n.Name]
		if !ok {
			since = now
			r.emptying[n.Name] = now
		}
		left = left || now < since+emptyPatience
	}
	return left
}

// spell is a time in which a node was alive as one session.
type spell struct {
	session seq.Session
	since   time.Duration
	freeAt  time.Duration // when its lease would end by what was last heard
}

func newArbiter(a *Alloc, expect int, weight uint32) *arbiter {
	return &arbiter{a: a, lease: arbiterLease{holder: a.holder, log: a.log}, loop: newLoop(), expect: expect, weight: weight, alive: make(map[string]spell),
		emptying: make(map[string]time.Duration)}
}

// defaultWeight is a node's until it has written its own into the table.
const defaultWeight = 100

// Pauses of the arbiter.
const (
	arbiterTick  = 200 * time.Millisecond
	firstTable   = 3 * time.Second  // how long the first table waits for ExpectAllocs
	lossMemory   = time.Minute      // for mass suspicion
	planDeadline = 10 * time.Second // one plan and its write
)

func (r *arbiter) run(ctx context.Context) {
	pause := time.Duration(0)
	for r.loop.wait(ctx, pause) {
		pause = arbiterTick
		if r.a.leaving.Load() {
			continue
		}
		r.watch(r.a.clock.Now())
		r.tellWeight(ctx)
		if !r.elected(ctx, &pause) {
			continue
		}
		if err := r.plan(ctx, false); err != nil && ctx.Err() == nil {
			r.a.log.Warn("arbiter could not write the route table", "error", err)
		}
	}
}

// tellWeight writes this node's own weight into the table, where the arbiter
// reads it.
func (r *arbiter) tellWeight(ctx context.Context) {
	differs := func(t *seq.RouteTable) int {
		if i := t.Index(r.a.name); i >= 0 && t.Nodes[i].Weight != r.weight {
			return i
		}
		return seq.NoNode
	}
	if t := r.a.routes.table(); t == nil || differs(t.RouteTable) < 0 {
		return
	}
	_, err := r.a.changeRoutes(ctx, func(t *seq.RouteTable) ([]event, error) {
		i := differs(t)
		if i < 0 {
			return nil, errUnchanged
		}
		t.Nodes[i].Weight = r.weight
		return []event{{Kind: "weight", Subject: r.a.name, Reason: "configured"}}, nil
	})
	if err != nil && ctx.Err() == nil {
		r.a.log.Debug("weight not written", "error", err)
	}
}

// elected says whether this node is the arbiter, and has it try to be where none is.
func (r *arbiter) elected(ctx context.Context, pause *time.Duration) bool {
	if r.lease.held(r.a.clock.Now()) {
		return true
	}
	if r.lease.owned() {
		return false // ours, the lease is still to come or has lapsed for now
	}
	ok, after := r.lease.acquire(ctx)
	if ok {
		r.a.log.Info("arbiter's lease acquired")
		*pause = time.Millisecond
		return false
	}
	if after > 0 {
		*pause = min(max(after, time.Millisecond), r.a.lease)
	}
	return false
}

// watch keeps since when each node is alive, and when nodes were lost. A session
// that ends before its lease has run out was ended on purpose: its node left, or
// somebody knew of its death; that is nothing to be suspicious of.
func (r *arbiter) watch(now time.Duration) {
	live := r.a.present()
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, s := range live {
		old, ok := r.alive[name]
		if !ok || old.session != s.Session {
			old.since = now
		}
		r.alive[name] = spell{session: s.Session, since: old.since, freeAt: s.FreeAt}
	}
	for name, old := range r.alive {
		if _, ok := live[name]; ok {
			continue
		}
		delete(r.alive, name)
		if now >= old.freeAt {
			r.lost = append(r.lost, now)
		}
	}
	for len(r.lost) > 0 && now-r.lost[0] > lossMemory {
		r.lost = r.lost[1:]
	}
}

// aliveFor is for how long the session has been alive; nothing until watch has seen it.
// Needs r.mu.
func (r *arbiter) aliveFor(name string, s seq.Session, now time.Duration) time.Duration {
	if spell, ok := r.alive[name]; ok && spell.session == s {
		return now - spell.since
	}
	return 0
}

// plan writes the next table if there is anything to change.
func (r *arbiter) plan(ctx context.Context, force bool) error {
	ctx, cancel := context.WithTimeout(ctx, planDeadline)
	defer cancel()
	if t := r.a.routes.table(); t != nil && !force {
		if r.leftToItself(t.RouteTable, r.a.clock.Now()) {
			return nil
		}
		if next, _ := placement.Plan(r.input(t.RouteTable, false)); next == nil {
			return nil
		}
	}
	_, err := r.a.changeRoutes(ctx, func(t *seq.RouteTable) ([]event, error) {
		if t.Version == 0 && !r.enough() {
			return nil, errUnchanged
		}
		next, changes := placement.Plan(r.input(t, force))
		if next == nil {
			return nil, errUnchanged
		}
		*t = *next
		return toEvents(changes), nil
	})
	return err
}

// enough says whether the first table need not wait any longer.
func (r *arbiter) enough() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.alive) >= r.expect || r.a.clock.Now() > r.a.started+firstTable
}

func (r *arbiter) input(t *seq.RouteTable, force bool) placement.Input {
	now := r.a.clock.Now()
	live := r.a.present()
	r.mu.Lock()
	defer r.mu.Unlock()
	weight := func(name string) uint32 {
		if i := t.Index(name); name != r.a.name && i >= 0 {
			return t.Nodes[i].Weight
		} else if name == r.a.name {
			return r.weight
		}
		return defaultWeight
	}
	if force {
		r.lost = nil
	}
	sections := r.a.mapping.Sections()
	in := placement.Input{
		Config: placement.Config{Budget: max(1, sections/2)},
		Table:  t, Sections: sections, Force: force,
		LostWithinMinute: len(r.lost), KnownNodes: max(len(t.Nodes), len(live)),
	}
	for name, s := range live {
		in.Live = append(in.Live, placement.Node{
			Name: name, Addr: s.Addr, Session: s.Session, Weight: weight(name), AliveFor: r.aliveFor(name, s.Session, now)})
	}
	for _, n := range t.Nodes { // at the start of a cluster, owners may still come
		if _, ok := live[n.Name]; !ok && r.a.awaited(n.Name, now) {
			in.Live = append(in.Live, placement.Node{Name: n.Name, Addr: n.Addr, Session: n.Session, Weight: n.Weight, Awaited: true})
		}
	}
	return in
}

func toEvents(changes []placement.Change) []event {
	events := make([]event, 0, len(changes))
	for _, c := range changes {
		events = append(events, event{Kind: c.Kind, Subject: c.Subject, Reason: c.Reason})
	}
	return events
}
