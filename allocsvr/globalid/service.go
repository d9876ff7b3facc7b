package globalid

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Service is one node's endpoint. Safe for concurrent use.
type Service struct {
	cfg    Config
	log    *slog.Logger
	offers []Namespace
	agents agents

	life context.Context // of what goes on in the background; ends with Release or Run
	end  context.CancelFunc
	wake chan struct{} // of one place: the keeper should look
	news news          // fired when a lease was got, extended, failed to be, or lost

	view   atomic.Pointer[view] // what is known of the namespaces; never nil
	reload chan struct{}        // of one place: taken by who looks for an unknown namespace, for all who do

	mu      sync.Mutex // guards all below and the use of working
	leaving bool
	issuers map[string]*issuer
	held    map[seq.Register]*lease // acquired and not given up; an issuer's current is among them
	claimed map[seq.Register]bool   // an attempt to get it is under way
	random  *rand.Rand

	working sync.WaitGroup // background work
}

// New makes an endpoint that holds nothing yet. seq.ErrBadArgument, seq.ErrBadLayout.
// Run must run for it to hand out IDs for longer than a window.
func New(cfg Config) (*Service, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("snowflake endpoint: %w", err)
	}
	s := &Service{
		cfg: cfg, log: cfg.Logger, wake: make(chan struct{}, 1), reload: make(chan struct{}, 1),
		offers:  append(slices.Clone(cfg.Namespaces), defaultOffers()...),
		issuers: map[string]*issuer{}, held: map[seq.Register]*lease{}, claimed: map[seq.Register]bool{},
		random: rand.New(rand.NewPCG(uint64(cfg.Holder.Session), 0)),
	}
	s.life, s.end = context.WithCancel(context.Background())
	s.show(directory{Format: format}, 0, 0, false)
	return s, nil
}

// Register puts the service on a gRPC server.
func (s *Service) Register(srv grpc.ServiceRegistrar) { pb.RegisterSnowflakeServer(srv, server{s: s}) }

// Run records the configured namespaces, extends windows ahead of need and follows
// changes of the namespaces until ctx ends or the node's datacenter turns out to be
// another's, seq.ErrDatacenterTaken, or a configured namespace to be recorded so that the
// same IDs would mean something else, seq.ErrUnsafeChange.
// Nothing is handed out after it has returned; worker ids are not released, Release
// does that.
func (s *Service) Run(ctx context.Context) error {
	defer s.stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)() // Release ends it as well
	var wg sync.WaitGroup
	wg.Go(func() { s.keep(ctx) })
	err := s.follow(ctx)
	cancel()
	wg.Wait()
	return err
}

// stop ends all background work and has every later request refused. What is held
// stays so at the stores.
func (s *Service) stop() {
	s.mu.Lock()
	s.leaving = true
	s.mu.Unlock()
	s.end()
	s.working.Wait() // an acquisition may still add to what is held
	for _, l := range s.leases() {
		l.gen.Seal()
	}
	s.news.fire()
}

// leases are those that are held.
func (s *Service) leases() []*lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*lease, 0, len(s.held))
	for _, l := range s.held {
		out = append(out, l)
	}
	return out
}

// Release ends the endpoint for a clean leave: no ID is handed out any more, requests
// get seq.ErrShuttingDown, and the worker ids are given back to the stores so that
// nobody waits for the lease to end. Call it before the session is ended, once. An
// error says that the stores did not hear of it; then the leases run out.
//
// The marks stay where they were confirmed: the next holder of a worker id starts
// above the window, not above the last ID.
func (s *Service) Release(ctx context.Context) error {
	s.stop()
	leases := s.leases()
	items := make([]quorum.LeaseItem, 0, len(leases))
	for _, l := range leases {
		s.giveUp(l)
		items = append(items, quorum.LeaseItem{Register: l.register, Round: l.round})
	}
	if err := s.cfg.Holder.Release(ctx, items, 0); err != nil {
		return fmt.Errorf("release worker ids: %w", err)
	}
	return nil
}

// Lost must be called when a store says that a register is another session's, for
// registers of kind seq.KindWorker; others do no harm. It does not block.
func (s *Service) Lost(reg seq.Register, round uint64) {
	s.mu.Lock()
	l := s.held[reg]
	s.mu.Unlock()
	if l != nil && l.round == round {
		s.lose(l, "a store has promised it to another session")
	}
}

// lose stops a lease for good, because somebody else has the worker id, and looks for
// another id if this one was in use.
func (s *Service) lose(l *lease, why string) {
	if !s.giveUp(l) {
		return
	}
	s.log.Warn("worker id lost", "namespace", l.ns.Name, "datacenter", l.datacenter, "worker", l.worker, "round", l.round, "why", why)
	if l.issuer.wanted(s.cfg.Clock.Now()) {
		s.acquireFor(l.issuer)
	}
}

// giveUp seals a lease's generator before anything else, so that no ID can come from
// it once others may have the worker id; false if that was done before.
func (s *Service) giveUp(l *lease) bool {
	l.gen.Seal()
	s.mu.Lock()
	mine := s.held[l.register] == l
	if mine {
		delete(s.held, l.register)
	}
	s.mu.Unlock()
	l.issuer.current.CompareAndSwap(l, nil)
	if mine {
		l.drop()
		s.news.fire()
	}
	return mine
}

// spawn runs f in the background; false once the endpoint is leaving.
func (s *Service) spawn(f func(context.Context)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaving {
		return false
	}
	s.working.Go(func() { f(s.life) })
	return true
}

func (s *Service) isLeaving() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaving
}

func (s *Service) kick() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Service) now() mark { return markOf(s.cfg.Wall()) }

// nodes are the names of the sessions that the stores told of.
func (s *Service) nodes() map[seq.Session]string {
	names := map[seq.Session]string{s.cfg.Holder.Session: s.cfg.Name}
	for _, v := range s.cfg.Sessions() {
		names[v.Session] = v.Name
	}
	return names
}

// news wakes all who wait, once each time.
type news struct {
	mu sync.Mutex // guards ch
	ch chan struct{}
}

// next is closed when something happens after the call.
func (n *news) next() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ch == nil {
		n.ch = make(chan struct{})
	}
	return n.ch
}

func (n *news) fire() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ch != nil {
		close(n.ch)
		n.ch = nil
	}
}

// pause waits for d or until ctx ends; false if it has ended.
func pause(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
	case <-timer.C:
	}
	return ctx.Err() == nil
}
