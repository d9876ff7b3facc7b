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
		if err := seq.CheckCount("count", uint64(n)); err != nil {
			return nil, fmt.Errorf("next batch: index %d: %w", i, err)
		}
	}
	b := &takes{c: c, uids: uids, counts: counts, out: make([]Range, len(uids))}
	errs, err := askOwners(ctx, c, space, uids, b.ask)
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

// maxQueued is the largest attempt that goes by a stream, in a batch with the keys of others:
// a call of its own costs a fifth more even here. A larger one would hold the others up for
// longer than a batch takes, and more processors at the server can work on calls of their own.
const maxQueued = 1024

// takes is a call for numbers of many keys.
type takes struct {
	c       *Client
	uids    []seq.UID
	counts  []uint32 // empty: 1 each
	out     []Range
	bounded bool // a full queue refuses it, instead of being passed by
}

func (b *takes) count(i int) uint32 {
	if len(b.counts) == 0 {
		return 1
	}
	return b.counts[i]
}

// ask makes an attempt: in a batch on a stream, or by a call of its own.
func (b *takes) ask(ctx context.Context, a *attempt) ([]fault, error) {
	if len(a.idx) <= maxQueued && !b.c.cfg.alone(ctx) {
		if s, err := a.server.queueAll(a.space, b, a.idx); err == nil {
			return b.await(ctx, s, a.idx)
		} else if b.bounded || !errors.Is(err, errQueueFull) {
			return nil, err
		}
	}
	idx := a.idx
	one := &pb.Batch{Space: a.space.Name, Uids: make([]uint64, len(idx))}
	for k, i := range idx {
		one.Uids[k] = uint64(b.uids[i])
		if len(b.counts) != 0 {
			one.Counts = append(one.Counts, b.counts[i])
		}
	}
	var reply *pb.BatchNextReply
	err := a.unary(ctx, func(ctx context.Context) (err error) {
		reply, err = a.server.rpc.BatchNext(ctx, &pb.BatchNextRequest{Batches: []*pb.Batch{one}, RouteVersion: a.version})
		if err == nil && len(reply.GetResults()) != 1 {
			err = fmt.Errorf("%w: %d results for 1 batch", errMalformed, len(reply.GetResults()))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	b.c.table.heard(reply.GetRouteVersion(), reply.GetRoutes())
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

// await waits for the answers to idx, which stand one after the other in a batch from the slot
// on. Those that have to wait at the server come last.
func (b *takes) await(ctx context.Context, s slot, idx []int) (faults []fault, err error) {
	if first := s; !first.await(ctx) {
		return nil, ctx.Err()
	}
	if s.b.err != nil {
		return nil, s.b.err
	}
	if g := &s.b.groups[s.group]; g.result != nil && b.plain(g.result, s.index, idx) {
		return nil, nil
	}
	for k, i := range idx {
		one := slot{s.b, s.group, s.index + k}
		if one.open() && !one.await(ctx) {
			return nil, ctx.Err()
		}
		faults = b.put(faults, k, i, one.answer(b.count(i)))
	}
	return faults, nil
}

// plain puts the answers from an index on away if each is one sound number and nothing
// else, as nearly always. It may have put some away when it says false.
func (b *takes) plain(r *pb.BatchResult, from int, idx []int) bool {
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
func (b *takes) put(faults []fault, k, i int, got Range) []fault {
	if got = b.c.cfg.ordered(got); got.Err != nil {
		return append(faults, fault{k, got.Err})
	}
	o := &b.out[i]
	o.First, o.Last, o.Unordered = got.First, got.Last, got.Unordered
	return faults
}
