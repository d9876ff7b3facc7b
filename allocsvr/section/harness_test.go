package section

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/allocsvr/ownership/ownershiptest"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/base/counters"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

var ownSession, otherSession = sessiontest.Session(0xa), sessiontest.Session(0xb)

const (
	ownerStep  = 100
	ownerLease = time.Second
)

// alone is a Guide of a node that has its quorum, and knows of no other node.
type alone struct{}

func (alone) Quorum() error                        { return nil }
func (alone) FailFast() error                      { return nil }
func (alone) NotOwner(seq.SectionID, string) error { return seq.ErrNotOwner }

// configOf returns the Config of a Table whose session is ownSession.
func configOf(m seq.Mapping, regs ownership.Registers, c clock.Clock) Config {
	return Config{Mapping: m, Holder: &ownership.Holder{Session: ownSession, Registers: regs, Leases: ownershiptest.Leases{}}, Lease: ownerLease,
		Guide: alone{}, Lost: func() {}, Clock: c, Wall: time.Now, Logger: slog.New(slog.DiscardHandler)}
}

// owned is a Table that owns section 0, without a goroutine of its own: its stores, its
// lease and its clock do what the test says and when.
type owned struct {
	*Table
	t     testing.TB
	clock *clock.Manual
	regs  *ownershiptest.Registers
	hold  *ownershiptest.Lease
	c     *Section
	epoch seq.Epoch
}

// newOwner owns section 0 from base 0 with ownerStep numbers confirmed, leased for
// ownerLease from now.
func newOwned(t *testing.T) *owned {
	t.Helper()
	return newOwnedOf(t, seq.Space{Name: "user", Sections: 1, Step: ownerStep})
}

func newOwnedOf(t testing.TB, space seq.Space) *owned {
	t.Helper()
	m, err := seq.NewMapping(space)
	if err != nil {
		t.Fatal(err)
	}
	o := &owned{t: t, clock: clock.NewManual(time.Hour), regs: &ownershiptest.Registers{}, epoch: seq.Epoch{Round: 7, Session: ownSession}}
	if o.Table, err = New(configOf(m, o.regs, o.clock)); err != nil {
		t.Fatal(err)
	}
	o.c = o.Section(0)
	o.own(0, ownerStep)
	return o
}

// own acquires the section: the stores have confirmed the ceiling under the epoch.
func (o *owned) own(base, confirmed uint64) {
	o.t.Helper()
	o.hold = o.ownAt(o.c.id, base, confirmed)
}

func (o *owned) ownAt(id seq.SectionID, base, confirmed uint64) *ownershiptest.Lease {
	o.t.Helper()
	hold := &ownershiptest.Lease{End: o.clock.Now() + ownerLease}
	c := o.Section(id)
	c.Begin()
	c.Expect(o.epoch)
	if ok, err := o.Install(id, o.epoch, counters.New(base), confirmed, hold); !ok || err != nil {
		o.t.Fatalf("install: %v, %v", ok, err)
	}
	return hold
}

// take begins a request for n numbers of uid 1.
func (o *owned) take(n uint32) *Taking {
	return o.Begin(o.c.space, seq.PlainAll(1), []uint32{n})
}

// must takes n numbers of uid 1 that are there at once.
func (o *owned) must(n uint32) (last uint64) {
	o.t.Helper()
	t := o.take(n)
	if !t.Settled() {
		o.t.Fatalf("%d numbers are not there at once", n)
	}
	return t.out.Last[0]
}

// refused returns the error of a request that waits for nothing; a wait ends at once.
func (o *owned) refused(t *Taking) error {
	o.t.Helper()
	ctx, cancel := context.WithCancel(o.t.Context())
	cancel()
	t.Settle(ctx)
	if len(t.out.Faults) == 0 {
		o.t.Errorf("got %d to %d, want a refusal", t.out.First[0], t.out.Last[0])
		return nil
	}
	return t.out.Faults[0].Err
}

// step sends what the stepper was asked for and returns what it will repeat.
func (o *owned) step() []rising {
	o.t.Helper()
	told, again := o.stepper.Flush(o.t.Context())
	if told == 0 {
		o.t.Fatal("no step was asked for")
	}
	return again
}

func (o *owned) confirmed() uint64 {
	o.c.mu.Lock()
	defer o.c.mu.Unlock()
	return o.c.confirmed
}

// ownedOfAll owns every section, with all numbers confirmed.
func ownedOfAll(t testing.TB, sections uint32) *owned {
	t.Helper()
	o := newOwnedOf(t, seq.Space{Name: "user", Sections: sections, Step: ownerStep})
	o.c.Drop(o.epoch, "")
	for id := range seq.SectionID(sections) {
		o.ownAt(id, 0, uint64(seq.MaxSeq))
	}
	return o
}

// newCell is a section without a table.
func newCell(id seq.SectionID, space *seq.Space) *Section {
	c := new(Section)
	c.init(id, space, &memory{budget: unbounded})
	return c
}
