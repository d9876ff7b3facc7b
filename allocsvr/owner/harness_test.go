package owner

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/arbiter"
	"github.com/seqsvr/seqsvr/allocsvr/handover"
	"github.com/seqsvr/seqsvr/allocsvr/nodes"
	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/allocsvr/ownership/ownershiptest"
	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/base/counters"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

// owned is an Owner whose node owns section 0, without a goroutine of its own: its stores,
// its lease, its peers and its clock do what the test says and when.
type owned struct {
	*Owner
	away  *giver // the Owner as one that gives
	t     testing.TB
	clock *clock.Manual
	regs  *ownershiptest.Registers
	peers *scriptedPeers
	c     *section.Section
	epoch seq.Epoch
}

var ownerSession, otherSession = sessiontest.Session(0xa), sessiontest.Session(0xb)

const (
	ownerStep  = 100
	ownerLease = time.Second
)

// alone is a section.Redirector of a node that has its quorum, and knows of no other node.
type alone struct{}

func (alone) Quorum() error                        { return nil }
func (alone) FailFast() error                      { return nil }
func (alone) NotOwner(seq.SectionID, string) error { return seq.ErrNotOwner }

// newOwner owns the one section from base 0 with ownerStep numbers confirmed, leased for
// ownerLease from now.
func newOwner(t testing.TB) *owned {
	t.Helper()
	return newOwnerOf(t, 1)
}

// newOwnerOf owns section 0 of some.
func newOwnerOf(t testing.TB, sections uint32) *owned {
	t.Helper()
	m, err := seq.NewMapping(seq.Space{Name: "user", Sections: sections, Step: ownerStep})
	if err != nil {
		t.Fatal(err)
	}
	o := &owned{t: t, clock: clock.NewManual(time.Hour), regs: &ownershiptest.Registers{}, peers: &scriptedPeers{},
		epoch: seq.Epoch{Round: 7, Session: ownerSession}}
	log := slog.New(slog.DiscardHandler)
	holder := &ownership.Holder{Session: ownerSession, Registers: o.regs, Leases: ownershiptest.Leases{}}
	table, err := section.New(section.Config{Mapping: m, Holder: holder, Lease: ownerLease, Guide: alone{}, Lost: func() {},
		Clock: o.clock, Wall: time.Now, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	sessions := func() []quorum.SessionView { return o.sessions.Sessions() }
	known := nodes.New(nodes.Config{Self: quorum.SessionView{Session: ownerSession, Name: "a", Addr: "a"}, Sessions: sessions, Lease: ownerLease, Clock: o.clock})
	routes := arbiter.NewRoutes(arbiter.RoutesConfig{Name: "a", Session: ownerSession, Mapping: m,
		Heard: func() uint64 { return 0 }, Clock: o.clock, Wall: time.Now, Logger: log})
	lease := arbiter.NewLease(holder, log)
	o.Owner = New(Config{Name: "a", Cluster: "c1", Secret: sessiontest.SecretOf(ownerSession), Lease: ownerLease, Sections: table, Holder: holder,
		Sessions: ownershiptest.Leases{}, Nodes: known, Routes: routes, ArbiterLease: lease, Peers: o.peers, Record: &scriptedRecord{},
		Fail: func(err error) { t.Error(err) }, Clock: o.clock, Logger: log})
	o.away, o.c = &giver{o.Owner}, table.Section(0)
	o.c.Begin()
	o.c.Expect(o.epoch)
	if ok, err := table.Install(0, o.epoch, counters.New(0), ownerStep, &ownershiptest.Lease{End: o.clock.Now() + ownerLease}); !ok || err != nil {
		t.Fatalf("install: %v, %v", ok, err)
	}
	return o
}

// take begins a request for n numbers of uid 1.
func (o *owned) take(n uint32) *section.Taking {
	return o.sections.Begin(o.c.Space(), seq.PlainAll(1), []uint32{n})
}

// must takes n numbers of uid 1 that are there at once.
func (o *owned) must(n uint32) (last uint64) {
	o.t.Helper()
	t := o.take(n)
	if !t.Settled() {
		o.t.Fatalf("%d numbers are not there at once", n)
	}
	return t.Out().Last[0]
}

// refused returns the error of a request that waits for nothing; a wait ends at once.
func (o *owned) refused(t *section.Taking) error {
	o.t.Helper()
	ctx, cancel := context.WithCancel(o.t.Context())
	cancel()
	t.Settle(ctx)
	if len(t.Out().Faults) == 0 {
		o.t.Errorf("got %d to %d, want a refusal", t.Out().First[0], t.Out().Last[0])
		return nil
	}
	return t.Out().Faults[0].Err
}

// scriptedRecord is the record of a Set, at stores that always answer.
type scriptedRecord struct{ now sets.Record }

func (r *scriptedRecord) Known() sets.Record                        { return r.now }
func (r *scriptedRecord) Load(context.Context) (sets.Record, error) { return r.now, nil }
func (r *scriptedRecord) Look()                                     {}
func (r *scriptedRecord) Step(_ context.Context, s sets.Step, ranges []sets.Range) (now sets.Record, err error) {
	r.now, _, err = r.now.Apply(s, ranges)
	return r.now, err
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
