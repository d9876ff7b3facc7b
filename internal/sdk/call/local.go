package call

import (
	"slices"
	"sync"

	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	"github.com/seqsvr/seqsvr/seq"
)

// Local takes numbers in this process.
type Local interface {
	// TakeLocal takes counts[i] numbers of uids[i] of a space, one number each if counts is empty. It skips
	// keys that would need a wait or another server. first[i], zero at first, becomes the first number, and
	// stays zero for skipped keys. The limit is seq.MaxBatch uids. unordered is as in seq.Range, for all
	// keys. It is safe for concurrent use.
	TakeLocal(space string, uids []seq.UID, counts []uint32, first []uint64) (unordered bool)
}

// nearby is the keys of some orders of one space.
type nearby struct {
	orders []*stream.Order
	uids   []seq.UID
	counts []uint32 // empty while all are 1
	first  []uint64
}

var nearbyPool = sync.Pool{New: func() any { return new(nearby) }}

// takeLocal gives the orders what is near, many of them at a time.
func (c *Caller) takeLocal(near Local, orders []*stream.Order) {
	n := nearbyPool.Get().(*nearby)
	for _, o := range orders {
		if o.Where() == nil || o.Named() { // near knows no request ids
			continue
		}
		if len(n.orders) > 0 && (n.orders[0].Where() != o.Where() || len(n.uids)+len(o.UIDs) > seq.MaxBatch) {
			n.take(c, near)
		}
		n.add(o)
	}
	if len(n.orders) > 0 {
		n.take(c, near)
	}
	nearbyPool.Put(n)
}

func (n *nearby) add(o *stream.Order) {
	if len(o.Counts) > 0 || len(n.counts) > 0 {
		for len(n.counts) < len(n.uids) {
			n.counts = append(n.counts, 1)
		}
		for i := range o.UIDs {
			n.counts = append(n.counts, o.Count(i))
		}
	}
	n.orders, n.uids = append(n.orders, o), append(n.uids, o.UIDs...)
}

// take takes for all that was added, and forgets it.
func (n *nearby) take(c *Caller, near Local) {
	n.first = slices.Grow(n.first[:0], len(n.uids))[:len(n.uids)]
	clear(n.first)
	unordered := near.TakeLocal(n.orders[0].Where().Name, n.uids, n.counts, n.first)
	first := n.first
	for _, o := range n.orders {
		for i := range o.Ranges {
			if first[i] != 0 {
				o.Ranges[i] = c.Ordered(stream.CheckRange(first[i], first[i]+uint64(o.Count(i))-1, o.Count(i), unordered))
			}
		}
		first = first[len(o.Ranges):]
	}
	clear(n.orders)
	n.orders, n.uids, n.counts = n.orders[:0], n.uids[:0], n.counts[:0]
}
