package arbiter

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/arbiter/placement"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Config holds the parts of an Arbiter. All fields are required.
type Config struct {
	Name     string     // of this node
	Weight   uint32     // of this node
	Zone     string     // of this node; may be empty
	Expect   int        // how many nodes the first table waits for
	Sections func() int // of the mapping that this node knows
	Routes   *Routes
	Lease    *Lease
	Term     time.Duration // how long a lease lasts
	// Present returns the live nodes by name. This node is among them.
	Present func() map[string]quorum.SessionView
	// Awaited reports whether a node of the table that is not alive is likely to come.
	Awaited func(name string, now time.Duration) bool
	// Leaving reports whether this node plans no longer.
	Leaving func() bool
	Clock   clock.Clock
	Logger  *slog.Logger
}

// Arbiter plans the owners of sections while this node holds the arbiter's lease. It calls no other node:
// it writes the route table, and every node follows the table. Safe for concurrent use.
type Arbiter struct {
	cfg     Config
	look    *wake.Signal
	started time.Duration

	mu       sync.Mutex               // of nodes that did not leave
	alive    map[string]spell         // the live nodes
	lost     []loss                   // of nodes that did not leave
	emptying map[string]time.Duration // since when a node is left to empty itself
}

// New makes an Arbiter that has seen no node yet.
func New(cfg Config) *Arbiter {
	return &Arbiter{cfg: cfg, look: wake.New(), started: cfg.Clock.Now(), alive: make(map[string]spell),
		emptying: make(map[string]time.Duration)}
}

// Look has Run look soon: a node came or went, or the table changed.
func (r *Arbiter) Look() { r.look.Kick() }

// emptyPatience is the time that a drained or leaving node has to hand over its sections before a new table
// takes them away.
const emptyPatience = 10 * time.Second

// leftToItself reports whether a live node that is drained or leaves still has sections, and time to hand
// them over. Its own hand-over disturbs callers less than a new table does.
func (r *Arbiter) leftToItself(t *seq.RouteTable, now time.Duration) bool {
	live := r.cfg.Present()
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

// loss is a node that was lost without leaving.
type loss struct {
	node string
	at   time.Duration
}

// defaultWeight is the weight of a node that has not written its own into the table.
const defaultWeight = 100

// Pauses of the arbiter. Tick is the time between two looks.
const (
	Tick         = 200 * time.Millisecond
	firstTable   = 3 * time.Second  // how long the first table waits for ExpectAllocs
	lossMemory   = time.Minute      // for mass suspicion
	planDeadline = 10 * time.Second // one plan and its write
)

// Run watches, and plans while this node is the arbiter, until ctx ends.
func (r *Arbiter) Run(ctx context.Context) {
	pause := time.Duration(0)
	for r.look.Wait(ctx, pause) {
		pause = Tick
		if r.cfg.Leaving() {
			continue
		}
		r.watch(r.cfg.Clock.Now())
		r.tellSelf(ctx)
		if !r.elected(ctx, &pause) {
			continue
		}
		if err := r.plan(ctx, false); err != nil && ctx.Err() == nil {
			r.cfg.Logger.Warn("arbiter could not write the route table", "error", err)
		}
	}
}

// tellSelf writes this node's weight and zone into the table, where the arbiter reads them.
func (r *Arbiter) tellSelf(ctx context.Context) {
	differs := func(t *seq.RouteTable) int {
		if i := t.Index(r.cfg.Name); i >= 0 && (t.Nodes[i].Weight != r.cfg.Weight || t.Nodes[i].Zone != r.cfg.Zone) {
			return i
		}
		return seq.NoNode
	}
	if t := r.cfg.Routes.Table(); t == nil || differs(t.RouteTable) < 0 {
		return
	}
	_, err := r.cfg.Routes.Change(ctx, func(t *seq.RouteTable) (events []Event, err error) {
		i := differs(t)
		if i < 0 {
			return nil, ErrUnchanged
		}
		if t.Nodes[i].Weight != r.cfg.Weight {
			events = append(events, Event{Kind: "weight", Subject: r.cfg.Name, Reason: "configured"})
		}
		if t.Nodes[i].Zone != r.cfg.Zone {
			events = append(events, Event{Kind: "zone", Subject: r.cfg.Name, Reason: fmt.Sprintf("configured: %q", r.cfg.Zone)})
		}
		t.Nodes[i].Weight, t.Nodes[i].Zone = r.cfg.Weight, r.cfg.Zone
		return events, nil
	})
	if err != nil && ctx.Err() == nil {
		r.cfg.Logger.Debug("weight and zone not written", "error", err)
	}
}

// elected reports whether this node is the arbiter. If no node is the arbiter, this node tries to become
// it.
func (r *Arbiter) elected(ctx context.Context, pause *time.Duration) bool {
	if r.cfg.Lease.Held(r.cfg.Clock.Now()) {
		return true
	}
	if r.cfg.Lease.Owned() {
		return false // ours, the lease is still to come or has lapsed for now
	}
	ok, after := r.cfg.Lease.Acquire(ctx)
	if ok {
		r.cfg.Logger.Info("arbiter's lease acquired")
		*pause = time.Millisecond
		return false
	}
	if after > 0 {
		*pause = min(max(after, time.Millisecond), r.cfg.Term)
	}
	return false
}

// watch records since when each node is alive, and when nodes were lost. A session that ends before its
// lease was ended on purpose, because its node left or a supervisor knew of its death. Such an end is not
// suspicious.
func (r *Arbiter) watch(now time.Duration) {
	live := r.cfg.Present()
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
			r.lost = append(r.lost, loss{name, now})
		}
	}
	for len(r.lost) > 0 && now-r.lost[0].at > lossMemory {
		r.lost = r.lost[1:]
	}
}

// losses returns the number of nodes lost lately. If three zones are known, the loss of nodes in one zone
// counts as one loss, because zones are named for failing as a whole. A network that fails around the
// arbiter takes nodes of several zones. Needs r.mu.
func (r *Arbiter) losses(t *seq.RouteTable) int {
	if len(t.Zones()) < 3 {
		return len(r.lost)
	}
	zones := map[string]bool{}
	for _, l := range r.lost {
		i := t.Index(l.node)
		if i < 0 || t.Nodes[i].Zone == "" {
			return len(r.lost)
		}
		zones[t.Nodes[i].Zone] = true
	}
	if len(zones) == 1 {
		return 1
	}
	return len(r.lost)
}

// aliveFor returns the time since watch first saw the session alive, or zero if watch has not seen it.
// Needs r.mu.
func (r *Arbiter) aliveFor(name string, s seq.Session, now time.Duration) time.Duration {
	if spell, ok := r.alive[name]; ok && spell.session == s {
		return now - spell.since
	}
	return 0
}

// plan writes the next table if there is anything to change.
func (r *Arbiter) plan(ctx context.Context, force bool) error {
	ctx, cancel := context.WithTimeout(ctx, planDeadline)
	defer cancel()
	if t := r.cfg.Routes.Table(); t != nil && !force {
		if r.leftToItself(t.RouteTable, r.cfg.Clock.Now()) {
			return nil
		}
		if next, _ := placement.Plan(r.input(t.RouteTable, false)); next == nil {
			return nil
		}
	}
	_, err := r.cfg.Routes.Change(ctx, func(t *seq.RouteTable) ([]Event, error) {
		if t.Version == 0 && !r.enough() {
			return nil, ErrUnchanged
		}
		next, changes := placement.Plan(r.input(t, force))
		if next == nil {
			return nil, ErrUnchanged
		}
		*t = *next
		return toEvents(changes), nil
	})
	return err
}

// enough reports whether the first table can be written now.
func (r *Arbiter) enough() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.alive) >= r.cfg.Expect || r.cfg.Clock.Now() > r.started+firstTable
}

func (r *Arbiter) input(t *seq.RouteTable, force bool) placement.Input {
	now := r.cfg.Clock.Now()
	live := r.cfg.Present()
	r.mu.Lock()
	defer r.mu.Unlock()
	weight := func(name string) uint32 {
		if i := t.Index(name); name != r.cfg.Name && i >= 0 {
			return t.Nodes[i].Weight
		} else if name == r.cfg.Name {
			return r.cfg.Weight
		}
		return defaultWeight
	}
	zone := map[string]string{r.cfg.Name: r.cfg.Zone} // the table has the zones of the other nodes
	if force {
		r.lost = nil
	}
	// The writer of the table may know spaces that this node does not know.
	sections := max(r.cfg.Sections(), len(t.Sections))
	in := placement.Input{
		Config: placement.Config{Budget: max(1, sections/2)},
		Table:  t, Sections: sections, Force: force,
		LostWithinMinute: r.losses(t), KnownNodes: max(len(t.Nodes), len(live)),
	}
	for name, s := range live {
		in.Live = append(in.Live, placement.Node{
			Name: name, Addr: s.Addr, Session: s.Session, Weight: weight(name), Zone: zone[name], AliveFor: r.aliveFor(name, s.Session, now)})
	}
	for _, n := range t.Nodes { // at the start of a cluster, owners may still come
		if _, ok := live[n.Name]; !ok && r.cfg.Awaited(n.Name, now) {
			in.Live = append(in.Live, placement.Node{Name: n.Name, Addr: n.Addr, Session: n.Session, Weight: n.Weight, Awaited: true})
		}
	}
	return in
}

func toEvents(changes []placement.Change) []Event {
	events := make([]Event, 0, len(changes))
	for _, c := range changes {
		events = append(events, Event{Kind: c.Kind, Subject: c.Subject, Reason: c.Reason})
	}
	return events
}
