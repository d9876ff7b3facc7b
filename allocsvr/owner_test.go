package allocsvr

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/counters"
	"github.com/seqsvr/seqsvr/allocsvr/handover"
	"github.com/seqsvr/seqsvr/allocsvr/tenure"
	"github.com/seqsvr/seqsvr/internal/clock"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/sessiontest"
)

// owner is an Alloc that owns one section, without a goroutine of its own: its stores,
// its lease, its peers and its clock do what the test says and when.
type owner struct {
	*Alloc
	t     testing.TB
	clock *clock.Manual
	regs  *scriptedRegisters
	peers *scriptedPeers
	hold  *scriptedHold
	c     *cell
	epoch seq.Epoch
}

var ownerSession, otherSession = sessiontest.Session(0xa), sessiontest.Session(0xb)

const (
	ownerStep  = 100
	ownerLease = time.Second
)

// newOwner owns section 0 from base 0 with ownerStep numbers confirmed, leased for
// ownerLease from now.
func newOwner(t *testing.T) *owner {
	t.Helper()
	return newOwnerOf(t, seq.Space{Name: "user", Sections: 1, Step: ownerStep})
}

func newOwnerOf(t testing.TB, space seq.Space) *owner {
	t.Helper()
	m, err := seq.NewMapping(space)
	if err != nil {
		t.Fatal(err)
	}
	o := &owner{t: t, clock: clock.NewManual(time.Hour), regs: &scriptedRegisters{}, peers: &scriptedPeers{},
		epoch: seq.Epoch{Round: 7, Session: ownerSession}}
	o.Alloc, err = NewAlloc(Parts{Name: "a", Addr: "a", Cluster: "c1", Secret: sessiontest.SecretOf(ownerSession), Lease: ownerLease, Replicas: 3, Needed: 2,
		Mapping: m, Registers: o.regs, Leases: idleLeases{}, Peers: o.peers,
		Clock: o.clock, Wall: time.Now, Logger: slog.New(slog.DiscardHandler), ExpectAllocs: 1, Weight: 100})
	if err != nil {
		t.Fatal(err)
	}
	o.c = o.cells[0]
	o.own(0, ownerStep)
	return o
}

// own acquires the section: the stores have confirmed the ceiling under the epoch.
func (o *owner) own(base, confirmed uint64) {
	o.t.Helper()
	o.hold = &scriptedHold{until: o.clock.Now() + ownerLease}
	o.c.begin()
	o.c.expect(o.epoch)
	if ok, err := o.c.install(o.epoch, counters.New(base), confirmed, o.hold, &o.gone); !ok || err != nil {
		o.t.Fatalf("install: %v, %v", ok, err)
	}
}

// take begins a request for n numbers of uid 1.
func (o *owner) take(n uint32) *taking {
	return o.beginTake(o.c.space, []seq.UID{1}, []uint32{n})
}

// must takes n numbers of uid 1 that are there at once.
func (o *owner) must(n uint32) (last uint64) {
	o.t.Helper()
	t := o.take(n)
	if !t.settled() {
		o.t.Fatalf("%d numbers are not there at once", n)
	}
	return t.out.Last[0]
}

// refused is the error of a request that waits for nothing; a wait ends at once.
func (o *owner) refused(t *taking) error {
	o.t.Helper()
	ctx, cancel := context.WithCancel(o.t.Context())
	cancel()
	t.settle(ctx)
	if len(t.out.Faults) == 0 {
		o.t.Errorf("got %d to %d, want a refusal", t.out.First[0], t.out.Last[0])
		return nil
	}
	return t.out.Faults[0].Err
}

// step sends what the stepper was asked for and returns what it will repeat.
func (o *owner) step() []rising {
	o.t.Helper()
	told, again := o.stepper.Flush(o.t.Context())
	if told == 0 {
		o.t.Fatal("no step was asked for")
	}
	return again
}

func (o *owner) confirmed() uint64 {
	o.c.mu.Lock()
	defer o.c.mu.Unlock()
	return o.c.confirmed
}

// scriptedRegisters answer what the test says, and refuse what it does not speak of.
type scriptedRegisters struct {
	onProbe   func() quorum.Outcome // of every register
	onStep    func(quorum.StepItem) quorum.Outcome
	onRelease func()
	onEnd     func()

	noRelease error              // of every Release
	released  []quorum.LeaseItem // by those that were not refused
}

func (r *scriptedRegisters) Probe(_ context.Context, _ seq.Session, regs []seq.Register) []quorum.Outcome {
	if r.onProbe != nil {
		return slices.Repeat([]quorum.Outcome{r.onProbe()}, len(regs))
	}
	return refusedAll(len(regs))
}

func (r *scriptedRegisters) Prepare(_ context.Context, _ seq.Session, items []quorum.PrepareItem) []quorum.Outcome {
	return refusedAll(len(items))
}

func refusedAll(n int) []quorum.Outcome {
	out := make([]quorum.Outcome, n)
	for i := range out {
		out[i] = quorum.Outcome{State: quorum.Refused, Err: quorum.ErrHeld}
	}
	return out
}

func (r *scriptedRegisters) Step(_ context.Context, _ seq.Session, items []quorum.StepItem) []quorum.Outcome {
	out := make([]quorum.Outcome, len(items))
	for i, item := range items {
		out[i] = r.onStep(item)
	}
	return out
}

func (r *scriptedRegisters) Release(_ context.Context, _ seq.Session, items []quorum.LeaseItem, _ seq.Session) error {
	if r.onRelease != nil {
		r.onRelease()
	}
	if r.noRelease == nil {
		r.released = append(r.released, items...)
	}
	return r.noRelease
}

func (r *scriptedRegisters) EndSession(context.Context, seq.Secret) error {
	if r.onEnd != nil {
		r.onEnd()
	}
	return nil
}

// scriptedPeers take what they are offered.
type scriptedPeers struct {
	gone    seq.Session // refuses: its node is another session by now
	to      seq.Session // of the last offer
	offered []handover.Sealed
}

func (p *scriptedPeers) Offer(_ context.Context, _ string, to seq.Session, sections []handover.Sealed) error {
	p.to = to
	if to == p.gone {
		return seq.ErrNodeUnfit
	}
	p.offered = append(p.offered, sections...)
	return nil
}

func (p *scriptedPeers) Take(_ context.Context, _ string, _ seq.Session, ids []seq.SectionID) ([]seq.SectionID, error) {
	return ids, nil
}

// scriptedHold is a lease that ends when the test says.
type scriptedHold struct {
	until   time.Duration
	dropped bool
}

func (h *scriptedHold) Until() time.Duration   { return h.until }
func (h *scriptedHold) Drop()                  { h.until, h.dropped = 0, true }
func (h *scriptedHold) Ready() <-chan struct{} { return nil }

// idleLeases know of nobody; the stores all answer.
type idleLeases struct{}

func (idleLeases) Attach(seq.Register, uint64) tenure.Hold { return &scriptedHold{} }
func (idleLeases) Kick()                                   {}
func (idleLeases) Sessions() []quorum.SessionView          { return nil }
func (idleLeases) RouteVersion() uint64                    { return 0 }
func (idleLeases) Connected() int                          { return 3 }
