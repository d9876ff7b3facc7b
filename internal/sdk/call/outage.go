package call

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/internal/sdk/route"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/seq"
)

// How the AllocSvr are asked whether they have a quorum.
const (
	// outageBound bounds the wait for an answer. An AllocSvr answers this question without waiting, so a
	// longer silence means that it cannot be reached.
	outageBound = 500 * time.Millisecond
	// outagePatience is the time for which all AllocSvr must agree. Stores that restart together, or a
	// machine that stood still, must not end calls that have seconds left.
	outagePatience = 500 * time.Millisecond
	outagePause    = 250 * time.Millisecond // between two questions
	// outageQuiet ends the questions when no call has heard of an outage for so long.
	outageQuiet = 2 * time.Second
	// outageSilence is the time without an answer from any AllocSvr after which one of several Sets counts
	// as unreachable. It covers a takeover, and a restart of all of them.
	outageSilence = 2 * time.Second
	outageRetry   = time.Second // between two questions to a Set that cannot be reached
)

// outage decides whether the quorum of stores of a Set is lost, once an attempt was answered
// with NO_QUORUM.
//
// One AllocSvr that says so may be cut off from the stores alone. The others then take
// its sections over, and calls go on to their deadline. The quorum is lost if all AllocSvr
// that can be reached, and at least one can, say so for outagePatience: then none can take
// over, and calls end with NO_QUORUM at the end of their round. An AllocSvr that cannot be
// reached does not count, since it would serve no call either.
//
// If none can be reached, that is the caller's network as likely as not, and calls to a cluster
// that is alone go on to their deadline. One of several Sets is given up after outageSilence:
// then calls for it end at the end of their round, until one of its AllocSvr answers again.
type outage struct {
	heard chan struct{} // cap 1: an attempt was answered with NO_QUORUM, or a round by no server

	mu   sync.Mutex    // guards all below
	last error         // the newest NO_QUORUM
	lost chan struct{} // closed while is is not nil
	is   error         // errNoQuorum: the quorum is lost; errSilent: the Set cannot be reached
	away error         // what calls end with then
}

// care is what calls know of a Set beside its table.
type care struct {
	outage
	c  *Caller
	of *route.Set

	// relay is the address of Config that last answered for the Set without being its node, such as a
	// router; nil if none did. relays lets one call at a time test whether another such address answers.
	relay  atomic.Pointer[route.Server]
	relays health
}

func newCare(c *Caller, of *route.Set) *care {
	return &care{outage: outage{heard: make(chan struct{}, 1), lost: make(chan struct{})}, c: c, of: of}
}

// careOf is what is known of a Set.
func careOf(of *route.Set) *care { return of.Care.(*care) }

// Hear notes a NO_QUORUM.
func (o *outage) Hear(err error) {
	o.mu.Lock()
	o.last = err
	o.mu.Unlock()
	o.suspect()
}

// suspect has the AllocSvr be asked.
func (o *outage) suspect() {
	select {
	case o.heard <- struct{}{}:
	default:
	}
}

// Lost is a channel that is closed while the quorum is lost.
func (o *outage) Lost() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lost
}

// Reason is a seq.ErrNoQuorum during an outage, the newest where AllocSvr say so; else nil.
func (o *outage) Reason() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch o.is {
	case nil:
		return nil
	case errSilent:
		return o.away
	}
	return o.last
}

// unreachable returns the error that ends calls while no AllocSvr answers, or nil if they go on.
func (o *outage) unreachable() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.is != errSilent {
		return nil
	}
	return o.away
}

// set notes an outage, nil for none, and whether it was noted before.
func (o *outage) set(is, away error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case is != nil && o.is == nil:
		close(o.lost)
	case is == nil && o.is != nil:
		o.lost = make(chan struct{})
	}
	o.is, o.away = is, away
}

// QuorumLost is a seq.ErrNoQuorum while calls end after one round because no AllocSvr that can
// be reached has a quorum of stores; nil as long as no call has met that. Of several Sets: while
// that is so of each of them.
func (c *Caller) QuorumLost() error {
	v := c.table.View()
	if v == nil {
		return c.table.First().Care.Reason()
	}
	var last error
	for _, p := range v.Parts {
		if last = p.Of.Care.Reason(); last == nil {
			return nil
		}
	}
	return last
}

// Run asks all AllocSvr of the Set, from the first NO_QUORUM, or round without an answer, until
// one of them says otherwise or no call meets that any more.
func (s *care) Run() {
	c, o := s.c, &s.outage
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-o.heard:
		}
		var since time.Time // of the first question in a row that all answered alike
		var before error
		for heard := time.Now(); time.Since(heard) < outageQuiet || o.unreachable() != nil; {
			asked := time.Now()
			found, all := s.survey()
			if found == nil || found == errSilent && c.table.Alone() {
				break
			}
			if found != before {
				before, since = found, asked
			}
			if asked.Sub(since) >= patienceWith(found) {
				o.set(found, s.awayError(all))
			}
			pause := outagePause
			if o.unreachable() != nil {
				pause = outageRetry
				c.table.First().Poke() // its addresses may have changed
			}
			if !wake.Sleep(c.ctx, pause) {
				return
			}
			select {
			case <-o.heard:
				heard = time.Now()
			default:
			}
		}
		o.set(nil, nil)
		if !wake.Sleep(c.ctx, outagePause) {
			return
		}
	}
}

func patienceWith(found error) time.Duration {
	if found == errSilent {
		return outageSilence
	}
	return outagePatience
}

// awayError is what calls for a Set end with that cannot be reached.
func (s *care) awayError(servers int) error {
	return s.of.Named(fmt.Errorf("%w: none of its %d AllocSvr that are known answers: %w", seq.ErrNoQuorum, servers, ErrUnreachable))
}

// survey asks all AllocSvr of the Set at once: nil if one has a quorum, or does not know the
// question, as an older build; errNoQuorum if some answer, and none of those has one; errSilent
// if none answers.
func (s *care) survey() (found error, asked int) {
	ctx, cancel := context.WithTimeout(s.c.ctx, outageBound)
	defer cancel()
	all := s.of.Allocs()
	answers := make(chan error, len(all)) // errNoQuorum, errSilent, or nil
	for _, one := range all {
		s.c.tasks.Go(func() { answers <- peer(one).askQuorum(ctx) })
	}
	found = errSilent
	for range all {
		switch <-answers {
		case nil:
			return nil, len(all)
		case errNoQuorum:
			found = errNoQuorum
		}
	}
	return found, len(all)
}

// askQuorum is errNoQuorum, errSilent, or nil for everything else.
func (s *Server) askQuorum(ctx context.Context) error {
	reply, err := healthpb.NewHealthClient(s.conn).Check(ctx, &healthpb.HealthCheckRequest{Service: rpc.QuorumHealth})
	switch status.Code(err) {
	case codes.OK:
		if reply.GetStatus() == healthpb.HealthCheckResponse_NOT_SERVING {
			return errNoQuorum
		}
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return errSilent
	}
	return nil
}
