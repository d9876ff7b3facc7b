package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/tests/kit/etcdmodel"
)

// members are the members of one etcd. Their agreed state is in the model, changed by one transaction at a
// time. members decide when a request gets there, and what happens to requests under way when a leader
// goes. The fields are guarded by world.mu.
type members struct {
	part
	etcd    *etcdmodel.Etcd
	did     func(etcdstore.Txn, etcdstore.Answer)
	leader  *host // nil during an election
	term    int   // counts the leaders
	waiting []*proposal
	looks   bool          // an event for those that wait is scheduled
	stalled time.Duration // until when nothing is done
	slow    time.Duration // that it takes longer at most
	full    int           // faults by which there is no space now
	old     []etcdmodel.Snapshot
	made    int // how often one of them was put back
}

// proposal is a transaction under way.
type proposal struct {
	at    *host // that was asked
	txn   etcdstore.Txn
	term  int // in which it was proposed
	until time.Duration
	done  chan settled // of one place
	// carried: the leader that it was proposed to has gone, and the next one does it.
	carried bool
	made    int // members.made when it was asked for
}

type settled struct {
	etcdstore.Answer
	error
}

// The longest time of a request in etcd, and the times of an election.
const (
	requestTime   = 7 * time.Second
	shortElection = 300 * time.Millisecond
	longElection  = 3 * time.Second
)

var (
	errLeaderChanged = status.Error(codes.Unavailable, "etcdserver: leader changed")
	errTimedOut      = status.Error(codes.Unavailable, "etcdserver: request timed out")
)

// begin makes the first member the leader.
func (m *members) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leader, m.term = m.w.hosts.of(storeHost)[0], 1
	m.work.Go(m.remember)
}

// do sends a request to a member. A caller that stops waiting does not take the request back.
func (m *members) do(ctx context.Context, at *host, t etcdstore.Txn) (etcdstore.Answer, error) {
	p := &proposal{at: at, txn: t, until: m.now() + requestTime, done: make(chan settled, 1)}
	m.mu.Lock()
	p.made = m.made
	m.propose(p)
	m.mu.Unlock()
	select {
	case s := <-p.done:
		return s.Answer, s.error
	case <-ctx.Done():
		return etcdstore.Answer{}, status.FromContextError(ctx.Err()).Err()
	}
}

// meet says whether two members hear each other. Needs w.mu.
func (m *members) meet(a, b *host) bool {
	return a == b || !m.w.links.cut(a, b) && !m.w.links.cut(b, a)
}

// leads says whether a member may lead: with most of all. Needs w.mu.
func (m *members) leads(h *host) bool {
	if h == nil || !h.up || h.paused {
		return false
	}
	all, with := m.w.hosts.of(storeHost), 0
	for _, o := range all {
		if o.up && !o.paused && m.meet(h, o) {
			with++
		}
	}
	return with > len(all)/2
}

// propose has a request travel to the leader, or wait for one. Needs w.mu.
func (m *members) propose(p *proposal) {
	if m.leader != nil && !m.leads(m.leader) {
		m.elect()
	}
	if m.leader == nil || !m.meet(p.at, m.leader) {
		m.wait(p)
		return
	}
	p.term = m.term
	d := m.between(m.opts.Disk/4, m.opts.Disk) + m.w.links.latency() + m.between(0, m.slow)
	if p.at != m.leader {
		d += m.w.links.latency()
	}
	m.after(d, m.locked(func() { m.land(p) }))
}

// wait keeps a request until there is a leader. Needs w.mu.
func (m *members) wait(p *proposal) {
	m.waiting = append(m.waiting, p)
	if !m.looks {
		m.looks = true
		m.after(100*time.Millisecond, m.locked(m.look))
	}
}

// look tries those that wait again. Needs w.mu.
func (m *members) look() {
	m.looks = false
	waiting := m.waiting
	m.waiting = nil
	for _, p := range waiting {
		if m.now() >= p.until {
			p.settle(settled{error: errTimedOut})
		} else {
			m.propose(p)
		}
	}
}

// elect has no leader for a while. Needs w.mu.
func (m *members) elect() {
	m.leader = nil
	m.term++
	m.trace.add("etcd has no leader, term %d", m.term)
	m.after(m.between(shortElection, longElection), m.locked(m.elected))
}

// elected makes one of those the leader that may be. Needs w.mu.
func (m *members) elected() {
	could := slices.DeleteFunc(slices.Clone(m.w.hosts.of(storeHost)), func(h *host) bool { return !m.leads(h) })
	if len(could) == 0 && m.life.Err() == nil {
		m.after(shortElection, m.locked(m.elected))
		return
	}
	if len(could) > 0 {
		m.leader = could[m.rng.IntN(len(could))]
		m.trace.add("%-8s leads etcd, term %d", m.leader.name, m.term)
	}
}

// land is a request at the leader that it was proposed to. If that is not the leader any more,
// the next one has it in its log, or not; who asked mostly hears of neither. Needs w.mu.
func (m *members) land(p *proposal) {
	if p.made != m.made {
		return
	}
	if p.term != m.term && !p.carried {
		if reads(p.txn) {
			m.propose(p)
			return
		}
		p.carried = m.chance(0.5)
		if m.chance(0.3) {
			p.settle(settled{error: errLeaderChanged})
		}
		if !p.carried {
			m.trace.add("etcd drops a request of term %d", p.term)
			return
		}
	}
	leads := m.leads(m.leader)
	switch {
	case m.leader != nil && !leads:
		m.elect()
		fallthrough
	case !leads:
		m.after(shortElection, m.locked(func() { m.land(p) }))
	case m.now() < m.stalled:
		m.after(m.stalled-m.now(), m.locked(func() { m.land(p) }))
	default:
		m.apply(p)
	}
}

// reads says whether a transaction writes nothing whatever it finds.
func reads(t etcdstore.Txn) bool {
	return !slices.ContainsFunc(slices.Concat(t.Then, t.Else), func(op etcdstore.Op) bool { return op.Kind != etcdstore.Get })
}

// apply does a request, and sends the answer back by the member that was asked. Needs w.mu.
func (m *members) apply(p *proposal) {
	m.w.point(m.leader, nil, "commit")
	var s settled
	if s.Answer, s.error = m.etcd.Apply(p.txn); errors.Is(s.error, etcdstore.ErrNoSpace) && m.chance(0.2) {
		s.error = m.etcd.Despite(p.txn)
	}
	if errors.Is(s.error, etcdmodel.ErrRejected) {
		m.w.check.broken("etcd", "%v", s.error)
	}
	if s.error == nil {
		m.did(p.txn, s.Answer)
	}
	m.stats.Commits++
	m.w.point(m.leader, nil, "committed")
	if p.at == m.leader {
		p.settle(s)
	} else if m.meet(p.at, m.leader) {
		m.after(m.w.links.latency(), func() { p.settle(s) })
	}
}

// settle answers a request, if nothing was answered before.
func (p *proposal) settle(s settled) {
	select {
	case p.done <- s:
	default:
	}
}

// remember keeps contents for those that are put back.
func (m *members) remember() {
	for m.sleep(snapshotEvery) {
		m.mu.Lock()
		if m.old = append(m.old, m.etcd.Save()); len(m.old) > 8 {
			m.old = m.old[1:]
		}
		m.mu.Unlock()
	}
}

// heal ends what faults have done to all members.
func (m *members) heal() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.full, m.slow, m.stalled = 0, 0, 0
	m.etcd.SetFull(false)
}
