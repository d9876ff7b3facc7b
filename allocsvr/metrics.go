package allocsvr

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seqsvr/seqsvr/internal/process/telemetry"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

var (
	mDesired    = telemetry.Gauge("alloc_sections_desired", "Sections that the route table gives to this node.")
	mTogether   = telemetry.Gauge("route_table_sections_one_zone", "Sections whose standby is in the zone of their owner, though the route table has nodes of another.")
	mStepsSent  = telemetry.Counter("alloc_register_writes_total", "Writes to registers by their outcome at the quorum.", "kind", "op", "outcome")
	mWriteTook  = telemetry.Distribution("alloc_register_write_seconds", "How long one write of a group of registers took at the quorum.", "kind", "op")
	mWriteGroup = telemetry.Distribution("alloc_register_write_registers", "Registers in one write.", "kind", "op")
	mTakeovers  = telemetry.Counter("alloc_takeovers_total", "Sections taken over from a node that was gone.")
	mPreempted  = telemetry.Counter("alloc_preempted_sections_total", "Sections of strict and exact spaces taken over from a silent node whose lease still ran.")
	mSuspicions = telemetry.Counter("alloc_suspicions_total", "Times that this node took another for silent.")
	mWrong      = telemetry.Counter("alloc_false_suspicions_total", "Suspicions of nodes that were only late.")
	mHandoffs   = telemetry.Counter("alloc_handoffs_total", "Sections handed over in order.")
	mLease      = telemetry.Gauge("alloc_lease_seconds", "Length of the lease that this node asks for.")
	mStores     = telemetry.Gauge("alloc_stores", "Stores by what they are to this node: all, needed for a write, answered within the lease.", "what")
	mStoreClock = telemetry.Gauge("alloc_store_clock_ahead_seconds", "By how much a store's clock is ahead of the time that W stores have reached.", "store")
	mSessions   = telemetry.Gauge("alloc_sessions", "Sessions of AllocSvr that the stores tell of.", "state")
	mTable      = telemetry.Gauge("route_table_version", "Version of the route table that this process goes by; 0: none yet.")
	mFrozen     = telemetry.Gauge("route_table_frozen", "1 while the arbiter plans nothing because too many nodes are suspect.")
	mClockAhead = telemetry.Gauge("alloc_clock_ahead_seconds", "How far this node's clock is ahead of those that the stores go by; negative: behind. Absent while that is not known.")
	mArbiter    = telemetry.Gauge("alloc_arbiter", "1 on the node that plans the route table.")
)

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

// Prepare implements ownership.Registers.
func (m *measured) Prepare(ctx context.Context, session seq.Session, items []quorum.PrepareItem) []quorum.Outcome {
	begun := time.Now()
	out := m.Group.Prepare(ctx, session, items)
	m.prepare.count(begun, out)
	return out
}

// Step implements ownership.Registers.
func (m *measured) Step(ctx context.Context, session seq.Session, items []quorum.StepItem) []quorum.Outcome {
	begun := time.Now()
	out := m.Group.Step(ctx, session, items)
	m.step.count(begun, out)
	return out
}

// preempting are the registers of a measured as a session asks for them that preempts.
type preempting struct{ *measured }

// Probe implements ownership.Registers.
func (p preempting) Probe(ctx context.Context, session seq.Session, regs []seq.Register) []quorum.Outcome {
	return quorum.Preempting{Group: p.Group}.Probe(ctx, session, regs)
}

// Prepare implements ownership.Registers.
func (p preempting) Prepare(ctx context.Context, session seq.Session, items []quorum.PrepareItem) []quorum.Outcome {
	begun := time.Now()
	out := quorum.Preempting{Group: p.Group}.Prepare(ctx, session, items)
	p.prepare.count(begun, out)
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
	telemetry.SendAuth(ch, s.cfg.Guard)
	telemetry.SendRefused(ch, s.cfg.Refused)
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

// Send sends the metrics of a node.
func (n *Node) Send(ch chan<- prometheus.Metric) {
	n.alloc.send(ch)
	for store, ahead := range n.leases.ClockOffsets() {
		mStoreClock.Send(ch, ahead.Seconds(), store)
	}
	if ahead, known := n.leases.ClockAhead(); known {
		mClockAhead.Send(ch, ahead.Seconds())
	}
	if n.pings != nil {
		mSuspicions.Send(ch, float64(n.pings.suspicions.Load()))
		mWrong.Send(ch, float64(n.pings.wrong.Load()))
	}
	n.limits.Send(ch)
	for _, m := range n.measured {
		m.send(ch)
	}
	for _, e := range n.endpoints {
		e.Send(ch)
	}
}

// errNoStores: the process has not found a quorum of stores yet.
var errNoStores = errors.New("looking for a quorum of stores")

// Ready returns nil while this node serves all its sections, and otherwise the reason why not: no quorum,
// no route table, no lease, or leaving.
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
