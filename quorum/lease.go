package quorum

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

// Rho bounds how far the rates of two clocks differ from true time. It is 1 %, some hundred times the error
// of an undisciplined quartz.
//
// A store that counts Lease on a fast clock ends it after Lease/(1+Rho) of true time. A slow clock here
// shows only (1-Rho) of that time. Because (1-Rho)/(1+Rho) > 1-2*Rho, Term uses the factor 1-2*Rho.
const Rho = 0.01

// Guard is the time by which a holder stops early because clocks tick: a reading may be old by up to one
// tick. The store's reading at receipt and the holder's reading when it serves each count against the
// holder, and the other two readings count for it. The coarsest tick in use is 4 ms (HZ=250), and durations
// on the wire may be rounded by 1 ms at each end: 2*4 + 2*1 = 10 ms.
const Guard = 10 * time.Millisecond

// MinLease keeps Guard below a tenth of the lease.
const MinLease = 10 * Guard

// renewals is the number of renews in one lease.
const renewals = 5

// Term returns the time after the sending of a renew for which the holder may trust it.
func Term(lease time.Duration) time.Duration {
	return lease - time.Duration(2*Rho*float64(lease)) - Guard
}

// Clock is the machine's clock since boot, suspend included. Only differences
// mean anything.
type Clock interface {
	Now() time.Duration
}

// LeaseConfig describes one session and what is called when. The callbacks may be
// nil, come from several goroutines at once and must not block: renewals wait
// for them.
type LeaseConfig struct {
	Ref        Ref
	Session    seq.Session
	Secret     seq.Secret    // of Session
	Name, Addr string        // of this AllocSvr, told to the others
	Lease      time.Duration // at least MinLease, and at most what the stores allow
	N, W       int
	Clock      Clock
	Wall       func() time.Time // with which ClockAhead compares the stores' clocks; if nil, time.Now
	Logger     *slog.Logger     // may be nil

	// Step is Group.Step of the session. It brings promises to stores that missed them. If nil, only the
	// owners' own steps do.
	Step func(ctx context.Context, session seq.Session, items []StepItem) []Outcome

	// OnLost is called once for each hold that has ended without Drop. The hold
	// says so itself by then.
	OnLost func(*Hold)
	// OnRefused is called each time that a store refuses a renewal for a reason
	// that may not pass by itself: seq.ErrNameTaken, seq.ErrBadLease,
	// seq.ErrSessionEnded, seq.ErrNotVoting,
	// seq.ErrForeignCluster, seq.ErrStaleEra.
	OnRefused func(err error)
	// OnRoutes is called when RouteVersion has gone up.
	OnRoutes func()
	// OnSessions is called when Sessions changed in more than its times.
	OnSessions func()
}

func (c LeaseConfig) validate(stores []NamedStore) error {
	if err := (Config{N: c.N, R: c.N, W: c.W}).Validate(); err != nil {
		return err
	}
	switch {
	case c.Session == 0:
		return fmt.Errorf("%w: session 0", ErrBadConfig)
	case c.Clock == nil:
		return fmt.Errorf("%w: no clock", ErrBadConfig)
	case c.Lease < MinLease:
		return fmt.Errorf("%w: %s, expected at least %s", seq.ErrBadLease, c.Lease, MinLease)
	}
	return checkStores(stores, c.N)
}

// Leases keeps one session alive at all stores, and what it holds attached there.
// It is safe for concurrent use; Hold.Until takes no lock.
type Leases struct {
	cfg  LeaseConfig
	term time.Duration // Term(cfg.Lease)

	// now is the stores whose leases count; written under mu, by Reconfigure.
	now atomic.Pointer[leaseVoters]

	// sent is, for each store, the clock before the sending of the newest renew
	// that the store answered; never if there is none. Never goes back.
	//
	//	bit i of Hold.attached is set  =>  no other session gets the register from
	//	                                   store i before sent[i] + term, except by
	//	                                   preemption (PrepareRequest.Preempt)
	//
	// so bits are cleared before sent moves on, and Until reads sent before bits.
	sent [maxSlots]atomic.Int64

	// clocks is, for each store, by how many nanoseconds its wall clock was ahead of the session's
	// clock when its newest reply arrived; unheard if that is not known. Written under mu.
	clocks [maxSlots]atomic.Int64

	// rooms is, for each store, the memory for exact spaces in its newest reply; nil if there is none.
	// Written under mu.
	rooms [maxSlots]atomic.Pointer[Room]

	losses  atomic.Uint64 // see Losses; written under mu
	routes  atomic.Uint64 // highest RenewReply.RouteVersion
	running atomic.Bool
	loops   sync.WaitGroup
	missed  chan struct{} // has a value once a store refused to keep something

	mu sync.Mutex // guards all below, what storeLease says so of, and all writes to Hold.attached
	// holds are the live ones.
	holds map[seq.Register]*Hold
	// ended is the highest round of each register that was dropped, lost or
	// replaced. Nothing at or below it is ever attached again: a message that was
	// long under way could still detach it at a store.
	ended    map[seq.Register]uint64
	sessions map[seq.Session]*sessionRecord
	made     uint64          // renews made so far, to any store
	life     context.Context // of Run; nil before and after
}

const never = -1 << 62

// NewLeases makes the leases of one session. Nothing is sent before Run.
func NewLeases(cfg LeaseConfig, stores []NamedStore) (*Leases, error) {
	if err := cfg.validate(stores); err != nil {
		return nil, err
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Wall == nil {
		cfg.Wall = time.Now
	}
	l := &Leases{
		cfg: cfg, term: Term(cfg.Lease),
		holds: map[seq.Register]*Hold{}, ended: map[seq.Register]uint64{},
		sessions: map[seq.Session]*sessionRecord{}, missed: make(chan struct{}, 1),
	}
	c := &leaseVoters{ref: cfg.Ref, n: cfg.N, w: cfg.W}
	for i := range l.sent {
		l.sent[i].Store(never)
		l.clocks[i].Store(unheard)
	}
	for i := range stores {
		c.add(newStoreLease(i, stores[i]))
	}
	l.now.Store(c)
	return l, nil
}

// Run renews until ctx ends and returns nil then. It runs once; a second call is
// an error. After it, leases end by themselves or by Group.EndSession.
func (l *Leases) Run(ctx context.Context) error {
	if l.running.Swap(true) {
		return fmt.Errorf("%w: leases of session %s run already", ErrBadConfig, l.cfg.Session)
	}
	l.mu.Lock()
	l.life = ctx
	for _, s := range l.now.Load().stores {
		l.startLoop(s)
	}
	l.mu.Unlock()
	if l.cfg.Step != nil {
		l.loops.Go(func() { l.bring(ctx) })
	}
	<-ctx.Done()
	l.mu.Lock()
	l.life = nil // no loop starts any more
	l.mu.Unlock()
	l.loops.Wait()
	return nil
}

// Kick sends the next renew to every store at once, or right after the one that
// is under way.
func (l *Leases) Kick() {
	for _, s := range l.now.Load().stores {
		s.wake()
	}
}

// Connected returns the number of stores that answered within the lease.
func (l *Leases) Connected() int {
	now, n := int64(l.cfg.Clock.Now()), 0
	for _, s := range l.now.Load().stores {
		if now < l.sent[s.index].Load()+int64(l.term) {
			n++
		}
	}
	return n
}

// Missing returns the names of the stores that did not answer within the lease, in the order of the member
// list.
func (l *Leases) Missing() []string {
	now := int64(l.cfg.Clock.Now())
	var names []string
	for _, s := range l.now.Load().stores {
		if now >= l.sent[s.index].Load()+int64(l.term) {
			names = append(names, s.store.Name)
		}
	}
	return names
}

// Granted reports whether W stores answered within the lease, so that holds can be attached at W stores.
func (l *Leases) Granted() bool { return l.Connected() >= l.now.Load().w }

// Ended reports whether so many stores have ended the session that W stores can never grant it a lease
// again.
func (l *Leases) Ended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, ended := l.now.Load(), 0
	for _, s := range c.stores {
		if errors.Is(s.refusal, seq.ErrSessionEnded) {
			ended++
		}
	}
	return ended > c.n-c.w
}

// Losses counts events after which a hold of these leases may be worth less than its send times say. It
// rises before a bit of attached is cleared, and before another member list counts. An answer of Until
// stays good while the count is the one that was read before it. So the owner may read the count once for
// each batch, after its last request has arrived, instead of asking every hold.
func (l *Leases) Losses() uint64 { return l.losses.Load() }

// RouteVersion returns the highest version of the route table that a store reported.
func (l *Leases) RouteVersion() uint64 { return l.routes.Load() }

// renewLoop is the only one that sends renews to its store, so that they are
// processed in the order in which they were sent, unless one of them timed out.
func (l *Leases) renewLoop(ctx context.Context, s *storeLease) {
	every := l.cfg.Lease / renewals
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-s.kick:
		}
		start := time.Now()
		again := l.renewOnce(ctx, s)
		timer.Reset(max(0, every-time.Since(start)))
		if again {
			s.wake()
		}
	}
}

// renewOnce sends one renew and takes in its reply; again if the next one should
// not wait.
func (l *Leases) renewOnce(ctx context.Context, s *storeLease) (again bool) {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Lease)
	defer cancel()
	req, sent, current := l.prepareRenew(s)
	if !current {
		return false
	}
	sent.wall = l.cfg.Wall()
	sent.at = l.cfg.Clock.Now() // before sending: mutation 15
	reply, err := s.store.Store.Renew(ctx, req)
	if err != nil {
		l.renewFailed(ctx, s, err)
		return false
	}
	return l.renewed(s, sent, reply, l.cfg.Clock.Now())
}
