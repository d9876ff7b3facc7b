package allocsvr

import (
	"log/slog"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/ownership/ownershiptest"
	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/base/counters"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

// owned is an Alloc that owns section 0, without a goroutine of its own: its stores, its
// lease and its clock do what the test says and when.
type owned struct {
	*Alloc
	clock *clock.Manual
	c     *section.Section
	epoch seq.Epoch
}

var ownerSession = sessiontest.Session(0xa)

const (
	ownerStep  = 100
	ownerLease = time.Second
)

// newOwner owns section 0 from base 0 with ownerStep numbers confirmed, leased for
// ownerLease from now.
func newOwner(t testing.TB) *owned {
	t.Helper()
	m, err := seq.NewMapping(seq.Space{Name: "user", Sections: 1, Step: ownerStep})
	if err != nil {
		t.Fatal(err)
	}
	o := &owned{clock: clock.NewManual(time.Hour), epoch: seq.Epoch{Round: 7, Session: ownerSession}}
	o.Alloc, err = NewAlloc(Parts{Name: "a", Addr: "a", Cluster: "c1", Secret: sessiontest.SecretOf(ownerSession), Lease: ownerLease, Replicas: 3, Needed: 2,
		Mapping: m, Registers: &ownershiptest.Registers{}, Leases: ownershiptest.Leases{},
		Clock: o.clock, Wall: time.Now, Logger: slog.New(slog.DiscardHandler), ExpectAllocs: 1, Weight: 100})
	if err != nil {
		t.Fatal(err)
	}
	o.c = o.sections.Section(0)
	o.c.Begin()
	o.c.Expect(o.epoch)
	if ok, err := o.sections.Install(0, o.epoch, counters.New(0), ownerStep, &ownershiptest.Lease{End: o.clock.Now() + ownerLease}); !ok || err != nil {
		t.Fatalf("install: %v, %v", ok, err)
	}
	return o
}
