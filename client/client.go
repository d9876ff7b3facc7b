package client

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/rpc"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// maxPeers bounds the connections, so that answers full of addresses cannot make more.
const maxPeers = 4096

// Key names one sequence.
type Key struct {
	Space string // "" is seq.DefaultSpace
	UID   seq.UID
}

// StringKey is the key of a name, by seq.HashKey.
func StringKey(space, key string) Key { return Key{Space: space, UID: seq.HashKey(key)} }

// String gives space and UID as "user/42".
func (k Key) String() string {
	space := k.Space
	if space == "" {
		space = seq.DefaultSpace
	}
	return space + "/" + strconv.FormatUint(uint64(k.UID), 10)
}

// Range is the numbers First to Last, inclusive and contiguous, taken for one key.
// With Err it is empty: First and Last are 0.
type Range struct {
	First, Last seq.Seq
	Unordered   bool // unique, but perhaps not the largest so far; needs Config.AllowUnordered
	Err         error
}

// Client talks to one cluster. It is safe for concurrent use; make one and share it.
type Client struct {
	cfg  Config
	view atomic.Pointer[view] // nil until the first table

	ready     chan struct{} // closed with the first table
	foreign   chan struct{} // closed when all Addrs belong to another cluster
	stale     chan struct{} // cap 1: asks for a newer table
	ctx       context.Context
	cancel    context.CancelFunc
	tasks     sync.WaitGroup
	seeds     []*peer // Config.Addrs, fixed
	seedFirst int     // where to begin in seeds: random, so that many clients spread
	seedTurn  atomic.Uint32
	turn      atomic.Uint32 // where the next call for any AllocSvr begins
	outage    *outage
	singles   singles
	fallback  *fallback  // nil: none
	adoptMu   sync.Mutex // held while a new view is made, so that versions only rise
	lastFault atomic.Pointer[error]
	counts    counts

	peersMu sync.RWMutex // guards peers and closed
	peers   map[string]*peer
	closed  bool
}

// New makes a Client and waits for its first route table until ctx ends, or
// Config.Timeout if it has no deadline; with Config.Lazy it does not wait.
// seq.ErrBadArgument for a Config that is not sound, seq.ErrNoRoute when no address
// gave a table, seq.ErrForeignCluster when one belongs to another cluster than
// Config.ClusterID. Close the Client in the end.
func New(ctx context.Context, cfg Config) (*Client, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("new client: %w", err)
	}
	c := &Client{
		cfg:   cfg,
		ready: make(chan struct{}),
		stale: make(chan struct{}, 1),
		peers: map[string]*peer{}, outage: newOutage(),

		foreign:   make(chan struct{}),
		seedFirst: rand.IntN(len(cfg.Addrs)),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.singles = singles{c: c, spaces: map[string]*gathering{}}
	for _, addr := range cfg.Addrs {
		p, err := c.peerAt(addr)
		if err != nil {
			_ = c.Close()
			return nil, fmt.Errorf("new client: %w", err)
		}
		p.seed = true
		c.seeds = append(c.seeds, p)
	}
	c.tasks.Go(c.refreshLoop)
	c.tasks.Go(c.sweepLoop)
	c.tasks.Go(c.watchOutage)
	if cfg.Fallback != nil {
		c.fallback = &fallback{cfg: *cfg.Fallback, clock: snowflake.SystemClock}
		c.tasks.Go(c.keepLoan)
	}
	if cfg.Lazy {
		return c, nil
	}
	if err := c.Ready(ctx); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("new client: %w", err)
	}
	return c, nil
}

// Ready waits for the first route table until ctx ends, or Config.Timeout if ctx has
// no deadline. It gives up at once with seq.ErrForeignCluster after all addresses of
// Config said that they belong to another cluster. The error wraps the last reason why there is none.
func (c *Client) Ready(ctx context.Context) error { return c.await(ctx, nil) }

// Reach is Ready for callers that wait as a call does: it also ends with
// seq.ErrNoQuorum once all Addrs that answer say that they have no quorum of stores.
func (c *Client) Reach(ctx context.Context) error {
	_, err := c.current(ctx)
	return err
}

// await is Ready that also gives up when lost is closed.
func (c *Client) await(ctx context.Context, lost <-chan struct{}) error {
	select {
	case <-c.ready:
		return nil
	default:
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.cfg.Timeout)
		defer cancel()
	}
	select {
	case <-c.ready:
		return nil
	case <-c.ctx.Done():
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("wait for the first route table: %w: %w", ctx.Err(), c.whyNoTable())
	case <-lost:
		return fmt.Errorf("wait for the first route table: %w", cmp.Or(c.outage.reason(), c.whyNoTable()))
	case <-c.foreign:
		return fmt.Errorf("wait for the first route table: %w", c.whyNoTable())
	}
}

func (c *Client) whyNoTable() error {
	if last := c.lastFault.Load(); last != nil {
		return *last
	}
	return seq.ErrNoRoute
}

// Close ends all calls in flight with ErrClosed and waits for the Client's own
// goroutines. Calls after it fail with ErrClosed. It is safe to call twice.
func (c *Client) Close() error {
	c.cancel()
	c.singles.close()
	c.peersMu.Lock()
	c.closed = true
	gone := c.peers
	c.peers = map[string]*peer{}
	c.peersMu.Unlock()
	for _, p := range gone {
		p.close(ErrClosed)
	}
	c.tasks.Wait()
	return nil
}

// peerAt finds or makes the connection to addr.
func (c *Client) peerAt(addr string) (*peer, error) {
	c.peersMu.RLock()
	p, closed := c.peers[addr], c.closed
	c.peersMu.RUnlock()
	if closed {
		return nil, ErrClosed
	}
	if p != nil {
		return p, nil
	}
	c.peersMu.Lock()
	defer c.peersMu.Unlock()
	if p := c.peers[addr]; p != nil {
		return p, nil
	}
	if c.closed {
		return nil, ErrClosed
	}
	if len(c.peers) >= maxPeers {
		return nil, fmt.Errorf("%w: %d peers known, %s is one too many", seq.ErrOverloaded, len(c.peers), addr)
	}
	opts := append([]grpc.DialOption{rpc.SayCluster(c.ClusterID)}, c.cfg.DialOptions...)
	conn, err := rpc.Dial(addr, opts...)
	if err != nil {
		return nil, err
	}
	p = newPeer(c, addr, conn)
	c.peers[addr] = p
	return p, nil
}

// sweepLoop gives up attempts that take too long. One ticker for all calls costs
// less than a timer for each.
func (c *Client) sweepLoop() {
	tick := time.NewTicker(max(c.cfg.AttemptTimeout/4, time.Millisecond))
	defer tick.Stop()
	var all []*peer
	for {
		select {
		case <-c.ctx.Done():
			return
		case now := <-tick.C:
			all = all[:0]
			c.peersMu.RLock()
			for _, p := range c.peers {
				all = append(all, p)
			}
			c.peersMu.RUnlock()
			for _, p := range all {
				p.sweep(now)
			}
		}
	}
}
