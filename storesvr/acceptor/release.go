package acceptor

import (
	"fmt"
	"maps"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// maxEnded bounds how many ended sessions are remembered, the latest ones. A forgotten
// one could at most renew what is still promised to it.
const maxEnded = 4096

// reservation keeps a released register for its successor.
type reservation struct {
	to    seq.Session
	until time.Duration
}

// protection is a lease that outlives its epoch here: a merge brought a higher promise,
// and the holder, which does not know of it, goes on to count on this store.
type protection struct {
	holder seq.Session
	until  time.Duration
}

// protect keeps a lease that is about to lose its epoch; it never shortens one.
func (l *leases) protect(r seq.Register, holder seq.Session, until time.Duration) {
	if p := l.protected[r]; p.holder != holder || p.until < until {
		l.protected[r] = protection{holder: holder, until: max(p.until, until)}
	}
}

// endedSessions remembers the latest maxEnded sessions that have ended.
type endedSessions struct {
	set   map[seq.Session]struct{}
	order []seq.Session // a ring once it is full
	next  int
}

func (e *endedSessions) has(id seq.Session) bool { _, ok := e.set[id]; return ok }

func (e *endedSessions) add(id seq.Session) {
	if e.has(id) {
		return
	}
	if e.set == nil {
		e.set = map[seq.Session]struct{}{}
	}
	if len(e.order) < maxEnded {
		e.order = append(e.order, id)
	} else {
		delete(e.set, e.order[e.next])
		e.order[e.next], e.next = id, (e.next+1)%maxEnded
	}
	e.set[id] = struct{}{}
}

// Release ends leases of the session on the items whose epoch is still the promised one, and
// returns their number. No other session waits for these leases any more, and none waits for the
// grace after a restart. With To, the registers stay reserved for that session for
// quorum.ReserveTime. All releases everything attached and ends the session: the store grants it no
// further lease or promise.
func (a *Acceptor) Release(req quorum.ReleaseRequest, now time.Duration) (int, error) {
	if req.Session == 0 {
		return 0, fmt.Errorf("release: %w: session 0", seq.ErrBadArgument)
	}
	return a.leases.release(req, now), nil
}

func (l *leases) release(req quorum.ReleaseRequest, now time.Duration) int {
	s := l.sessions[req.Session]
	given := 0
	free := func(r seq.Register, round uint64) {
		if !l.giveUp(s, seq.Epoch{Round: round, Session: req.Session}, r) {
			return
		}
		given++
		if req.To != 0 && req.To != req.Session {
			l.reserved[r] = reservation{to: req.To, until: now + quorum.ReserveTime}
		}
	}
	for _, item := range req.Items {
		before := given
		if free(item.Register, item.Round); given == before {
			continue
		}
		if delete(l.seals, item.Register); item.Seal != 0 {
			l.seals[item.Register] = item.Seal
		}
	}
	if req.All {
		if s != nil {
			for r, round := range s.attached {
				free(r, round)
			}
		}
		delete(l.sessions, req.Session)
		maps.DeleteFunc(l.protected, func(_ seq.Register, p protection) bool { return p.holder == req.Session })
		l.ended.add(req.Session)
	}
	return given
}

// bar says what stands against a Prepare.
type bar struct {
	verdict   quorum.Verdict
	holder    seq.Session
	remaining time.Duration
}

// preempting knows which registers may be taken over a living lease.
type preempting struct {
	space    func(seq.SectionID) (*seq.Space, error) // Config.Space
	ofBefore func(seq.Session) bool                  // Config.OfBefore
}

// refusal returns why the register is never preempted, or "" if it is.
func (p preempting) refusal(r seq.Register) string {
	id, ok := r.Section()
	if !ok || p.space == nil {
		return fmt.Sprintf("preempt of %s, expected a section of a strict or exact space", r)
	}
	s, err := p.space(id)
	if err != nil {
		return err.Error()
	}
	if !s.Mode.Leaseless() {
		return fmt.Sprintf("preempt of %s of space %q, which is %s and answers by its lease, expected a strict or exact space", r, s.Name, s.Mode)
	}
	return ""
}

// yields says whether the session's lease keeps no preempting session out. A session that has
// not renewed since the start may be of any build. The register is one that may be preempted.
func (l *leases) yields(holder seq.Session) bool {
	return l.sessions[holder] != nil && (l.over.ofBefore == nil || !l.over.ofBefore(holder))
}

// barred says whether the register, promised to an epoch, is kept from a session by a
// lease, a reservation or the grace. With preempt neither lease nor grace keeps it, unless its
// holder is of a build of before. A reservation does: it is no lease, and what is handed over
// must get to its successor.
func (l *leases) barred(r seq.Register, promised seq.Epoch, who seq.Session, preempt bool, now time.Duration) bar {
	if !r.Leased() {
		return bar{verdict: quorum.VerdictOK}
	}
	if holder, remaining := l.holder(r, promised, now); holder != 0 && holder != who && !(preempt && l.yields(holder)) {
		return bar{verdict: quorum.VerdictHeld, holder: holder, remaining: remaining}
	}
	if res, ok := l.reserved[r]; ok && res.to != who && now < res.until {
		return bar{verdict: quorum.VerdictHeld, remaining: res.until - now}
	}
	if left := l.grace(now); left > 0 && !promised.IsZero() && promised.Session != who &&
		l.released[r] != promised && !l.ended.has(promised.Session) && !(preempt && l.yields(promised.Session)) {
		return bar{verdict: quorum.VerdictGrace, remaining: left}
	}
	return bar{verdict: quorum.VerdictOK}
}

// holder returns the session with a valid lease on the register, or 0. The session of the promised
// epoch is the only one that can have the register attached. Otherwise a merge may have left
// another session's lease protected.
func (l *leases) holder(r seq.Register, promised seq.Epoch, now time.Duration) (seq.Session, time.Duration) {
	if s := l.sessions[promised.Session]; s != nil && now < s.expiry {
		if round, ok := s.attached[r]; ok && round == promised.Round {
			return promised.Session, s.expiry - now
		}
	}
	if p, ok := l.protected[r]; ok && now < p.until {
		return p.holder, p.until - now
	}
	return 0, 0
}

// vacate ends what stands on a register's old epoch, because another one takes it. The
// session of the old epoch hears of it as lost, unless it is the one that takes it.
func (l *leases) vacate(r seq.Register, old seq.Epoch, taker seq.Session) {
	if s := l.sessions[old.Session]; s != nil {
		if round, ok := s.attached[r]; ok {
			delete(s.attached, r)
			if old.Session != taker {
				s.lost[r] = round
			} else {
				s.released++
			}
		}
	}
	delete(l.released, r)
	delete(l.reserved, r)
}
