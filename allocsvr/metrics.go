package allocsvr

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seqsvr/seqsvr/internal/telemetry"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

var (
	mNumbers    = telemetry.Counter("alloc_numbers_total", "Numbers handed out.", "space")
	mStreamFull = telemetry.Counter("alloc_stream_refused_total", "Calls refused as overloaded because too many of their stream waited.")
	mBatch      = telemetry.Distribution("alloc_batch_keys", "Keys in one batch, one in eight looked at.")
	mTake       = telemetry.Distribution("alloc_take_seconds", "How long a batch took from its arrival to its numbers; of those that need no waiting one in eight is looked at.")
	mSections   = telemetry.Gauge("alloc_sections", "Sections of this node by state; served: owned, and the lease holds.", "state")
	mDesired    = telemetry.Gauge("alloc_sections_desired", "Sections that the route table gives to this node.")
	mCounters   = telemetry.Gauge("alloc_counters", "UIDs in memory.")
	mHeadroom   = telemetry.Distribution("alloc_headroom_ratio", "Numbers left below the confirmed ceiling of each owned section, as a share of its step.")
	mHeadMin    = telemetry.Gauge("alloc_headroom_min_ratio", "The least of those shares; 1 with no owned section.")
	mSteps      = telemetry.Counter("alloc_steps_total", "Sections whose ceiling was moved forward.")
	mStepsSent  = telemetry.Counter("alloc_register_writes_total", "Writes to registers by their outcome at the quorum.", "kind", "op", "outcome")
	mWriteTook  = telemetry.Distribution("alloc_register_write_seconds", "How long one write of a group of registers took at the quorum.", "kind", "op")
	mWriteGroup = telemetry.Distribution("alloc_register_write_registers", "Registers in one write.", "kind", "op")
	mNearEnd    = telemetry.Gauge("alloc_sections_near_end", "Owned sections with less than 2^40 numbers left (near), and with less than a step (spent).", "state")
	mLeft       = telemetry.Gauge("alloc_section_numbers_left", "Numbers left below 2^53-1 above the ceiling of an owned section that is near its end; at most 100 of them.", "space", "section")
	mTakeovers  = telemetry.Counter("alloc_takeovers_total", "Sections taken over from a node that was gone.")
	mHandoffs   = telemetry.Counter("alloc_handoffs_total", "Sections handed over in order.")
	mNacks      = telemetry.Counter("alloc_nacks_total", "Sections lost because a store had promised a higher epoch.")
	mLease      = telemetry.Gauge("alloc_lease_seconds", "Length of the lease that this node asks for.")
	mLeaseLeft  = telemetry.Gauge("alloc_lease_remaining_seconds", "Least remaining lease of all owned sections; 0: some are not served.")
	mStores     = telemetry.Gauge("alloc_stores", "Stores by what they are to this node: all, needed for a write, answered within the lease.", "what")
	mSessions   = telemetry.Gauge("alloc_sessions", "Sessions of AllocSvr that the stores tell of.", "state")
	mTable      = telemetry.Gauge("route_table_version", "Version of the route table that this process goes by; 0: none yet.")
	mFrozen     = telemetry.Gauge("route_table_frozen", "1 while the arbiter plans nothing because too many nodes are suspect.")
	mArbiter    = telemetry.Gauge("alloc_arbiter", "1 on the node that plans the route table.")
)

// sampled is one in how many batches that need no waiting is looked at: reading the
// clock twice for each would be the most expensive thing about many of them.
const sampled = 8

// stats are counted since start.
type stats struct {
	numbers                           []atomic.Uint64 // by space, in the mapping's order
	steps, takeovers, handoffs, nacks atomic.Uint64

	batches *telemetry.Histogram
	takes   *telemetry.Histogram
}

func newStats(spaces int) stats {
	return stats{numbers: make([]atomic.Uint64, spaces), batches: telemetry.Sizes(), takes: telemetry.Durations()}
}

// total is the numbers of all spaces.
func (s *stats) total() (n uint64) {
	for i := range s.numbers {
		n += s.numbers[i].Load()
	}
	return n
}

// sample says whether this batch is looked at.
func (t *taking) sample() {
	if rand.Uint32()%sampled == 0 {
		t.begun, t.weight = time.Now(), sampled
	}
}

// waits is called when the batch cannot be served at once: those are all looked at.
func (t *taking) waits() {
	if t.begun.IsZero() {
		t.begun = time.Now()
	}
	t.weight = 1
}

// observe counts what a batch has taken.
func (t *taking) observe() {
	s := &t.a.stats
	for i := range t.a.mapping.Spaces {
		if t.space == &t.a.mapping.Spaces[i] {
			s.numbers[i].Add(t.numbers)
			break
		}
	}
	if t.weight == 0 {
		return
	}
	s.takes.Add(uint64(time.Since(t.begun)), t.weight)
	s.batches.Add(uint64(len(t.uids)), t.weight)
}

// measured times the writes of one kind of register.
type measured struct {
	*quorum.Group
	kind          string
	prepare, step writes
}

// writes are the writes of one operation.
type writes struct {
	took, group           *telemetry.Histogram
	won, refused, unknown atomic.Uint64
}

func newMeasured(g *quorum.Group, kind string) *measured {
	return &measured{Group: g, kind: kind,
		prepare: writes{took: telemetry.Durations(), group: telemetry.Sizes()},
		step:    writes{took: telemetry.Durations(), group: telemetry.Sizes()}}
}

// Prepare implements tenure.Registers.
func (m *measured) Prepare(ctx context.Context, session seq.Session, items []quorum.PrepareItem) []quorum.Outcome {
	begun := time.Now()
	out := m.Group.Prepare(ctx, session, items)
	m.prepare.count(begun, out)
	return out
}

// Step implements tenure.Registers.
func (m *measured) Step(ctx context.Context, session seq.Session, items []quorum.StepItem) []quorum.Outcome {
	begun := time.Now()
	out := m.Group.Step(ctx, session, items)
	m.step.count(begun, out)
	return out
}

func (w *writes) count(begun time.Time, out []quorum.Outcome) {
	w.took.Observe(time.Since(begun))
	w.group.Add(uint64(len(out)), 1)
	var won, refused uint64
	for i := range out {
		switch out[i].State {
		case quorum.Won:
			won++
		case quorum.Refused:
			refused++
		}
	}
	w.won.Add(won)
	w.refused.Add(refused)
	w.unknown.Add(uint64(len(out)) - won - refused)
}

func (m *measured) send(ch chan<- prometheus.Metric) {
	for op, w := range map[string]*writes{"prepare": &m.prepare, "step": &m.step} {
		mWriteTook.Histogram(ch, w.took, m.kind, op)
		mWriteGroup.Histogram(ch, w.group, m.kind, op)
		mStepsSent.Send(ch, float64(w.won.Load()), m.kind, op, "won")
		mStepsSent.Send(ch, float64(w.refused.Load()), m.kind, op, "refused")
		mStepsSent.Send(ch, float64(w.unknown.Load()), m.kind, op, "unknown")
	}
}

// Describe implements prometheus.Collector; see telemetry.Func.
func (s *Server) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector. Until the stores are reached there is little
// to see.
func (s *Server) Collect(ch chan<- prometheus.Metric) {
	s.calls.Send(ch)
	mLease.Send(ch, s.cfg.Lease.Seconds())
	p := s.parts.Load()
	if p == nil {
		mTable.Send(ch, 0)
		return
	}
	p.Send(ch)
	telemetry.SendMembers(ch, p.view)
	telemetry.SendTraces(ch, s.cfg.Traces)
}

// Send gives the metrics of a node.
func (n *Node) Send(ch chan<- prometheus.Metric) {
	n.alloc.send(ch)
	for _, m := range n.measured {
		m.send(ch)
	}
	for _, e := range n.endpoints {
		e.Send(ch)
	}
}

// errNoStores: the process has not found a quorum of stores yet.
var errNoStores = errors.New("looking for a quorum of stores")

// Ready is nil while this node serves everything that it should, else the reason why
// not: no quorum, no route table, no lease, or leaving.
func (s *Server) Ready() error {
	p := s.parts.Load()
	if p == nil {
		if w := s.waiting.Load(); w != nil {
			return w.reason()
		}
		return fmt.Errorf("%w: %w", seq.ErrNoQuorum, errNoStores)
	}
	return p.Ready()
}

// send gives the state of all sections and the counters.
func (a *Alloc) send(ch chan<- prometheus.Metric) {
	for i := range a.mapping.Spaces {
		mNumbers.Send(ch, float64(a.stats.numbers[i].Load()), a.mapping.Spaces[i].Name)
	}
	telemetry.SendAdmission(ch, a.inWork)
	mStreamFull.Send(ch, float64(a.limits.streamRefused.Load()))
	mBatch.Histogram(ch, a.stats.batches)
	mTake.Histogram(ch, a.stats.takes)
	mSteps.Send(ch, float64(a.stats.steps.Load()))
	mTakeovers.Send(ch, float64(a.stats.takeovers.Load()))
	mHandoffs.Send(ch, float64(a.stats.handoffs.Load()))
	mNacks.Send(ch, float64(a.stats.nacks.Load()))
	a.sendSections(ch)
	a.sendEndings(ch)
	mStores.Send(ch, float64(a.replicas.Load()), "all")
	mStores.Send(ch, float64(a.needed.Load()), "needed")
	mStores.Send(ch, float64(a.leases.Connected()), "answering")
	live, dead := 0, 0
	for _, v := range a.leases.Sessions() {
		if v.Dead {
			dead++
		} else {
			live++
		}
	}
	mSessions.Send(ch, float64(live), "live")
	mSessions.Send(ch, float64(dead), "dead")
	t := a.routes.table()
	mTable.Send(ch, float64(t.version()))
	mFrozen.Flag(ch, t != nil && t.Frozen != "")
	mArbiter.Flag(ch, a.arbiter.lease.held(a.clock.Now()))
	mDesired.Send(ch, float64(a.desired(t)))
}

func (a *Alloc) sendSections(ch chan<- prometheus.Metric) {
	var states [sealed + 1]int
	served, uids := 0, 0
	headroom, least, left := telemetry.Percents(), math.Inf(1), time.Duration(math.MaxInt64)
	now := a.clock.Now()
	for _, c := range a.cells {
		c.mu.Lock()
		states[c.state]++
		if c.state == owned {
			uids += c.table.Len()
			remaining := time.Duration(0)
			if c.hold != nil {
				remaining = max(0, c.hold.Until()-now)
			}
			if remaining > 0 {
				served++
			}
			left = min(left, remaining)
			share := float64(c.confirmed-c.table.High()) / float64(max(c.pace.step, 1))
			least = min(least, share)
			headroom.Add(uint64(100*min(share, 1000)), 1)
		}
		c.mu.Unlock()
	}
	for st, n := range states {
		mSections.Send(ch, float64(n), state(st).String())
	}
	mSections.Send(ch, float64(served), "served")
	mCounters.Send(ch, float64(uids))
	mHeadroom.Histogram(ch, headroom)
	if states[owned] == 0 {
		least, left = 1, 0
	}
	mHeadMin.Send(ch, least)
	mLeaseLeft.Send(ch, left.Seconds())
}
