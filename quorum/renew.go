package quorum

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

// storeLease is the session as one store sees it. The fields below kick are
// guarded by Leases.mu.
type storeLease struct {
	index int // its place in Leases.sent and in the masks
	store NamedStore
	kick  chan struct{} // of one place

	retired bool               // no member any more: nothing of it counts
	stop    context.CancelFunc // ends its loop; nil before Run

	uuid string // answered under; "" before the first reply
	boot uint64
	seen Claim // newest
	twin Claim // of another process that counts the same boot; zero: none is known
	// rumours are what fellow stores said otherwise than the store itself, by their uuid.
	rumours map[string][]Claim
	ask     inquiry
	gen     uint64 // counts the resets
	taken   uint64 // number of the newest renew that was answered

	pending  map[*Hold]struct{}     // to attach with the next renew
	refused  map[*Hold]struct{}     // to attach again at retryAt
	retryAt  time.Duration          // on the clock
	drops    map[LeaseItem]struct{} // to detach with the next renews until one is answered
	attached int                    // live holds with this store's bit

	clockAt  time.Duration // when what Leases.clocks has of it arrived
	clockOff time.Duration // by how much that may be off

	answered  bool          // there has been a reply
	settledAt time.Duration // before that, after its start, sessions may not have come back yet
	restarted bool          // the store has restarted and has granted nothing since
	wasReset  bool          // the last reply was a reset
	failing   bool          // the last renew was not answered
	refusal   error         // why the last renew was refused, of lasting

	ahead time.Duration // how far this node's wall clock was ahead of the store's, if timed
	timed bool          // the store has told its clock
}

func newStoreLease(i int, s NamedStore) *storeLease {
	return &storeLease{index: i, store: s, kick: make(chan struct{}, 1), uuid: s.UUID,
		pending: map[*Hold]struct{}{}, refused: map[*Hold]struct{}{}, drops: map[LeaseItem]struct{}{}}
}

func (s *storeLease) bit() uint64 { return 1 << s.index }

func (s *storeLease) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// sentRenew is what the sender remembers of a renew until its reply comes.
type sentRenew struct {
	at     time.Duration // clock before sending
	wall   time.Time     // likewise
	claims int           // in RenewRequest.Seen
	number uint64        // RenewRequest.Number
	gen    uint64        // storeLease.gen when it was made
	attach []*Hold       // parallel to RenewRequest.Attach
	drops  []LeaseItem
}

// prepareRenew collects all that the store has not been told yet.
// current is false if the store is no member any more.
func (l *Leases) prepareRenew(s *storeLease) (req RenewRequest, sent sentRenew, current bool) {
	now := l.cfg.Clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if now >= s.retryAt {
		for h := range s.refused {
			s.pending[h] = struct{}{}
		}
		clear(s.refused)
	}
	if s.retired {
		return req, sent, false
	}
	l.made++
	sent = sentRenew{number: l.made, gen: s.gen}
	req = RenewRequest{Ref: l.now.Load().ref, Session: l.cfg.Session, Secret: l.cfg.Secret, Name: l.cfg.Name, Addr: l.cfg.Addr,
		Lease: l.cfg.Lease, Nonce: s.ask.nonce, Seen: s.claims(), Fellows: l.fellows(s)}
	sent.claims = len(req.Seen)
	for h := range s.pending {
		h.told |= s.bit()
		sent.attach = append(sent.attach, h)
		req.Attach = append(req.Attach, LeaseItem{Register: h.register, Round: h.round})
	}
	for item := range s.drops {
		sent.drops = append(sent.drops, item)
		req.Drop = append(req.Drop, item)
	}
	req.Attached, req.Number = uint64(s.attached+len(req.Attach)), l.made
	return req, sent, true
}

// renewed takes in a reply that arrived at now. First everything that the store
// took away is given up and told, only then the store's send time moves on, and
// last what it newly attached counts.
func (l *Leases) renewed(s *storeLease, sent sentRenew, reply RenewReply, now time.Duration) (again bool) {
	l.mu.Lock()
	if s.retired {
		l.mu.Unlock()
		return false
	}
	fresh, err := l.identify(s, reply)
	if err != nil {
		l.mu.Unlock()
		l.cfg.Logger.Warn("renewal does not count", "store", s.store.Name, "error", err)
		return false
	}
	l.recall(s, sent, reply)
	if reply.Nonce != 0 {
		again = l.compare(s, sent, reply, fresh)
		l.mu.Unlock()
		return again
	}
	l.heardClock(s, reply.Time, sent.at, now)
	l.heardRoom(s, reply)
	s.ask = inquiry{}
	restarted := fresh || s.restarted
	s.restarted = false
	reset := fresh || reply.Reset
	if sent.number < s.taken { // overtaken: it may take away, but gives nothing
		sent.attach, sent.drops = nil, nil
	}
	s.taken = max(s.taken, sent.number)
	lost := l.takeAway(s, sent, reply, reset, now)
	again = reset && !s.wasReset // a store that resets every time gets its renews at the usual pace
	recovered := s.failing
	s.wasReset, s.failing, s.refusal = reset, false, nil
	l.mu.Unlock()

	if recovered {
		l.cfg.Logger.Info("store renews again", "store", s.store.Name)
	}
	if len(lost) > 0 {
		l.cfg.Logger.Info("leases lost", "registers", len(lost), "first", lost[0].register.String(), "round", lost[0].round, "store", s.store.Name)
	}
	for _, h := range lost {
		if l.cfg.OnLost != nil {
			l.cfg.OnLost(h)
		}
	}
	if advance(&l.routes, reply.RouteVersion) && l.cfg.OnRoutes != nil {
		l.cfg.OnRoutes()
	}

	l.mu.Lock()
	changed := false
	if !s.retired { // its place may be another store's by now
		advance(&l.sent[s.index], int64(sent.at))
		s.compareClocks(sent, reply, now)
		l.confirm(s, sent)
		changed = l.observe(s, reply.Sessions, restarted, now)
	}
	l.mu.Unlock()
	if changed && l.cfg.OnSessions != nil {
		l.cfg.OnSessions()
	}
	return again
}

// advance is an atomic maximum; false if it was as high already.
func advance[T int64 | uint64](a interface {
	Load() T
	CompareAndSwap(old, new T) bool
}, v T) bool {
	for {
		old := a.Load()
		if v <= old {
			return false
		}
		if a.CompareAndSwap(old, v) {
			return true
		}
	}
}

// identify checks which store answers. fresh: the store has started again or has another
// disk, so that nothing that was attached before still is. Callers hold l.mu.
func (l *Leases) identify(s *storeLease, reply RenewReply) (fresh bool, err error) {
	stores, self := l.now.Load().stores, 0
	configured := make([]NamedStore, len(stores))
	for i, other := range stores {
		configured[i] = other.store
		if other == s {
			self = i
		} else {
			configured[i].UUID = other.uuid // once it has answered, no other store may use its uuid
		}
	}
	if err := checkUUID(configured, self, reply.UUID); err != nil {
		return false, err
	}
	claim := reply.Claim()
	fresh = s.answered && (reply.UUID != s.uuid || reply.BootCount != s.boot || s.seen.Twin(claim))
	if reply.UUID != s.uuid {
		s.seen, s.twin, s.rumours = Claim{}, Claim{}, nil
	}
	s.answered, s.uuid, s.boot = true, reply.UUID, reply.BootCount
	if s.saw(claim) {
		l.cfg.Logger.Error("two processes answer for one store: its disk was copied, and neither may vote", "store", s.store.Name, "uuid", s.uuid, "boot", s.boot)
	}
	return fresh, nil
}

// takeAway clears the bits of what the store no longer keeps, and returns the
// holds that are lost by that. Callers hold l.mu.
func (l *Leases) takeAway(s *storeLease, sent sentRenew, reply RenewReply, reset bool, now time.Duration) (lost []*Hold) {
	if reset {
		l.forget(s)
	}
	for _, item := range sent.drops {
		delete(s.drops, item)
	}
	for _, item := range reply.Lost {
		if h := l.holds[item.Register]; h != nil && h.round == item.Round {
			l.end(h)
			lost = append(lost, h)
		}
		s.drops[item] = struct{}{} // the store tells of it until then
	}
	for _, item := range reply.Refused {
		h := l.holds[item.Register]
		if h == nil || h.round != item.Round {
			continue
		}
		l.detach(h, s)
		before := h.refused&s.bit() != 0
		h.refused |= s.bit()
		delete(s.pending, h)
		// The store may only have missed the promise; bring repeats it.
		// W stores promised, though: if more than N-W refuse, one of those has
		// promised a higher epoch since.
		if c := l.now.Load(); bits.OnesCount64(h.refused) > c.n-c.w || before && l.stuck(h, now) {
			l.end(h)
			lost = append(lost, h)
			continue
		}
		if len(s.refused) == 0 {
			s.retryAt = now + l.cfg.Lease
		}
		s.refused[h] = struct{}{}
		select {
		case l.missed <- struct{}{}:
		default:
		}
	}
	return lost
}

// stuck says that W stores are within reach, but too few of them can keep the hold: one
// that had promised it is away, and another that refuses again never heard of it. A
// section without a lease is not served, so no step will come and mend that; and what the
// few stores go on keeping would shut out every other session while this one lives. Callers hold l.mu.
func (l *Leases) stuck(h *Hold, now time.Duration) bool {
	c := l.now.Load()
	reached, able := 0, 0
	for _, s := range c.stores {
		if now >= time.Duration(l.sent[s.index].Load())+l.term {
			continue
		}
		reached++
		if h.refused&s.bit() == 0 {
			able++
		}
	}
	return reached >= c.w && able < c.w
}

// forget clears the store's bit of all holds and attaches them again. A renew under way no longer attaches
// anything. Callers hold l.mu.
func (l *Leases) forget(s *storeLease) {
	s.gen++
	clear(s.refused)
	for _, h := range l.holds {
		l.detach(h, s)
		h.refused &^= s.bit()
		s.pending[h] = struct{}{}
	}
}

// detach clears the store's bit of a hold. Callers hold l.mu.
func (l *Leases) detach(h *Hold, s *storeLease) {
	l.losses.Add(1)
	if h.attached.And(^s.bit())&s.bit() != 0 {
		s.attached--
	}
}

// confirm counts what the renew attached, unless it was sent before a reset, or
// the hold has ended or been refused since: mutation 21. Callers hold l.mu.
func (l *Leases) confirm(s *storeLease, sent sentRenew) {
	if sent.gen != s.gen {
		return
	}
	for _, h := range sent.attach {
		if _, waiting := s.pending[h]; !waiting || h.over.Load() {
			continue
		}
		delete(s.pending, h)
		h.refused &^= s.bit()
		if h.attached.Or(s.bit())&s.bit() == 0 {
			s.attached++
		}
		if !h.isReady && bits.OnesCount64(h.attached.Load()) >= l.now.Load().w {
			h.isReady = true
			close(h.ready)
		}
	}
}

// lasting are the refusals that OnRefused is for.
var lasting = []error{
	seq.ErrNameTaken, seq.ErrBadLease, seq.ErrSessionEnded, seq.ErrNotVoting, seq.ErrForeignCluster, seq.ErrStaleEra,
}

// renewFailed leaves all as it is: whether the store took the renew in is not
// known, and everything in it travels again. Only a store at which another process
// ended the session, taking this one for dead, keeps nothing any more.
func (l *Leases) renewFailed(ctx context.Context, s *storeLease, err error) {
	var refusal error
	for _, e := range lasting {
		if errors.Is(err, e) {
			refusal = e
			break
		}
	}
	l.mu.Lock()
	first := !s.failing || !errors.Is(refusal, s.refusal)
	s.failing, s.refusal = true, refusal
	if errors.Is(err, seq.ErrSessionEnded) {
		l.forget(s)
	}
	l.mu.Unlock()
	if first && !errors.Is(ctx.Err(), context.Canceled) {
		l.cfg.Logger.Warn("renewal failed", "store", s.store.Name, "error", err)
	}
	if refusal != nil && l.cfg.OnRefused != nil {
		l.cfg.OnRefused(fmt.Errorf("renew session %s at store %s: %w", l.cfg.Session, s.store.Name, err))
	}
}
