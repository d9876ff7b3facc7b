package linetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	"github.com/seqsvr/seqsvr/router/line"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// Counters are Numbers in memory, which count the calls.
type Counters struct {
	waits atomic.Int64

	mu    sync.Mutex // guards all below
	seqs  map[client.Key]uint64
	tags  map[string]uint64
	once  map[request]client.Range
	open  []ticket
	ids   uint64
	calls int
	fault error
}

// NewCounters returns Counters at 0, and a tag, orders, at 100.
func NewCounters() *Counters {
	return &Counters{seqs: map[client.Key]uint64{}, tags: map[string]uint64{"orders": 100}, once: map[request]client.Range{}}
}

// Calls returns the number of calls so far.
func (c *Counters) Calls() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls
}

// Fail lets all further calls fail.
func (c *Counters) Fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = err
}

func (c *Counters) enter() (leave func(), err error) {
	c.mu.Lock()
	c.calls++
	return c.mu.Unlock, c.fault
}

func (c *Counters) take(key client.Key, n uint32) client.Range {
	first := c.seqs[key] + 1
	c.seqs[key] += uint64(n)
	return client.Range{First: seq.Seq(first), Last: seq.Seq(c.seqs[key])}
}

// Take implements line.Numbers.
func (c *Counters) Take(_ context.Context, key client.Key, n uint32) (client.Range, error) {
	leave, err := c.enter()
	defer leave()
	if err != nil {
		return client.Range{Err: err}, err
	}
	return c.take(key, n), nil
}

// NextBatch implements line.Numbers.
func (c *Counters) NextBatch(_ context.Context, space string, keys stream.Keys, counts []uint32, requests []client.Request) ([]client.Range, error) {
	leave, err := c.enter()
	defer leave()
	if len(requests) > 0 && space != "orders" {
		err = seq.ErrIDNotKept
	}
	if space == "none" {
		err = seq.ErrUnknownSpace
	}
	if err != nil {
		return nil, err
	}
	out := make([]client.Range, len(keys.Places))
	for i := range out {
		key := keyAt(space, keys, i)
		if key.UID == 13 {
			out[i].Err = fmt.Errorf("next: %w", seq.ErrOverflow)
			continue
		}
		if len(requests) == 0 {
			out[i] = c.take(key, counts[i])
			continue
		}
		had, again := c.once[request{key, requests[i].ID}]
		switch {
		case again && uint64(had.Last-had.First) != uint64(counts[i])-1:
			out[i].Err = &seq.IDConflict{First: had.First, Count: uint32(had.Last - had.First + 1), Asked: counts[i]}
		case again:
			had.Replayed = true
			out[i] = had
		default:
			out[i] = c.take(key, counts[i])
			c.once[request{key, requests[i].ID}] = out[i]
		}
	}
	return out, nil
}

// request is a take by a request of an exact space, orders.
type request struct {
	key client.Key
	id  string
}

// Lookup implements line.Numbers.
func (c *Counters) Lookup(_ context.Context, key client.Key, id string) (client.Range, bool, error) {
	leave, err := c.enter()
	defer leave()
	got, found := c.once[request{key, id}]
	return got, found, err
}

// Current implements line.Numbers.
func (c *Counters) Current(_ context.Context, space string, keys stream.Keys) ([]client.Value, error) {
	leave, err := c.enter()
	defer leave()
	if err != nil {
		return nil, err
	}
	out := make([]client.Value, len(keys.Places))
	for i := range out {
		out[i].Seq = seq.Seq(c.seqs[keyAt(space, keys, i)])
	}
	return out, nil
}

func keyAt(space string, keys stream.Keys, i int) client.Key {
	if keys.Names != nil {
		return seq.StringKey(space, keys.Names[i])
	}
	return client.Key{Space: space, UID: keys.Places[i]}
}

// Generate implements line.Numbers.
func (c *Counters) Generate(_ context.Context, namespace string, count uint32) (client.IDs, error) {
	leave, err := c.enter()
	defer leave()
	if namespace != "1" {
		err = seq.ErrUnknownNamespace
	}
	if err != nil {
		return client.IDs{}, err
	}
	first := snowflake.ID(1<<60 + c.ids)
	c.ids += uint64(count)
	return client.IDs{Runs: []snowflake.Run{{First: first, Last: first + snowflake.ID(count) - 1, Stride: 1}}}, nil
}

// TakeSegment implements line.Numbers.
func (c *Counters) TakeSegment(_ context.Context, tag string, count uint32) (first, last seq.Seq, err error) {
	leave, err := c.enter()
	defer leave()
	n, known := c.tags[tag]
	if !known {
		err = seq.ErrUnknownTag
	}
	if err != nil {
		return 0, 0, err
	}
	c.tags[tag] = n + uint64(count)
	return seq.Seq(n), seq.Seq(n + uint64(count) - 1), nil
}

// Begin implements line.Numbers.
func (c *Counters) Begin(ctx context.Context, orders ...*stream.Order) {
	for _, o := range orders {
		go func() {
			counts := o.Counts
			if len(counts) == 0 {
				counts = slices.Repeat([]uint32{1}, len(o.UIDs))
			}
			got, err := c.NextBatch(ctx, o.Space, stream.Keys{Places: o.UIDs}, counts, nil)
			if o.Ranges = got; err != nil {
				o.Ranges = slices.Repeat([]client.Range{{Err: err}}, len(o.UIDs))
			}
			o.Done()
		}()
	}
}

// Leave implements line.Place.
func (c *Counters) Leave() {}

// Admit implements line.Numbers.
func (c *Counters) Admit(context.Context, *stream.Order) (line.Place, error) { return c, nil }

// Open implements line.Numbers. The id of a ticket is 1000 above its number, and the space inbox has tickets.
func (c *Counters) Open(_ context.Context, key client.Key, n uint32, _ ...client.OpenOption) (*client.Ticket, error) {
	leave, err := c.enter()
	defer leave()
	if err == nil && key.Space != "inbox" {
		err = seq.ErrNoTickets
	}
	if err != nil {
		return nil, err
	}
	got := c.take(key, n)
	c.open = append(c.open, ticket{key, got.First})
	return &client.Ticket{First: got.First, Last: got.Last, ID: uint64(got.First) + 1000, Life: time.Second}, nil
}

type ticket struct {
	key   client.Key
	first seq.Seq
}

// Raise implements line.Numbers. UID 13 cannot be raised.
func (c *Counters) Raise(_ context.Context, key client.Key, floor seq.Seq, _ ...client.RaiseOption) (seq.Seq, error) {
	leave, err := c.enter()
	defer leave()
	if err == nil && key.UID == 13 {
		err = seq.ErrJump
	}
	if err != nil {
		return 0, err
	}
	c.seqs[key] = max(c.seqs[key], uint64(floor))
	return seq.Seq(c.seqs[key]), nil
}

// Done implements line.Numbers.
func (c *Counters) Done(_ context.Context, key client.Key, first seq.Seq, id uint64, _ bool) error {
	leave, err := c.enter()
	defer leave()
	n := len(c.open)
	c.open = slices.DeleteFunc(c.open, func(t ticket) bool { return t == ticket{key, first} && id == uint64(first)+1000 })
	if err == nil && len(c.open) == n {
		err = seq.ErrTicketEnded
	}
	return err
}

// Marks implements line.Numbers. The mark of UID 13 is not known.
func (c *Counters) Marks(_ context.Context, keys ...client.Key) ([]client.Mark, error) {
	leave, err := c.enter()
	defer leave()
	if err != nil {
		return nil, err
	}
	out := make([]client.Mark, len(keys))
	for i, key := range keys {
		m := &out[i]
		m.Last = seq.Seq(c.seqs[key])
		switch {
		case key.Space != "inbox":
			m.Err = seq.ErrNoTickets
		case key.UID == 13:
			m.KnownIn = 1500 * time.Microsecond
		default:
			m.Seq = m.Last
			for _, t := range c.open {
				if t.key == key {
					m.Seq = min(m.Seq, t.first-1)
				}
			}
		}
	}
	return out, nil
}

// Wait implements line.Numbers. It looks again all the time.
func (c *Counters) Wait(ctx context.Context, key client.Key, after seq.Seq, within time.Duration) (client.Mark, error) {
	c.waits.Add(1)
	defer c.waits.Add(-1)
	over := time.After(within)
	for {
		m, err := c.Marks(ctx, key)
		switch {
		case err != nil:
			return client.Mark{}, err
		case m[0].Err != nil || m[0].Seq > after:
			return m[0], m[0].Err
		case after > m[0].Last:
			return client.Mark{}, fmt.Errorf("%w: after is %d", seq.ErrBadArgument, after)
		}
		select {
		case <-ctx.Done():
			return client.Mark{}, ctx.Err()
		case <-over:
			return m[0], nil
		case <-time.After(time.Millisecond):
		}
	}
}

// Waits returns how many calls of Wait have no answer yet.
func (c *Counters) Waits() int { return int(c.waits.Load()) }
