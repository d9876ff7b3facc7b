package call

import (
	"context"
	"fmt"
	"sync"

	"github.com/seqsvr/seqsvr/internal/sdk/route"
	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	"github.com/seqsvr/seqsvr/seq"
)

// Begin takes the numbers of all orders and returns without waiting for them. Keys of one AllocSvr share a
// batch, also keys of different orders. If an owner does not answer a key at the first attempt, Begin asks
// again as NextBatch does, until ctx ends. It starts a goroutine for each order with such keys. Every order
// is done in the end, also after Close.
func (c *Caller) Begin(ctx context.Context, orders ...*stream.Order) {
	c.BeginLocal(ctx, nil, orders...)
}

// BeginLocal is Begin for a program that has an AllocSvr within it: near is asked first, and
// what it does not have goes by the network.
func (c *Caller) BeginLocal(ctx context.Context, near Local, orders ...*stream.Order) {
	v := c.table.View()
	p := parcelsPool.Get().(*parcels)
	for _, o := range orders {
		o.Open(ctx, c)
		space, once := c.plain(ctx, v, o)
		o.In(space, once, errNotAsked)
	}
	if near != nil {
		c.takeLocal(near, orders)
	}
	for _, o := range orders {
		if o.Where() != nil {
			p.sort(v, o)
		}
	}
	p.send()
	parcelsPool.Put(p)
	for _, o := range orders {
		o.Answered(1)
	}
}

// errNotAsked is the error for a key whose owner is unknown or does not answer.
var errNotAsked = fmt.Errorf("%w: owner not asked", seq.ErrNoRoute)

// plain is the space of an order that can be asked for at once, and its requests there. The
// others are for NextBatch, which has the words for what is wrong with them.
func (c *Caller) plain(ctx context.Context, v *route.View, o *stream.Order) (*seq.Space, []stream.Request) {
	n := len(o.UIDs)
	if v == nil || c.cfg.alone(ctx) || n == 0 || n > maxQueued || len(o.Counts) != 0 && len(o.Counts) != n {
		return nil, nil
	}
	for _, n := range o.Counts {
		if seq.CheckCount("count", uint64(n)) != nil {
			return nil, nil
		}
	}
	space, err := v.Mapping.Space(o.Space)
	if err != nil {
		return nil, nil
	}
	once, err := stream.RequestsIn(space, n, o.Requests)
	if err != nil {
		return nil, nil
	}
	return space, once
}

// parcels are the keys of some orders, by the server that owns them. The slices are kept for
// the next ones.
type parcels struct {
	n   int
	all []parcel
}

type parcel struct {
	to     *Server
	silent bool // looked at once: of a uid that stands there twice, both are asked for or none
	keys   []stream.Ordered
}

var parcelsPool = sync.Pool{New: func() any { return &parcels{} }}

// sort puts the keys of an order that have no numbers yet with those for the same server.
func (p *parcels) sort(v *route.View, o *stream.Order) {
	missed := 0
	for i, uid := range o.UIDs {
		if o.Ranges[i].First != 0 {
			missed++
			continue
		}
		to := peer(v.Owner(o.Where().SectionOf(uid)))
		at := p.of(to)
		if at == nil || at.silent {
			o.Ranges[i].Err = errNotAsked
			missed++
			continue
		}
		at.keys = append(at.keys, stream.Ordered{Order: o, I: int32(i)})
	}
	if missed > 0 {
		o.Answered(missed)
	}
}

// of finds or makes the parcel to a server. A nil server has none.
func (p *parcels) of(to *Server) *parcel {
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
		one.to.streams.AddOrdered(one.keys)
		clear(one.keys)
		one.keys, one.to = one.keys[:0], nil
	}
	p.n = 0
}
