package client

import (
	"context"
	"errors"
	"fmt"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// NextBatch takes numbers for 1 to seq.MaxBatch uids of one space: counts[i] for
// uids[i], or one each if counts is empty. A uid may stand there many times. The
// ranges are in the order of uids, each with its own error, of the kinds of Next. The
// returned error is for the whole call, before anything was sent: seq.ErrBadBatch,
// seq.ErrBadCount, seq.ErrUnknownSpace, or no route table in time.
func (c *Client) NextBatch(ctx context.Context, space string, uids []seq.UID, counts []uint32) ([]Range, error) {
	if len(counts) != 0 && len(counts) != len(uids) {
		return nil, fmt.Errorf("next batch: %w: %d counts for %d keys", seq.ErrBadBatch, len(counts), len(uids))
	}
	for i, n := range counts {
		if err := checkCount(n); err != nil {
			return nil, fmt.Errorf("next batch: index %d: %w", i, err)
		}
	}
	b := &batch{c: c, uids: uids, counts: counts, out: make([]Range, len(uids))}
	errs, err := c.spread(ctx, space, uids, b.ask)
	if err != nil {
		return nil, fmt.Errorf("next batch: %w", err)
	}
	for i, err := range errs {
		if err != nil {
			b.out[i].Err = fmt.Errorf("next %v: %w", Key{space, uids[i]}, err)
		}
	}
	return b.out, nil
}

// rideAlong is the largest batch that travels with the single calls of others: a call of
// its own costs a fifth more even here. Larger ones would hold the others up for longer than
// a flight takes, and more processors at the peer can work on calls of their own.
const rideAlong = 1024

// batch is one NextBatch.
type batch struct {
	c      *Client
	uids   []seq.UID
	counts []uint32 // empty: 1 each
	out    []Range
}

func (b *batch) count(i int) uint32 {
	if len(b.counts) == 0 {
		return 1
	}
	return b.counts[i]
}

// ask is the batch's asker.
func (b *batch) ask(ctx context.Context, p *peer, space *seq.Space, version uint64, idx []int) ([]fault, error) {
	if len(idx) <= rideAlong && !b.c.alone(ctx) {
		if t, err := p.enqueueAll(space, b, idx); err == nil {
			return b.ride(ctx, t, idx)
		} else if !errors.Is(err, errQueueFull) {
			return nil, err
		}
	}
	one := &pb.Batch{Space: space.Name, Uids: make([]uint64, len(idx))}
	for k, i := range idx {
		one.Uids[k] = uint64(b.uids[i])
		if len(b.counts) != 0 {
			one.Counts = append(one.Counts, b.counts[i])
		}
	}
	var reply *pb.BatchNextReply
	err := p.call(ctx, b.c.cfg.AttemptTimeout, func(ctx context.Context) (err error) {
		reply, err = p.rpc.BatchNext(ctx, &pb.BatchNextRequest{Batches: []*pb.Batch{one}, RouteVersion: version})
		if err == nil && len(reply.GetResults()) != 1 {
			err = fmt.Errorf("%w: %d results for 1 batch", errMalformed, len(reply.GetResults()))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	b.c.heard(reply.GetRouteVersion(), reply.GetRoutes())
	r := reply.GetResults()[0]
	if b.plain(r, 0, idx) {
		return nil, nil
	}
	errs := keyErrors(r.GetErrors(), len(idx))
	var faults []fault
	for k, i := range idx {
		faults = b.put(faults, k, i, rangeOf(r, k, b.count(i), errs))
	}
	return faults, nil
}

// ride waits for the answers to idx, which stand together in a flight from the ticket
// on. Those that have to wait at the peer come last.
func (b *batch) ride(ctx context.Context, t ticket, idx []int) (faults []fault, err error) {
	if first := t; !first.land(ctx) {
		return nil, ctx.Err()
	}
	if t.f.err != nil {
		return nil, t.f.err
	}
	if p := &t.f.parts[t.part]; p.result != nil && b.plain(p.result, t.index, idx) {
		return nil, nil
	}
	for k, i := range idx {
		one := ticket{t.f, t.part, t.index + k}
		if one.open() && !one.land(ctx) {
			return nil, ctx.Err()
		}
		faults = b.put(faults, k, i, one.answer(b.count(i)))
	}
	return faults, nil
}

// plain puts the answers from an index on away if each is one sound number and nothing
// else, as nearly always. It may have put some away when it says false.
func (b *batch) plain(r *pb.BatchResult, from int, idx []int) bool {
	if len(b.counts) != 0 || len(r.Errors) != 0 || r.Unordered || len(r.Last) != 0 || len(r.First) < from+len(idx) {
		return false
	}
	first := r.First[from:][:len(idx)]
	for k, i := range idx {
		n := first[k]
		if n-1 >= uint64(seq.MaxSeq) {
			return false
		}
		o := &b.out[i]
		o.First, o.Last = seq.Seq(n), seq.Seq(n)
	}
	return true
}

// put puts one answer away, or its error among the faults.
func (b *batch) put(faults []fault, k, i int, got Range) []fault {
	if got = b.c.ordered(got); got.Err != nil {
		return append(faults, fault{k, got.Err})
	}
	o := &b.out[i]
	o.First, o.Last, o.Unordered = got.First, got.Last, got.Unordered
	return faults
}
