package gate

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/seq"
)

// Bounds of calls that end before they are served. A call that its peer cancels at once has cost its
// headers, a goroutine and often its work, and the peer has its place among the calls of the
// connection again: so neither that number nor the admission holds up a peer that cancels without end.
//
// A cancelled call counts unless it tells of no such peer: if it was open for longCall, as after a
// deadline in an outage, or if another call was served for it, as beside an attempt that another
// attempt overtook. All calls of a connection may be cancelled at once, and a number of them each second.
const (
	// maxCancels bounds the cancels a second that a server takes from one peer, if routers are among its
	// callers. A router without a certificate looks like a caller, and cancels all that its callers cancel.
	maxCancels = 4096
	// longCall is the time after which a peer may cancel an open call freely. It is below the time that the
	// SDK gives an attempt. With all calls of a connection it allows some thousand cancelled calls a
	// second.
	longCall = 250 * time.Millisecond
	// closedFor is the time that the next connections of a peer wait after one of its connections was
	// closed.
	closedFor = time.Second
	// maxPaused bounds the connections that wait in this way. Further connections are closed.
	maxPaused = 256
	// maxPeers bounds the peers that are remembered.
	maxPeers = 4096
)

var (
	errCancels = errors.New("the peer cancels more calls than it may")
	errPaused  = errors.New("too many connections of peers that cancelled more calls than they may")
)

// cancels bounds what the peers of a server cancel. A peer is an identity in a certificate, else
// the host that the connection comes from. Nodes that prove their role are not bounded.
type cancels struct {
	rate, burst int64 // in calls, a second and at once
	refused     *rpc.Refused
	strange     *openCalls    // of connections without an identity
	proven      *openCalls    // of others, but nodes
	paused      chan struct{} // one for each connection that waits

	mu    sync.Mutex // guards peers
	peers map[any]*canceller
}

// canceller is a peer that has cancelled calls lately.
type canceller struct {
	spent time.Time // burst calls take it into the future by their time at the rate
	until time.Time // the next connections wait until then
}

func newCancels(cfg ServerConfig) *cancels {
	rate := cmp.Or(cfg.MaxCancels, maxCancels)
	return &cancels{rate: int64(rate), burst: int64(max(rate, int(cfg.MaxConcurrentStreams))), refused: cfg.Refused,
		strange: newOpenCalls(cfg.MaxOpen), proven: newOpenCalls(cfg.MaxOpen), paused: make(chan struct{}, maxPaused), peers: map[any]*canceller{}}
}

// peerKey returns the key of a peer in cancels. It is nil for a node, which has no bound.
func peerKey(addr net.Addr, info credentials.AuthInfo) any {
	if proven, ok := info.(rpc.ShownInfo); ok {
		switch id := proven.Evidence.Identity; id.Role {
		case auth.Store, auth.Alloc, auth.Router:
			return nil
		case "":
		default:
			return id
		}
	}
	at, err := netip.ParseAddrPort(addr.String())
	if err != nil {
		return addr.String()
	}
	host := at.Addr().Unmap()
	if host.Is6() { // a host has all of these
		return netip.PrefixFrom(host, 64).Masked()
	}
	return host
}

// count notes cancelled calls of a peer, and reports whether they are more than it may have.
func (c *cancels) count(who any, calls int64, now time.Time) (tooMany bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.peers[who]
	if p == nil {
		c.forget(now)
		p = &canceller{}
		c.peers[who] = p
	}
	if p.spent.Before(now) {
		p.spent = now
	}
	each := time.Second / time.Duration(c.rate)
	spent := p.spent.Add(time.Duration(calls) * each)
	if spent.Sub(now) <= time.Duration(c.burst)*each {
		p.spent = spent
		return false
	}
	p.until = now.Add(closedFor)
	return true
}

// forget drops peers once there are many: those that may cancel as much as ever, and if that leaves
// too many, any. Needs mu.
func (c *cancels) forget(now time.Time) {
	if len(c.peers) < maxPeers {
		return
	}
	for who, p := range c.peers {
		if p.spent.Before(now) && p.until.Before(now) {
			delete(c.peers, who)
		}
	}
	for who := range c.peers {
		if len(c.peers) < maxPeers/2 { // else the next peer would look at all again
			return
		}
		delete(c.peers, who)
	}
}

// pause returns the time that a new connection of a peer waits.
func (c *cancels) pause(who any) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.peers[who]; p != nil {
		return time.Until(p.until)
	}
	return 0
}

// wait holds up a new connection of a peer of which one was closed lately. The connections that wait
// have no order: one of a neighbour of that peer is served as soon as the peer's own.
func (c *cancels) wait(who any) error {
	pause := c.pause(who)
	if pause <= 0 {
		return nil
	}
	select {
	case c.paused <- struct{}{}:
	default:
		return errPaused
	}
	time.Sleep(pause)
	<-c.paused
	return nil
}

// watch counts what is cancelled on a connection, after the handshake; nil for one of a node.
func (c *cancels) watch(conn net.Conn, info credentials.AuthInfo) (*watched, error) {
	who := peerKey(conn.RemoteAddr(), info)
	if who == nil {
		return nil, nil
	}
	if err := c.wait(who); err != nil {
		c.refused.Note(rpc.RefusedCancelled, conn.RemoteAddr().String())
		return nil, err
	}
	return &watched{Conn: conn, by: c, who: who, calls: c.openKind(who), in: frames{skip: preface}, open: map[uint32]struct{}{}}, nil
}

// serve notes a call that was served, unless its peer has left it.
func (t *traffic) serve(ctx context.Context) {
	if t != nil && ctx.Err() == nil {
		t.wire.serves()
	}
}

// refuse counts a call of a stranger as a cancelled one.
func (t *traffic) refuse(err error) {
	if t != nil && t.wire != nil && errors.Is(err, seq.ErrUnauthenticated) {
		t.wire.cancelled(1)
	}
}
