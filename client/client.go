package client

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Key names one sequence: of a UID, or made by StringKey.
type Key struct {
	Space string // "" is seq.DefaultSpace
	UID   seq.UID

	name  string // of a StringKey
	named bool
}

// StringKey is the sequence of a string key: 1 to seq.MaxKey bytes of UTF-8. It is sent as
// it is, since AllocSvr alone know under which secret keys are hashed.
func StringKey(space, key string) Key { return Key{Space: space, name: key, named: true} }

// check is seq.ErrBadArgument for a string key that cannot be.
func (k Key) check() error {
	if !k.named {
		return nil
	}
	return seq.CheckKey("key", k.name)
}

// place decides the section.
func (k Key) place() seq.UID {
	if k.named {
		return seq.HashKey(k.name)
	}
	return k.UID
}

// alone is a batch of it.
func (k Key) alone() keys {
	if k.named {
		return keysOf([]string{k.name})
	}
	return keys{places: []seq.UID{k.UID}}
}

// keys are those of one call: UIDs, or string keys.
type keys struct {
	places []seq.UID // what decides the sections: the UIDs themselves, or the public hashes of names
	names  []string  // nil: UIDs
}

func keysOf(names []string) keys {
	k := keys{make([]seq.UID, len(names)), names}
	for i, name := range names {
		k.places[i] = seq.HashKey(name)
	}
	return k
}

// at is one of them.
func (k keys) at(space string, i int) Key {
	if k.names != nil {
		return StringKey(space, k.names[i])
	}
	return Key{Space: space, UID: k.places[i]}
}

// check is seq.ErrBadArgument for string keys that cannot be.
func (k keys) check() error {
	for i, name := range k.names {
		if err := seq.CheckKey("key", name); err != nil {
			return fmt.Errorf("index %d: %w", i, err)
		}
	}
	return nil
}

// batch is the keys at idx as they travel.
func (k keys) batch(space *seq.Space, idx []int) *pb.Batch {
	b := &pb.Batch{Space: space.Name}
	if k.names != nil {
		b.Keys = make([]string, len(idx))
		for j, i := range idx {
			b.Keys[j] = k.names[i]
		}
		return b
	}
	b.Uids = make([]uint64, len(idx))
	for j, i := range idx {
		b.Uids[j] = uint64(k.places[i])
	}
	return b
}

// String gives space and key as "user/42", or as `user/"room:7"`.
func (k Key) String() string {
	space := k.Space
	if space == "" {
		space = seq.DefaultSpace
	}
	if k.named {
		return space + "/" + strconv.Quote(k.name)
	}
	return space + "/" + strconv.FormatUint(uint64(k.UID), 10)
}

// Range is the numbers First to Last, inclusive and contiguous, taken for one key.
// With Err it is empty: First and Last are 0.
type Range struct {
	First, Last seq.Seq
	Unordered   bool // unique, but perhaps not the largest so far; needs Config.AllowUnordered
	// Replayed: the request id had these numbers before, by an earlier call or by a lost attempt
	// of this one. Only in spaces of mode=exact.
	Replayed bool
	Err      error
}

// Client talks to one cluster. It is safe for concurrent use; make one and share it.
type Client struct {
	cfg       Config
	servers   servers
	table     table
	ids       idQueues
	fallbacks fallbacks
	lent      lent
	turn      atomic.Uint32 // where the next round that asks all in turn begins
	counts    counts

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup // the Client's own goroutines
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
	c := &Client{cfg: cfg}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.table.open(c)
	c.ids.open(c)
	if err := c.servers.open(c); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("new client: %w", err)
	}
	c.table.home.begin()
	c.tasks.Go(c.servers.sweepLoop)
	c.tasks.Go(c.table.keepMeeting)
	if cfg.Zone != "" && len(cfg.Addrs) > 1 {
		c.tasks.Go(c.servers.followZones)
	}
	c.fallbacks = openFallbacks(c)
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
// no deadline. seq.ErrForeignCluster is returned as soon as all addresses of Config said that
// they belong to another cluster. The error wraps the last reason why there is no table.
func (c *Client) Ready(ctx context.Context) error { return c.table.await(ctx, nil) }

// Reach is Ready for callers that wait as a call does: it also ends with
// seq.ErrNoQuorum once all Addrs that answer say that they have no quorum of stores.
func (c *Client) Reach(ctx context.Context) error {
	_, err := c.table.current(ctx)
	return err
}

// Close ends all calls in flight with ErrClosed and waits for the Client's own
// goroutines. Before that it gives back the worker ids that it was lent, which takes a
// second at most. Calls after it fail with ErrClosed. It is safe to call twice.
func (c *Client) Close() error {
	c.lent.close(c)
	c.cancel()
	c.ids.close()
	c.servers.close()
	c.tasks.Wait()
	return nil
}
