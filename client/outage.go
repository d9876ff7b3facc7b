package client

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/internal/rpc"
	"github.com/seqsvr/seqsvr/internal/wake"
)

// How the AllocSvr are asked whether they have a quorum.
const (
	// outageBound is how long an answer may take. The AllocSvr waits for nothing before it
	// answers, so one that is silent for so long cannot be reached.
	outageBound = 500 * time.Millisecond
	// outagePatience is for how long all must agree. Stores that restart together, or a
	// machine that stood still, must not end calls that have seconds left.
	outagePatience = 500 * time.Millisecond
	outagePause    = 250 * time.Millisecond // between two questions
	// outageQuiet ends the questions when no call has heard of an outage for so long.
	outageQuiet = 2 * time.Second
)

// outage decides whether the quorum of stores is lost, once an attempt was answered with
// NO_QUORUM.
//
// One AllocSvr that says so may be cut off from the stores alone. The others then take
// its sections over, and calls go on to their deadline. The quorum is lost if all AllocSvr
// that can be reached, and at least one can, say so for outagePatience: then none can take
// over, and calls end with NO_QUORUM at the end of their round. An AllocSvr that cannot be
// reached does not count, since it would serve no call either.
type outage struct {
	heard chan struct{} // cap 1: an attempt was answered with NO_QUORUM

	mu   sync.Mutex    // guards all below
	last error         // the newest NO_QUORUM
	lost chan struct{} // closed while the quorum is lost
	is   bool          // lost is closed
}

func newOutage() *outage {
	return &outage{heard: make(chan struct{}, 1), lost: make(chan struct{})}
}

// hear notes a NO_QUORUM.
func (o *outage) hear(err error) {
	o.mu.Lock()
	o.last = err
	o.mu.Unlock()
	select {
	case o.heard <- struct{}{}:
	default:
	}
}

// known is a channel that is closed while the quorum is lost.
func (o *outage) known() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lost
}

// reason is the newest NO_QUORUM while the quorum is lost, else nil.
func (o *outage) reason() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.is {
		return nil
	}
	return o.last
}

func (o *outage) set(lost bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case lost && !o.is:
		close(o.lost)
	case !lost && o.is:
		o.lost = make(chan struct{})
	}
	o.is = lost
}

// QuorumLost is a seq.ErrNoQuorum while calls end after one round because no AllocSvr that can
// be reached has a quorum of stores; nil as long as no call has met that.
func (c *Client) QuorumLost() error { return c.outage.reason() }

// watch asks all AllocSvr, from the first NO_QUORUM until one of them says otherwise or no
// attempt is answered so any more.
func (o *outage) watch(c *Client) {
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-o.heard:
		}
		var since time.Time // of the first question in a row that all answered alike
		for heard := time.Now(); time.Since(heard) < outageQuiet; {
			asked := time.Now()
			if !noneHasQuorum(c) {
				break
			}
			if since.IsZero() {
				since = asked
			} else if asked.Sub(since) >= outagePatience {
				o.set(true)
			}
			if !wake.Sleep(c.ctx, outagePause) {
				return
			}
			select {
			case <-o.heard:
				heard = time.Now()
			default:
			}
		}
		o.set(false)
		if !wake.Sleep(c.ctx, outagePause) {
			return
		}
	}
}

// noneHasQuorum asks all AllocSvr of the table, or all of Config.Addrs without one, at
// once. It is true if some answer, and all that do have no quorum. One that does not know
// the question, as an older build, counts as having one.
func noneHasQuorum(c *Client) bool {
	ctx, cancel := context.WithTimeout(c.ctx, outageBound)
	defer cancel()
	all := c.servers.allocs()
	answers := make(chan error, len(all)) // errNoQuorum, errSilent, or nil
	for _, s := range all {
		c.tasks.Go(func() { answers <- s.askQuorum(ctx) })
	}
	answered := false
	for range all {
		switch <-answers {
		case nil:
			return false
		case errNoQuorum:
			answered = true
		}
	}
	return answered
}

// askQuorum is errNoQuorum, errSilent, or nil for everything else.
func (s *server) askQuorum(ctx context.Context) error {
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
