package stream

import (
	"context"
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
	Counts []uint32 // one a uid; if empty, one number each
	// Requests are request ids, one a uid, in a space of mode=exact. They may be repeated. If empty, the
	// Client makes ids for its own retries.
	Requests []seq.Request
	// Done is called once, when Ranges has all answers. It runs in a goroutine for which the
	// answers to others wait, so it must be short and must not block.
	Done func()

	// Ranges are the answers in the order of UIDs, each with its own error. From Begin until
	// Done the Order is the Client's.
	Ranges []seq.Range

	by    Taker
	ctx   context.Context
	space *seq.Space
	once  []Request    // one a uid in an exact space; else nil
	left  atomic.Int32 // answers that have not come, and 1 while Begin goes on
}

// Taker is the caller of an Order's keys, as the Order needs it.
type Taker interface {
	// NextBatchIdempotent asks for what has no answer after the first attempt.
	NextBatchIdempotent(ctx context.Context, space string, uids []seq.UID, counts []uint32, requests []seq.Request) ([]seq.Range, error)
	// Ordered refuses an unordered answer unless callers take them.
	Ordered(seq.Range) seq.Range
}

// Open begins an Order, whose keys then have an answer each: by Put, Fail, or of a batch.
func (o *Order) Open(ctx context.Context, by Taker) {
	o.by, o.ctx, o.space, o.once = by, ctx, nil, nil
	o.Ranges = slices.Grow(o.Ranges[:0], len(o.UIDs))[:len(o.UIDs)]
	clear(o.Ranges)
	o.left.Store(int32(len(o.UIDs)) + 1)
}

// In notes the space of the keys, and their requests there. An Order that has none is for
// NextBatchIdempotent, as a whole: its keys fail with err.
func (o *Order) In(space *seq.Space, once []Request, err error) {
	if o.space, o.once = space, once; space != nil {
		return
	}
	for i := range o.Ranges {
		o.Ranges[i].Err = err
	}
	o.left.Store(1)
}

// Where returns the space of the keys; nil if the Order has none.
func (o *Order) Where() *seq.Space { return o.space }

// Named reports whether the keys have requests.
func (o *Order) Named() bool { return o.once != nil }

// Count returns how many numbers key i is to have.
func (o *Order) Count(i int) uint32 {
	if len(o.Counts) == 0 {
		return 1
	}
	return o.Counts[i]
}

// Answered notes that n answers have come. The last one ends the order, or has what failed
// asked for again.
func (o *Order) Answered(n int) {
	if o.left.Add(int32(-n)) != 0 {
		return
	}
	failed := func(r seq.Range) bool { return r.Err != nil }
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
				at, uids, counts = append(at, i), append(uids, o.UIDs[i]), append(counts, o.Count(i))
			}
		}
		o.put(at, uids, counts, namedAt(o.once, at))
	}
	o.Done()
}

// put asks for uids. Their answers go to the indices at. If at is nil, uids are all of the order.
func (o *Order) put(at []int, uids []seq.UID, counts []uint32, requests []seq.Request) {
	got, err := o.by.NextBatchIdempotent(o.ctx, o.Space, uids, counts, requests)
	for k := range uids {
		i := k
		if at != nil {
			i = at[k]
		}
		if err != nil {
			o.Ranges[i] = seq.Range{Err: err}
		} else {
			o.Ranges[i] = got[k]
		}
	}
}

// Ordered is a key of an Order; in a batch, with its slot there.
type Ordered struct {
	Order        *Order
	I            int32 // of UIDs
	group, index int32
}

// orderedPool has room for the ordered keys of a batch, which may be many thousands.
var orderedPool = sync.Pool{New: func() any { return new([]Ordered) }}

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
	var late []Ordered
	for n := 0; len(keys) > 0; keys = keys[n:] {
		o, came := keys[0].Order, 0
		for n = 0; n < len(keys) && keys[n].Order == o; n++ {
			k := keys[n]
			s := Slot{b, int(k.group), int(k.index)}
			if s.Open() {
				late = append(late, k)
				continue
			}
			came++
			if first := s.Plain(); b.err == nil && first != 0 {
				o.Ranges[k.I].First, o.Ranges[k.I].Last = first, first
				continue
			}
			o.Ranges[k.I] = o.by.Ordered(s.Answer(o.Count(int(k.I))))
		}
		if came > 0 {
			o.Answered(came)
		}
	}
	if len(late) > 0 {
		b.rest.takeOver(late)
	}
}

// takeOver gives a batch keys of the one whose rest it is. It may be completed by then.
func (b *batch) takeOver(keys []Ordered) {
	b.mu.Lock()
	b.ordered = append(b.ordered, keys...)
	delivered := b.delivered
	b.mu.Unlock()
	if delivered {
		b.deliver()
	}
}

// enqueueOrdered gives keys slots, as many as there is room for, and returns the others. The
// keys of one order stand in one batch: a uid may be among them twice, and its numbers rise.
func (s *stream) enqueueOrdered(keys []Ordered, limit int) (rest []Ordered, err error) {
	s.mu.Lock()
	in := 0
	for in < len(keys) && err == nil {
		o, n := keys[in].Order, 1
		for in+n < len(keys) && keys[in+n].Order == o {
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
func (b *batch) addOrdered(keys []Ordered) {
	o := keys[0].Order
	k := b.groupOf(o.space, false)
	g := &b.groups[k]
	if b.ordered == nil {
		b.ordered = (*orderedPool.Get().(*[]Ordered))[:0]
	}
	for _, key := range keys {
		key.group, key.index = int32(k), int32(g.n)
		g.n++
		g.uids = append(g.uids, uint64(o.UIDs[key.I]))
		if g.counts != nil || len(o.Counts) != 0 {
			g.count(int(key.index), o.Count(int(key.I)))
		}
		if o.once != nil {
			g.request(&o.once[key.I])
		}
		b.ordered = append(b.ordered, key)
	}
	b.n += len(keys)
}
