package acceptor

import (
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// model drives an Acceptor through random requests, commits, crashes and time, and
// keeps what an honest session may believe: what it was granted, and until when.
//
// Checked: I1 to I3 on the disk over all crashes; an acknowledged promise or step is
// never taken back; and no Prepare passes while another session may believe in a lease.
type model struct {
	a     *Acceptor
	now   time.Duration
	boot  int
	bound time.Duration
	disk  map[seq.Register]State

	acked   map[seq.Register]State // highest promise and max that anybody was told of
	waiting []func()               // what the answers of the open group will tell

	beliefs map[seq.Session]*belief
}

// belief is one session's view of its leases at the store.
type belief struct {
	boot   int
	until  time.Duration
	leases map[seq.Register]granted
	rounds map[seq.Register]uint64 // highest round ever proposed
	drop   []quorum.LeaseItem
}

type granted struct {
	round uint64
	until time.Duration
}

var (
	modelSessions  = []seq.Session{alice, bob, carol}
	modelRegisters = []seq.Register{section, section1, tag}
)

func newModel(t *rapid.T) *model {
	m := &model{now: time.Hour, disk: map[seq.Register]State{section: {}, section1: {}, seq.RoutesRegister: {}},
		acked: map[seq.Register]State{}, beliefs: map[seq.Session]*belief{}}
	for _, s := range modelSessions {
		m.beliefs[s] = &belief{leases: map[seq.Register]granted{}, rounds: map[seq.Register]uint64{}}
	}
	m.crash(t)
	return m
}

func (m *model) crash(t *rapid.T) {
	a, err := New(Config{Registers: maps.Clone(m.disk), MaxLease: 10 * lease, LeaseBound: m.bound, Start: m.now})
	if err != nil {
		t.Fatal(err)
	}
	m.a, m.waiting = a, nil
	m.boot++
	for r, told := range m.acked {
		if st := m.disk[r]; st.Promised.Less(told.Promised) || st.Max < told.Max {
			t.Fatalf("%s: told of %+v, the disk has %+v", r, told, st)
		}
	}
}

func (m *model) commit(t *rapid.T) {
	for _, c := range m.a.Changes() {
		old := m.disk[c.Register]
		if c.State.Promised.Less(old.Promised) || c.State.Max < old.Max || c.State.Promised.Less(c.State.Accepted) {
			t.Fatalf("%s: %+v after %+v", c.Register, c.State, old)
		}
		m.disk[c.Register] = c.State
	}
	m.a.Committed()
	for _, tell := range m.waiting {
		tell()
	}
	m.waiting = nil
}

func (m *model) tell(r seq.Register, promised seq.Epoch, to uint64) {
	m.waiting = append(m.waiting, func() {
		st := m.acked[r]
		if st.Promised.Less(promised) {
			st.Promised = promised
		}
		st.Max = max(st.Max, to)
		m.acked[r] = st
	})
}

func (m *model) prepare(t *rapid.T) {
	who, r := rapid.SampledFrom(modelSessions).Draw(t, "session"), rapid.SampledFrom(modelRegisters).Draw(t, "register")
	round := m.beliefs[who].rounds[r] + rapid.Uint64Range(0, 3).Draw(t, "ahead")
	if m.beliefs[who].leases[r].round != round { // it gives up what it has before it outruns it
		delete(m.beliefs[who].leases, r)
	}
	advice := m.a.Read(quorum.ReadRequest{Session: who, Registers: []seq.Register{r}}, m.now)[0]
	res, err := m.a.Prepare(quorum.PrepareRequest{Session: who, Items: []quorum.PrepareItem{{Register: r, Round: round, Create: true}}}, m.now)
	if err != nil {
		t.Fatal(err)
	}
	m.beliefs[who].rounds[r] = round
	if advice.Verdict != quorum.VerdictUnknown && res[0].Verdict != quorum.VerdictNack && advice.Verdict != res[0].Verdict {
		t.Fatalf("a read told %v, the prepare met %v", advice.Verdict, res[0].Verdict)
	}
	if res[0].Verdict != quorum.VerdictOK {
		return
	}
	for other, b := range m.beliefs {
		if g, ok := b.leases[r]; ok && other != who && m.now < g.until {
			t.Fatalf("%s: round %d of %v passed, %v has a lease under round %d for %v more", r, round, who, other, g.round, g.until-m.now)
		}
	}
	m.tell(r, seq.Epoch{Round: round, Session: who}, 0)
}

func (m *model) step(t *rapid.T) {
	who, r := rapid.SampledFrom(modelSessions).Draw(t, "session"), rapid.SampledFrom(modelRegisters).Draw(t, "register")
	e := seq.Epoch{Round: m.beliefs[who].rounds[r], Session: who}
	to := rapid.Uint64Range(0, 100).Draw(t, "to")
	res, err := m.a.Step(quorum.StepRequest{Session: who, Items: []quorum.StepItem{{Register: r, Round: e.Round, Max: to}}}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if res[0].Verdict != quorum.VerdictOK {
		return
	}
	m.tell(r, e, to)
	// The proposer has promises of W other stores, so whoever is leased here has no
	// quorum of leases left.
	for other, b := range m.beliefs {
		if other != who {
			delete(b.leases, r)
		}
	}
}

func (m *model) renew(t *rapid.T) {
	who := rapid.SampledFrom(modelSessions).Draw(t, "session")
	b := m.beliefs[who]
	if m.now >= b.until { // by its own clock nothing is leased any more
		clear(b.leases)
	}
	req := quorum.RenewRequest{Session: who, Name: who.String(), Drop: b.drop,
		Lease: rapid.SampledFrom([]time.Duration{lease / 2, lease, 2 * lease}).Draw(t, "lease")}
	asked := map[seq.Register]uint64{}
	for _, r := range modelRegisters {
		if round, ok := b.rounds[r]; ok && rapid.Bool().Draw(t, "attach") {
			asked[r] = round
			req.Attach = append(req.Attach, item(r, round))
		}
	}
	believed := maps.Clone(b.leases)
	for r := range asked {
		believed[r] = granted{}
	}
	req.Attached = uint64(len(believed))
	if req.Lease > m.a.LeaseBound() {
		m.bound = max(m.bound, req.Lease) // as committed by the store before it grants
		m.a.SetLeaseBound(req.Lease)
	}
	reply, err := m.a.Renew(req, m.now)
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range reply.Refused {
		if asked[it.Register] == it.Round {
			delete(asked, it.Register)
		}
	}
	until := m.now + req.Lease
	for r, g := range b.leases {
		switch {
		case reply.Reset || b.boot != m.boot: // granted before, not extended
		case g.until < until:
			b.leases[r] = granted{g.round, until}
		}
	}
	for r, round := range asked {
		b.leases[r] = granted{round, max(until, b.leases[r].until)}
	}
	b.drop = reply.Lost
	for _, it := range reply.Lost {
		if b.leases[it.Register].round == it.Round {
			delete(b.leases, it.Register)
		}
	}
	b.boot, b.until = m.boot, max(b.until, until)
}

func (m *model) release(t *rapid.T) {
	who, r := rapid.SampledFrom(modelSessions).Draw(t, "session"), rapid.SampledFrom(modelRegisters).Draw(t, "register")
	b := m.beliefs[who]
	req := quorum.ReleaseRequest{Session: who, Items: []quorum.LeaseItem{item(r, b.leases[r].round)},
		To: rapid.SampledFrom(append(modelSessions, 0)).Draw(t, "to")}
	delete(b.leases, r)
	b.rounds[r]++ // a released epoch is not used again
	if _, err := m.a.Release(req, m.now); err != nil {
		t.Fatal(err)
	}
}

// check looks at what must hold at every moment: an attachment stands on the promise,
// in memory and on disk.
func (m *model) check(t *rapid.T) {
	for id, s := range m.a.leases.sessions {
		for r, round := range s.attached {
			e := seq.Epoch{Round: round, Session: id}
			if got := m.a.registers.find(r).state().Promised; got != e {
				t.Fatalf("%s is attached under %v, promised is %v", r, e, got)
			}
			if got := m.disk[r].Promised; got != e {
				t.Fatalf("%s is attached under %v, promised on disk is %v", r, e, got)
			}
		}
	}
}

func TestTheInvariantsHoldUnderAnyOrderOfRequestsCommitsAndCrashes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		t.Repeat(map[string]func(*rapid.T){
			"prepare":  m.prepare,
			"prepare2": m.prepare,
			"step":     m.step,
			"renew":    m.renew,
			"renew2":   m.renew,
			"release":  m.release,
			"commit":   m.commit,
			"commit2":  m.commit,
			"crash":    m.crash,
			"wait": func(t *rapid.T) {
				m.now += time.Duration(rapid.Int64Range(0, int64(3*lease/2)).Draw(t, "time"))
			},
			"": m.check,
		})
	})
}
