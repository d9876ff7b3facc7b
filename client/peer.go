package client

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// peer is the connection to one address.
type peer struct {
	c    *Client
	addr string
	conn *grpc.ClientConn
	rpc  pb.SequenceClient
	ids  pb.SnowflakeClient
	segs pb.SegmentClient
	seed bool // of Config.Addrs: kept whatever the table says

	// suspect: the last that was heard is a lost attempt. Then one call at a time
	// goes there, which holds probing, and the others go elsewhere.
	suspect atomic.Bool
	probing atomic.Bool

	doubt doubt // of calls that any AllocSvr answers

	lanes   [2]*lane
	balance balance
}

func newPeer(c *Client, addr string, conn *grpc.ClientConn) *peer {
	p := &peer{
		c: c, addr: addr, conn: conn,
		rpc: pb.NewSequenceClient(conn), ids: pb.NewSnowflakeClient(conn), segs: pb.NewSegmentClient(conn),
	}
	p.balance.born = time.Now()
	for i := range p.lanes {
		p.lanes[i] = newLane(p, &p.balance.load[i])
	}
	return p
}

// admit says whether a call may go to the peer now, and whether it is the probe of a
// suspect, to be given back by release.
func (p *peer) admit() (ok, probe bool) {
	if !p.suspect.Load() {
		return true, false
	}
	ok = p.probing.CompareAndSwap(false, true)
	return ok, ok
}

func (p *peer) release(probe bool) {
	if probe {
		p.probing.Store(false)
	}
}

// answered notes any word from the peer.
func (p *peer) answered() {
	if p.suspect.Load() {
		p.suspect.Store(false)
		p.c.cfg.Logger.Debug("peer answers again", "addr", p.addr)
	}
}

// lost notes an attempt without an answer, which may mean that the table is old.
func (p *peer) lost(cause error) {
	if !p.suspect.Swap(true) {
		p.c.cfg.Logger.Debug("peer lost", "addr", p.addr, "cause", cause)
		p.c.Refresh()
	}
}

// streamEnded is what the end of a stream means for the calls on it. A peer that has not
// begun to serve says so; every other end is a lost attempt.
func (p *peer) streamEnded(cause error) error {
	if errors.Is(cause, seq.ErrNoQuorum) {
		return cause
	}
	p.lost(cause)
	return &lostError{p.addr, cause}
}

// call makes one unary attempt and sorts its error.
func (p *peer) call(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	attempt, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := do(attempt)
	if err == nil {
		p.answered()
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	err = callError(attempt, p.addr, err)
	if lost, ok := err.(*lostError); ok {
		p.lost(lost.cause)
	} else {
		p.answered()
	}
	return err
}

// room is how many keys may wait for a stream: MaxQueue for both together.
func (p *peer) room(lane int) int { return (p.c.cfg.MaxQueue + 1 - lane) / 2 }

// enqueue gives a key a place in a flight on one of the streams. Without an error the
// flight is completed exactly once, within about AttemptTimeout.
func (p *peer) enqueue(space *seq.Space, uid seq.UID, count uint32) (ticket, error) {
	k := p.balance.pick()
	t, full, err := p.lanes[k].enqueue(space, uid, count, p.room(k))
	if full {
		t, _, err = p.lanes[1-k].enqueue(space, uid, count, p.room(1-k))
	}
	return t, err
}

// enqueueAll is enqueue for the keys of a batch at idx, all in one flight.
func (p *peer) enqueueAll(space *seq.Space, b *batch, idx []int) (ticket, error) {
	k := p.balance.pick()
	t, full, err := p.lanes[k].enqueueAll(space, b, idx, p.room(k))
	if full {
		t, _, err = p.lanes[1-k].enqueueAll(space, b, idx, p.room(1-k))
	}
	return t, err
}

func (p *peer) sweep(now time.Time) {
	for _, l := range p.lanes {
		l.sweep(now)
	}
}

func (p *peer) close(cause error) {
	for _, l := range p.lanes {
		l.close(cause)
	}
	_ = p.conn.Close()
}
