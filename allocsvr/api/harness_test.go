package api

import (
	"log/slog"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/arbiter"
	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/allocsvr/ownership/ownershiptest"
	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/base/counters"
	"github.com/seqsvr/seqsvr/internal/process/tracing"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

var ownSession, otherSession = sessiontest.Session(0xa), sessiontest.Session(0xb)

const (
	ownerStep  = 100
	ownerLease = time.Second
	patient    = time.Minute // of a request that is to be served on a busy machine
)

// alone is a section.Redirector of a node that has its quorum, and knows of no other node.
type alone struct{}

func (alone) Quorum() error                        { return nil }
func (alone) FailFast() error                      { return nil }
func (alone) NotOwner(seq.SectionID, string) error { return seq.ErrNotOwner }

// service is a Sequence over sections that a test has owned, and a clock of its own.
type service struct {
	*Sequence
	t     testing.TB
	clock *clock.Manual
	hold  *ownershiptest.Lease // of all sections
}

// serving owns no section yet. traces may be nil.
func serving(t testing.TB, space seq.Space, traces *tracing.Tracer) *service {
	t.Helper()
	m, err := seq.NewMapping(space)
	if err != nil {
		t.Fatal(err)
	}
	c, log := clock.NewManual(time.Hour), slog.New(slog.DiscardHandler)
	table, err := section.New(section.Config{Mapping: m, Lease: ownerLease, Guide: alone{}, Lost: func() {}, Clock: c, Wall: time.Now, Logger: log, Traces: traces,
		Holder: &ownership.Holder{Session: ownSession, Registers: &ownershiptest.Registers{}, Leases: ownershiptest.Leases{}}})
	if err != nil {
		t.Fatal(err)
	}
	routes := arbiter.NewRoutes(arbiter.RoutesConfig{Mapping: m, Heard: func() uint64 { return 0 }, Clock: c, Wall: time.Now, Logger: log})
	return &service{Sequence: &Sequence{Sections: table, RouteTable: routes, Limits: NewLimits(0, 0, 0)}, t: t, clock: c, hold: &ownershiptest.Lease{End: c.Now() + ownerLease}}
}

// own has the section owned, with confirmed numbers.
func (s *service) own(id seq.SectionID, confirmed uint64) {
	s.t.Helper()
	c, epoch := s.Sections.Section(id), seq.Epoch{Round: 7, Session: ownSession}
	c.Begin()
	c.Expect(epoch)
	if ok, err := s.Sections.Install(id, epoch, counters.New(0), confirmed, s.hold); !ok || err != nil {
		s.t.Fatalf("install: %v, %v", ok, err)
	}
}
