package acceptor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// forgetAfter is the time for which the store keeps a session after its expiry, to report what the
// session lost. Forgetting is safe: the session's next renewal believes in attachments that are
// missing, and the store resets it.
const forgetAfter = 10 * time.Minute

// excessTolerated is the number of renewals in a row that may believe in less than is attached. At
// five renewals a lease, that is about one lease.
const excessTolerated = 5

// session is one live or lately live session.
//
// For each register r in attached: promised(r) = {attached[r], session}, in memory and
// on disk. So at most one session has a given register attached (I7).
type session struct {
	name     string
	addr     string
	expiry   time.Duration // everything attached is leased while now < expiry
	attached map[seq.Register]uint64
	lost     map[seq.Register]uint64 // taken by others, not yet acknowledged by a drop
	number   uint64                  // of the latest renewal that counted its own
	released int                     // items given up since the last renewal
	excess   int                     // renewals in a row that believed in less than was attached
}

func newSession() *session {
	return &session{attached: map[seq.Register]uint64{}, lost: map[seq.Register]uint64{}}
}

// leases are the sessions and what keeps registers for them, all of it in memory alone.
type leases struct {
	registers *registers
	sessions  map[seq.Session]*session
	ended     endedSessions
	reserved  map[seq.Register]reservation
	// seals are what owners left with a release, until something is accepted under another
	// epoch. After a restart there are none.
	seals map[seq.Register]uint64
	// protected are the leases whose epoch a merge took away. They end by time, or with
	// their holder's session.
	protected map[seq.Register]protection
	// released holds the epoch under which a register was given up. It is never leased
	// again under it, and grace does not keep others out.
	released map[seq.Register]seq.Epoch

	over      preempting
	maxLease  time.Duration
	bound     time.Duration // every lease ever granted <= bound, which is on disk
	graceEnds time.Duration
}

func newLeases(cfg Config, t *registers) leases {
	return leases{
		registers: t,
		sessions:  map[seq.Session]*session{},
		reserved:  map[seq.Register]reservation{},
		seals:     map[seq.Register]uint64{},
		protected: map[seq.Register]protection{},
		released:  map[seq.Register]seq.Epoch{},
		over:      preempting{cfg.Space, cfg.OfBefore},
		maxLease:  cfg.MaxLease,
		bound:     cfg.LeaseBound,
		graceEnds: cfg.Start + GraceOf(cfg.LeaseBound),
	}
}

// Renew extends the lease of all that the session has attached, to now+Lease, which it
// never shortens. It answers with everything but UUID, BootCount and Commits. Errors,
// all of which grant nothing: seq.ErrBadArgument, seq.ErrBadLease, seq.ErrNameTaken,
// seq.ErrSessionEnded, ErrLeaseBound.
//
// A Reset reply means: of what was attached before this request count on nothing;
// what this request attached, and is not Refused, is.
func (a *Acceptor) Renew(req quorum.RenewRequest, now time.Duration) (quorum.RenewReply, error) {
	if err := a.leases.admit(req, now); err != nil {
		return quorum.RenewReply{}, fmt.Errorf("renew session %s of %q: %w", req.Session, req.Name, err)
	}
	reply := a.leases.renew(req, now)
	routes, _ := a.registers.find(seq.RoutesRegister).committed()
	reply.RouteVersion = routes.Max
	return reply, nil
}

// late says whether a renewal was overtaken by a later one of its session. All that it
// asks for, the later one has asked for as well; but what it believes is out of date, and
// to correct that would take away what has been granted since.
func (l *leases) late(req quorum.RenewRequest) bool {
	s := l.sessions[req.Session]
	return s != nil && req.Number != 0 && req.Number <= s.number
}

// renew is Renew of a session that admit has let in.
func (l *leases) renew(req quorum.RenewRequest, now time.Duration) (reply quorum.RenewReply) {
	s, known := l.sessions[req.Session]
	if !known {
		s = newSession()
		l.sessions[req.Session] = s
	}
	if known && now >= s.expiry && len(s.attached) > 0 {
		clear(s.attached)
		reply.Reset = true
	}
	s.name, s.addr, s.number = req.Name, req.Addr, max(s.number, req.Number)
	for _, item := range req.Drop {
		l.drop(s, req.Session, item)
	}
	fresh := make(map[seq.Register]uint64, len(req.Attach))
	for _, item := range req.Attach {
		if !l.attachable(req.Session, item) {
			reply.Refused = append(reply.Refused, item)
			continue
		}
		s.attached[item.Register], fresh[item.Register] = item.Round, item.Round
		delete(s.lost, item.Register)
	}
	if s.diverged(req.Attached, len(reply.Refused)) {
		// An attachment stays unless the session has just listed everything that it believes in. If
		// this reply is lost, the session goes on to count what it was granted before.
		if uint64(len(fresh)) == req.Attached {
			s.attached = fresh
		}
		reply.Reset = true
	}
	s.expiry = max(s.expiry, now+req.Lease)
	reply.Lost = items(s.lost)
	reply.Sessions = l.live(now)
	return reply
}

// grace is what is left of the grace after the start, 0 when it is over.
func (l *leases) grace(now time.Duration) time.Duration { return max(0, l.graceEnds-now) }

// admit checks whether the session may have a lease at all.
func (l *leases) admit(req quorum.RenewRequest, now time.Duration) error {
	switch {
	case req.Session == 0 || req.Name == "":
		return fmt.Errorf("%w: session and node name must not be empty", seq.ErrBadArgument)
	case req.Lease <= 0 || req.Lease > l.maxLease:
		return fmt.Errorf("%w: %v, expected above 0 and at most %v", seq.ErrBadLease, req.Lease, l.maxLease)
	case req.Lease > l.bound:
		return fmt.Errorf("%w: %v, bound %v", ErrLeaseBound, req.Lease, l.bound)
	case l.ended.has(req.Session):
		return seq.ErrSessionEnded
	case l.late(req):
		return fmt.Errorf("%w: renewal %d came after a later one", seq.ErrBadArgument, req.Number)
	}
	for id, other := range l.sessions {
		if id != req.Session && other.name == req.Name && now < other.expiry {
			return fmt.Errorf("%w: by session %s at %s for %v more", seq.ErrNameTaken, id, other.addr, other.expiry-now)
		}
	}
	return nil
}

// attachable says whether a lease on the register may be given under the epoch: it is
// the promised one, on disk and in memory (see the package comment), and was not given
// up. A late renewal so never brings a lost or released register back.
func (l *leases) attachable(id seq.Session, item quorum.LeaseItem) bool {
	e := seq.Epoch{Round: item.Round, Session: id}
	reg := l.registers.find(item.Register)
	durable, onDisk := reg.committed()
	return onDisk && item.Register.Leased() &&
		reg.now.Promised == e && durable.Promised == e && l.released[item.Register] != e
}

// drop gives a register up, or acknowledges its loss.
func (l *leases) drop(s *session, id seq.Session, item quorum.LeaseItem) {
	if round, ok := s.lost[item.Register]; ok && round == item.Round {
		delete(s.lost, item.Register)
	}
	l.giveUp(s, seq.Epoch{Round: item.Round, Session: id}, item.Register)
}

// giveUp ends the lease of a register under e, if e is still the promised epoch.
func (l *leases) giveUp(s *session, e seq.Epoch, r seq.Register) bool {
	reg := l.registers.find(r)
	if reg == nil || reg.now.Promised != e || !r.Leased() {
		return false
	}
	if s != nil {
		if _, held := s.attached[r]; held {
			delete(s.attached, r)
			s.released++
		}
	}
	l.released[r] = e
	return true
}

// diverged compares the attachments that the session believes in with the real ones. Losses,
// refusals and releases that the session has not heard of may explain a difference. Believing in
// too little only keeps other sessions out for no reason. A renewal that overtakes a release looks
// the same, so diverged reports too little only if it lasts.
func (s *session) diverged(believed uint64, refused int) bool {
	have := uint64(len(s.attached))
	most := have + uint64(len(s.lost)) + uint64(refused) + uint64(s.released)
	s.released = 0
	if believed >= have {
		s.excess = 0
		return believed > most
	}
	s.excess++
	if s.excess < excessTolerated {
		return false
	}
	s.excess = 0
	return true
}

// any says whether any session may still rely on a lease of this store.
func (l *leases) any(now time.Duration) bool {
	for _, s := range l.sessions {
		if now < s.expiry && len(s.attached) > 0 {
			return true
		}
	}
	for _, p := range l.protected {
		if now < p.until {
			return true
		}
	}
	return false
}

// count counts the sessions with a valid lease and what they have attached.
func (l *leases) count(now time.Duration) (live, attached int) {
	for _, s := range l.sessions {
		if now < s.expiry {
			live++
			attached += len(s.attached)
		}
	}
	return live, attached
}

// live lists the sessions with a valid lease by name, and forgets the long dead and the
// protections that are over.
func (l *leases) live(now time.Duration) []quorum.SessionInfo {
	maps.DeleteFunc(l.protected, func(_ seq.Register, p protection) bool { return now >= p.until })
	var live []quorum.SessionInfo
	for id, s := range l.sessions {
		switch {
		case now < s.expiry:
			live = append(live, quorum.SessionInfo{
				Session: id, Name: s.name, Addr: s.addr,
				Remaining: s.expiry - now, Attached: uint32(len(s.attached)),
			})
		case now-s.expiry > forgetAfter:
			delete(l.sessions, id)
		}
	}
	slices.SortFunc(live, func(x, y quorum.SessionInfo) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Session, y.Session))
	})
	return live
}

// Live lists the sessions with a valid lease, by name.
func (a *Acceptor) Live(now time.Duration) []quorum.SessionInfo { return a.leases.live(now) }

func items(m map[seq.Register]uint64) []quorum.LeaseItem {
	if len(m) == 0 {
		return nil
	}
	out := make([]quorum.LeaseItem, 0, len(m))
	for r, round := range m {
		out = append(out, quorum.LeaseItem{Register: r, Round: round})
	}
	slices.SortFunc(out, func(x, y quorum.LeaseItem) int { return cmp.Compare(x.Register, y.Register) })
	return out
}
