package etcdstore

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/base/version"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// own is a session that speaks through this Store, guarded by ownSessions.mu.
//
// For each register in attached, as long as the session's key has the create revision heldLife:
// its promise is {attached[r], session} and its life heldLife, so that no other session is
// promised it. In a strict space another may be, by preemption: a look or STEP of the session finds out.
type own struct {
	life   int64 // create revision of its key by the newest answer; zero if the key is missing or unknown
	lifeAt int64 // revision of that answer

	attached map[seq.Register]uint64
	heldLife int64
	owed     bool // a Reset that no reply has told yet
	// written are registers that may carry the life by a STEP and are not attached. One that
	// does not come to be is to be released: no other could take it while the session lives.
	written map[seq.Register]written
	// giving are the releases that etcd has not answered yet. Their epochs no longer count as the
	// session's, even if etcd still shows them.
	giving map[slot]giving

	over     bool          // this process has asked for its end, or learnt of it: its key is not made again
	number   uint64        // of the newest renewal
	beats    uint64        // writes of the key
	lease    time.Duration // the longest that was asked for
	released int           // attachments given up since the last renewal
}

type written struct {
	round uint64
	at    time.Duration // of the newest STEP
}

type slot struct {
	register seq.Register
	round    uint64
}

type giving struct {
	item     quorum.LeaseItem
	to       seq.Session
	explicit bool // by a Release, which may change what an earlier one said
}

// giveUp notes that an item is to be released.
func (o *own) giveUp(it quorum.LeaseItem, to seq.Session, explicit bool) {
	if round, held := o.attached[it.Register]; held && round == it.Round {
		delete(o.attached, it.Register)
		o.released++
	}
	if w, ok := o.written[it.Register]; ok && w.round == it.Round {
		delete(o.written, it.Register)
	}
	of := slot{it.Register, it.Round}
	if before, ok := o.giving[of]; ok && before.explicit && !explicit {
		return
	}
	o.giving[of] = giving{item: it, to: to, explicit: explicit}
}

// orphans moves what was stepped and never attached to what is to be released.
func (o *own) orphans(now time.Duration) {
	for r, w := range o.written {
		if round, held := o.attached[r]; held && round == w.round {
			delete(o.written, r)
		} else if now-w.at > o.lease+quorum.DefaultTimeout {
			o.giveUp(quorum.LeaseItem{Register: r, Round: w.round}, 0, false)
		}
	}
}

// ownSessions are the sessions that speak through this Store: what they hold, what they are to
// give back, and what their next renewal has to tell.
type ownSessions struct {
	clock clock.Clock

	mu   sync.Mutex // guards all below; no other room is asked while it is held
	byID map[seq.Session]*own
}

func newOwnSessions(clk clock.Clock) *ownSessions {
	return &ownSessions{clock: clk, byID: map[seq.Session]*own{}}
}

// of is the session's, made if need be. The caller holds mu.
func (s *ownSessions) of(id seq.Session) *own {
	o := s.byID[id]
	if o == nil {
		o = &own{attached: map[seq.Register]uint64{}, written: map[seq.Register]written{}, giving: map[slot]giving{}}
		s.byID[id] = o
	}
	return o
}

// lifeOf is the session's life as far as is known.
func (s *ownSessions) lifeOf(id seq.Session) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.byID[id]; o != nil {
		return o.life
	}
	return 0
}

// lived takes in the life that an answer has shown.
func (s *ownSessions) lived(id seq.Session, life, revision int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.of(id); revision >= o.lifeAt {
		o.life, o.lifeAt = life, revision
	}
}

// asks takes in the longest lease that the session was found with.
func (s *ownSessions) asks(id seq.Session, lease time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.of(id)
	o.lease = max(o.lease, lease)
}

// nextBeat is what the session's key is to have now.
func (s *ownSessions) nextBeat(req quorum.RenewRequest) session {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.of(req.Session)
	o.beats++
	return session{Name: req.Name, Addr: req.Addr, Lease: o.lease, Attached: uint32(req.Attached), Beat: o.beats, Protocol: version.Protocol}
}

// renewing takes in what a renewal asks for and gives up: seq.ErrBadArgument if it is overtaken.
func (s *ownSessions) renewing(req quorum.RenewRequest) error {
	now := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.of(req.Session)
	if req.Number != 0 && req.Number <= o.number {
		return fmt.Errorf("%w: renewal %d came after a later one", seq.ErrBadArgument, req.Number)
	}
	o.number, o.lease = max(o.number, req.Number), max(o.lease, req.Lease)
	for _, it := range req.Drop {
		o.giveUp(it, 0, false)
	}
	for _, it := range req.Attach {
		if w, ok := o.written[it.Register]; ok && w.round == it.Round {
			delete(o.written, it.Register) // from here on the caller drops it
		}
	}
	o.orphans(now)
	return nil
}

// reborn gives up all that was attached under another life of the session's key: it protects
// nothing any more. The session is told with the next reply that it gets, whatever fails until
// then.
func (s *ownSessions) reborn(who seq.Session, life int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.of(who)
	if o.heldLife == life {
		return
	}
	o.heldLife = life
	o.owed = o.owed || len(o.attached) > 0
	o.released = 0
	clear(o.attached)
	clear(o.written)
}

// keep has items attached that are the session's under its life.
func (s *ownSessions) keep(who seq.Session, items []quorum.LeaseItem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.of(who)
	for _, it := range items {
		o.attached[it.Register] = it.Round
	}
}

// reset says whether the reply to a renewal, that it goes with, must tell a reset: one is owed, or
// the session believes more attached than there is, of what it has heard refused or given up
// itself.
func (s *ownSessions) reset(req quorum.RenewRequest, refused int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.of(req.Session)
	diverged := req.Attached > uint64(len(o.attached)+refused+o.released)
	reset := diverged || o.owed
	o.released, o.owed = 0, false
	return reset
}

// stepping notes, before and after a STEP, which registers may come to be kept for its session.
func (s *ownSessions) stepping(req quorum.StepRequest) {
	now := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.byID[req.Session]
	if o == nil {
		return
	}
	for _, it := range req.Items {
		if round, held := o.attached[it.Register]; !it.Register.Leased() || held && round == it.Round {
			continue
		}
		o.written[it.Register] = written{round: it.Round, at: now}
	}
}

// vacated notes that the session itself was promised a higher round of what it had.
func (s *ownSessions) vacated(req quorum.PrepareRequest, results []quorum.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.byID[req.Session]
	if o == nil {
		return
	}
	for i, it := range req.Items {
		if round, held := o.attached[it.Register]; held && round < it.Round && results[i].Verdict == quorum.VerdictOK {
			delete(o.attached, it.Register)
			o.released++
		}
	}
}

// end notes that the session is over, for this process.
func (s *ownSessions) end(id seq.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(id).over = true
}

func (s *ownSessions) over(id seq.Session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of(id).over
}

// releasing notes what a Release gives up.
func (s *ownSessions) releasing(req quorum.ReleaseRequest) []giving {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.of(req.Session)
	due := make([]giving, len(req.Items))
	for i, it := range req.Items {
		o.giveUp(it, req.To, true)
		due[i] = giving{item: it, to: req.To, explicit: true}
	}
	return due
}

// due are the releases to be sent, in the order of the registers.
func (s *ownSessions) due(who seq.Session) []giving {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.of(who)
	out := make([]giving, 0, len(o.giving))
	for _, g := range o.giving {
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b giving) int {
		return cmp.Or(cmp.Compare(a.item.Register, b.item.Register), cmp.Compare(a.item.Round, b.item.Round))
	})
	return out
}

// given takes out a release that etcd has answered, unless another took its place.
func (s *ownSessions) given(who seq.Session, g giving) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.of(who)
	if of := (slot{g.item.Register, g.item.Round}); o.giving[of] == g {
		delete(o.giving, of)
	}
}

// givenUp says whether the epoch is about to be released.
func (s *ownSessions) givenUp(name seq.Register, e seq.Epoch) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.byID[e.Session]
	if o == nil {
		return false
	}
	_, giving := o.giving[slot{name, e.Round}]
	return giving
}
