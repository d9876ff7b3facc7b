package client

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/seqsvr/seqsvr/seq"
)

// Order is a NextBatch whose caller does not wait for it: for a program that serves many
// callers of its own by one goroutine. It may be used again once it is done.
type Order struct {
	Space  string
	UIDs   []seq.UID
	Counts []uint32 // one a uid; empty: one number each
	// Requests may be repeated, one a uid, in a space of mode=exact; empty: the Client makes ids
	// for its own retries.
	Requests []Request
	// Done is called once, when Ranges has all answers. It runs in a goroutine for which the
	// answers to others wait, so it must be short and must not block.
	Done func()

	// Ranges are the answers in the order of UIDs, each with its own error. From Begin until
	// Done the Order is the Client's.
	Ranges []Range

	c     *Client
	ctx   context.Context
	space *seq.Space
	once  []request    // one a uid in an exact space; else nil
	left  atomic.Int32 // answers that have not come, and 1 while Begin goes on
}

// Begin takes the numbers of all orders and returns without waiting for them. Keys of one
// AllocSvr travel together, whosever order they are of. What the owners do not answer at the
// first attempt is asked for as NextBatch does, until ctx ends, by a goroutine for each order
// that has such keys. Every order is done, after Close too.
func (c *Client) Begin(ctx context.Context, orders ...*Order) { c.BeginNear(ctx, nil, orders...) }

// BeginNear is Begin for a program that has an AllocSvr within it: near is asked first, and
// what it does not have goes by the network.
func (c *Client) BeginNear(ctx context.Context, near Near, orders ...*Order) {
	v := c.table.view.Load()
	p := parcelsPool.Get().(*parcels)
	for _, o := range orders {
		o.c, o.ctx = c, ctx
		o.Ranges = slices.Grow(o.Ranges[:0], len(o.UIDs))[:len(o.UIDs)]
		clear(o.Ranges)
		o.left.Store(int32(len(o.UIDs)) + 1)
		o.space, o.once = o.plain(v)
		if o.space == nil {
			o.miss(errNotAsked)
		}
	}
	if near != nil {
		takeNear(near, orders)
	}
	for _, o := range orders {
		if o.space != nil {
			p.sort(v, o)
		}
	}
	p.send()
	parcelsPool.Put(p)
	for _, o := range orders {
		o.answered(1)
	}
}

// errNotAsked is of keys whose owner is not known or does not answer.
var errNotAsked = fmt.Errorf("%w: owner not asked", seq.ErrNoRoute)

// plain is the space of an order that can be asked for at once, and its requests there. The
// others are for NextBatch, which has the words for what is wrong with them.
func (o *Order) plain(v *view) (*seq.Space, []request) {
	n := len(o.UIDs)
	if v == nil || o.c.cfg.alone(o.ctx) || n == 0 || n > maxQueued || len(o.Counts) != 0 && len(o.Counts) != n {
		return nil, nil
	}
	for _, n := range o.Counts {
		if seq.CheckCount("count", uint64(n)) != nil {
			return nil, nil
		}
	}
	space, err := v.mapping.Space(o.Space)
	if err != nil {
		return nil, nil
	}
	once, err := requestsIn(space, n, o.Requests)
	if err != nil {
		return nil, nil
	}
	return space, once
}

func (o *Order) count(i int) uint32 {
	if len(o.Counts) == 0 {
		return 1
	}
	return o.Counts[i]
}

// miss makes all keys of an order wait for NextBatch.
func (o *Order) miss(err error) {
	for i := range o.Ranges {
		o.Ranges[i].Err = err
	}
	o.left.Store(1)
}

// answered notes that n answers have come. The last one ends the order, or has what failed
// asked for again.
func (o *Order) answered(n int) {
	if o.left.Add(int32(-n)) != 0 {
		return
	}
	failed := func(r Range) bool { return r.Err != nil }
	if len(o.Ranges) > 0 && !slices.ContainsFunc(o.Ranges, failed) {
		o.Done()
		return
	}
	go o.retry()
}

// retry asks for what has no answer.
func (o *Order) retry() {
	if o.space == nil {
		o.put(nil, o.UIDs, o.Counts, o.Requests)
	} else {
		var at []int
		var uids []seq.UID
		var counts []uint32
		for i, r := range o.Ranges {
			if r.Err != nil {
				at, uids, counts = append(at, i), append(uids, o.UIDs[i]), append(counts, o.count(i))
			}
		}
		o.put(at, uids, counts, namedAt(o.once, at))
	}
	o.Done()
}

// put asks for uids, which stand at those indices; nil: they are all.
func (o *Order) put(at []int, uids []seq.UID, counts []uint32, requests []Request) {
	got, err := o.c.NextBatchOnce(o.ctx, o.Space, uids, counts, requests)
	for k := range uids {
		i := k
		if at != nil {
			i = at[k]
		}
		if err != nil {
			o.Ranges[i] = Range{Err: err}
		} else {
			o.Ranges[i] = got[k]
		}
	}
}

// ordered is a key of an order; in a batch, with its slot there.
type ordered struct {
	order        *Order
	i            int32
	group, index int32
}

// orderedPool has room for the ordered keys of a batch, which may be many thousands.
var orderedPool = sync.Pool{New: func() any { return new([]ordered) }}

// deliver hands the answers of a completed batch to the orders in it; keys that have to wait at
// the server move on to its rest.
func (b *batch) deliver() {
	b.mu.Lock()
	keys := b.ordered
	b.ordered, b.delivered = nil, true
	b.mu.Unlock()
	if keys == nil {
		return
	}
	all := keys
	defer func() {
		clear(all)
		orderedPool.Put(&all)
	}()
	var late []ordered
	for n := 0; len(keys) > 0; keys = keys[n:] {
		o, came := keys[0].order, 0
		for n = 0; n < len(keys) && keys[n].order == o; n++ {
			k := keys[n]
			s := slot{b, int(k.group), int(k.index)}
			if s.open() {
				late = append(late, k)
				continue
			}
			came++
			if first := s.plain(); b.err == nil && first != 0 {
				o.Ranges[k.i].First, o.Ranges[k.i].Last = first, first
				continue
			}
			o.Ranges[k.i] = o.c.cfg.ordered(s.answer(o.count(int(k.i))))
		}
		if came > 0 {
			o.answered(came)
		}
	}
	if len(late) > 0 {
		b.rest.takeOver(late)
	}
}

// takeOver gives a batch keys of the one whose rest it is. It may be completed by then.
func (b *batch) takeOver(keys []ordered) {
	b.mu.Lock()
	b.ordered = append(b.ordered, keys...)
	delivered := b.delivered
	b.mu.Unlock()
	if delivered {
		b.deliver()
	}
}

// parcels are the keys of some orders, by the server that owns them. The slices are kept for
// the next ones.
type parcels struct {
	n   int
	all []parcel
}

type parcel struct {
	to     *server
	silent bool // looked at once: of a uid that stands there twice, both are asked for or none
	keys   []ordered
}

var parcelsPool = sync.Pool{New: func() any { return &parcels{} }}

// sort puts the keys of an order that have no numbers yet with those for the same server.
func (p *parcels) sort(v *view, o *Order) {
	missed := 0
	for i, uid := range o.UIDs {
		if o.Ranges[i].First != 0 {
			missed++
			continue
		}
		to := v.owner(o.space.SectionOf(uid))
		at := p.of(to)
		if at == nil || at.silent {
			o.Ranges[i].Err = errNotAsked
			missed++
			continue
		}
		at.keys = append(at.keys, ordered{order: o, i: int32(i)})
	}
	if missed > 0 {
		o.answered(missed)
	}
}

// of finds or makes the parcel to a server. A nil server has none.
func (p *parcels) of(to *server) *parcel {
	if to == nil {
		return nil
	}
	for i := range p.all[:p.n] {
		if p.all[i].to == to {
			return &p.all[i]
		}
	}
	if p.n == len(p.all) {
		p.all = append(p.all, parcel{})
	}
	p.n++
	p.all[p.n-1].to, p.all[p.n-1].silent = to, to.health.silent.Load()
	return &p.all[p.n-1]
}

// send gives every key a slot, and fails those for which there is none.
func (p *parcels) send() {
	for i := range p.all[:p.n] {
		one := &p.all[i]
		k := one.to.balance.pick()
		rest, err := one.to.streams[k].enqueueOrdered(one.keys, one.to.room(k))
		if len(rest) > 0 && err == errQueueFull {
			rest, err = one.to.streams[1-k].enqueueOrdered(rest, one.to.room(1-k))
		}
		for _, key := range rest {
			key.order.Ranges[key.i].Err = err
			key.order.answered(1)
		}
		clear(one.keys)
		one.keys, one.to = one.keys[:0], nil
	}
	p.n = 0
}

// enqueueOrdered gives keys slots, as many as there is room for, and returns the others. The
// keys of one order stand in one batch: a uid may be among them twice, and its numbers rise.
func (s *stream) enqueueOrdered(keys []ordered, limit int) (rest []ordered, err error) {
	s.mu.Lock()
	in := 0
	for in < len(keys) && err == nil {
		o, n := keys[in].order, 1
		for in+n < len(keys) && keys[in+n].order == o {
			n++
		}
		var b *batch
		if b, err = s.roomFor(n, limit-in); err == nil {
			b.addOrdered(keys[in : in+n])
			in += n
		}
	}
	if in == 0 {
		s.mu.Unlock()
		return keys, err
	}
	s.unlockAndWake(in)
	return keys[in:], err
}

// addOrdered gives the keys of one order slots.
func (b *batch) addOrdered(keys []ordered) {
	o := keys[0].order
	k := b.groupOf(o.space, false)
	g := &b.groups[k]
	if b.ordered == nil {
		b.ordered = (*orderedPool.Get().(*[]ordered))[:0]
	}
	for _, key := range keys {
		key.group, key.index = int32(k), int32(g.n)
		g.n++
		g.uids = append(g.uids, uint64(o.UIDs[key.i]))
		if g.counts != nil || len(o.Counts) != 0 {
			g.count(int(key.index), o.count(int(key.i)))
		}
		if o.once != nil {
			g.request(&o.once[key.i])
		}
		b.ordered = append(b.ordered, key)
	}
	b.n += len(keys)
}
