package etcdstore

import (
	"fmt"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/base/version"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// MaxPayload is the largest payload of a document in bytes: one must fit in a request.
const MaxPayload = 1_280_000

// decision is what becomes of one item on the state that it was made on. It is put into effect
// only if that is still the state.
type decision struct {
	result  quorum.Result
	write   bool
	next    register
	body    []byte
	setBody bool
	// guard is the session that must not live any more with guardLife. If guardLife is zero, there is no
	// such session.
	guard     seq.Session
	guardLife int64
}

// rules decide on registers, each on a record and on what the other rooms know at the time. They
// change nothing.
type rules struct {
	cluster *cluster
	watch   *watch
	own     *ownSessions
	clock   clock.Clock
	walls   *walls
}

// resultOf is the state as everybody is shown it.
func (s *rules) resultOf(v quorum.Verdict, name seq.Register, r record) quorum.Result {
	floor := s.cluster.floorOf(name)
	return quorum.Result{Verdict: v, Promised: r.promised, Accepted: r.accepted, Max: max(r.max, floor), Floor: floor}
}

func (s *rules) refused(name seq.Register, r record, why string) decision {
	res := s.resultOf(quorum.VerdictRefused, name, r)
	res.Message = why
	return decision{result: res}
}

// unpreempted returns why the register is never preempted, or "" if it is.
func (s *rules) unpreempted(name seq.Register) string {
	id, ok := name.Section()
	if !ok {
		return fmt.Sprintf("preempt of %s, expected a section of a strict space", name)
	}
	space, err := s.cluster.spaceOf(id)
	if err != nil {
		return err.Error()
	}
	if !space.Mode.Leaseless() {
		return fmt.Sprintf("preempt of %s of space %q, which is %s and answers by its lease, expected a strict space", name, space.Name, space.Mode)
	}
	return ""
}

// yields says whether the life of the session's key keeps no preempting session out: its build answers
// nothing in strict spaces by a lease.
func (s *rules) yields(holder seq.Session) bool {
	b, lives := s.watch.live(holder)
	return lives && b.Protocol >= version.Preempted
}

// bar says what stands against a PREPARE by a session, as far as is known; VerdictOK: nothing. With
// preempt the life of the holder's key is nothing, unless the holder is of a build of before.
func (s *rules) bar(name seq.Register, r record, who seq.Session, preempt bool) quorum.Result {
	if !name.Leased() {
		return quorum.Result{Verdict: quorum.VerdictOK}
	}
	holder := r.promised.Session
	if b, held := s.watch.holds(holder, r.life); held && holder != who && !(preempt && s.yields(holder)) {
		return quorum.Result{Verdict: quorum.VerdictHeld, Holder: holder, Remaining: b.left()}
	}
	if r.reserved != 0 && r.reserved != who {
		if left := quorum.ReserveTime - (s.clock.Now() - r.keptSince); left > 0 {
			return quorum.Result{Verdict: quorum.VerdictHeld, Remaining: left}
		}
	}
	return quorum.Result{Verdict: quorum.VerdictOK}
}

// look is what a Read shows.
func (s *rules) look(name seq.Register, who seq.Session, preempt bool, r record) quorum.Result {
	if !r.exists {
		return s.resultOf(quorum.VerdictUnknown, name, record{})
	}
	barred := s.bar(name, r, who, preempt)
	res := s.resultOf(barred.Verdict, name, r)
	res.Payload, res.Holder, res.Remaining = r.body, barred.Holder, barred.Remaining
	if b, held := s.watch.holds(r.promised.Session, r.life); held {
		res.Holder, res.Remaining = r.promised.Session, b.left()
	}
	if preempt {
		if why := s.unpreempted(name); why != "" {
			res.Verdict, res.Message = quorum.VerdictRefused, why
		}
	}
	return res
}

// prepare decides on a PREPARE.
func (s *rules) prepare(item quorum.PrepareItem, who seq.Session, preempt bool, r record) decision {
	name, e := item.Register, seq.Epoch{Round: item.Round, Session: who}
	if !r.exists {
		if !item.Create || !name.OnDemand() {
			return decision{result: s.resultOf(quorum.VerdictUnknown, name, record{})}
		}
		if err := name.Validate(); err != nil {
			return s.refused(name, r, err.Error())
		}
	}
	if preempt {
		if why := s.unpreempted(name); why != "" {
			return s.refused(name, r, why)
		}
	}
	if e.Less(r.promised) {
		return decision{result: s.resultOf(quorum.VerdictNack, name, r)}
	}
	if barred := s.bar(name, r, who, preempt); barred.Verdict != quorum.VerdictOK {
		res := s.resultOf(barred.Verdict, name, r)
		res.Holder, res.Remaining = barred.Holder, barred.Remaining
		return decision{result: res}
	}
	d := decision{}
	if e != r.promised || !r.exists {
		// A preempted register is guarded by its own revision alone.
		if holder := r.promised.Session; holder != who && r.life != 0 && !(preempt && s.yields(holder)) {
			d.guard, d.guardLife = holder, r.life
		}
		d.write, d.next = true, r.register
		d.next.promised, d.next.life = e, 0
		d.next.released, d.next.reserved = seq.Epoch{}, 0
		r.register = d.next
	}
	d.result = s.resultOf(quorum.VerdictOK, name, r)
	d.result.Payload, d.result.Seal = r.body, r.seal
	return d
}

// step decides on a STEP by a session of that life, 0 if it has none.
func (s *rules) step(item quorum.StepItem, who seq.Session, life int64, r record) decision {
	name, e := item.Register, seq.Epoch{Round: item.Round, Session: who}
	switch {
	case !r.exists:
		return decision{result: s.resultOf(quorum.VerdictUnknown, name, record{})}
	case e.Less(r.promised):
		return decision{result: s.resultOf(quorum.VerdictNack, name, r)}
	case e != r.promised:
		return s.refused(name, r, fmt.Sprintf("the register is promised to %s, and a step needs the promise", r.promised))
	case s.givenUp(name, e, r):
		return s.refused(name, r, "the epoch was released")
	}
	why := quorum.Refusal(item, quorum.StepLimits{Payload: MaxPayload})
	if why == "" && name.Rules().Holds == seq.Mark {
		why = s.walls.refusal(item.Max, who)
	}
	if why != "" {
		return s.refused(name, r, why)
	}
	d := decision{next: r.register}
	d.next.accepted, d.next.max = e, max(r.max, item.Max)
	if e != r.accepted {
		d.next.seal = 0
	}
	if name.Leased() {
		d.next.life = life
	}
	// Of two steps under one epoch the older one may arrive late, and must not take the newer
	// payload back.
	if name.HasPayload() && (e != r.accepted || item.Max >= r.bodyMax) {
		d.next.bodyMax, d.body, d.setBody = item.Max, item.Payload, true
	}
	d.write = !r.same(d.next, d.body, d.setBody)
	r.register = d.next
	d.result = s.resultOf(quorum.VerdictOK, name, r)
	return d
}

// attach decides whether a register is the session's under its life, which a STEP has mostly
// written.
func (s *rules) attach(item quorum.LeaseItem, who seq.Session, life int64, r record) decision {
	name, e := item.Register, seq.Epoch{Round: item.Round, Session: who}
	if !r.exists || !name.Leased() || e != r.promised || s.givenUp(name, e, r) {
		return decision{result: s.resultOf(quorum.VerdictRefused, name, r)}
	}
	d := decision{result: s.resultOf(quorum.VerdictOK, name, r), next: r.register, write: r.life != life}
	d.next.life = life
	return d
}

// release decides on giving a register up. It writes also where the register is not kept for the
// session: a STEP may be under way.
func (s *rules) release(g giving, who seq.Session, r record) decision {
	name, e := g.item.Register, seq.Epoch{Round: g.item.Round, Session: who}
	d := decision{result: s.resultOf(quorum.VerdictOK, name, r), next: r.register}
	if !r.exists || !name.Leased() || e != r.promised || r.released == e && !g.explicit {
		return d
	}
	to := g.to
	if to == who {
		to = 0
	}
	d.next.life, d.next.released, d.next.reserved, d.next.seal = 0, e, to, g.item.Seal
	d.write = d.next != r.register
	return d
}

// givenUp says whether the epoch was released, or is about to be by this process.
func (s *rules) givenUp(name seq.Register, e seq.Epoch, r record) bool {
	if r.released == e {
		return true
	}
	return s.own.givenUp(name, e)
}
