package call

import (
	"context"
	"errors"
	"fmt"

	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// NextBatchIdempotent implements stream.Taker.
func (c *Caller) NextBatchIdempotent(ctx context.Context, space string, uids []seq.UID, counts []uint32, requests []seq.Request) ([]seq.Range, error) {
	return c.NextBatch(ctx, space, stream.Keys{Places: uids}, counts, requests)
}

// NextBatch is client.NextBatch with request ids. If named is empty, the call makes ids for its own
// retries.
func (c *Caller) NextBatch(ctx context.Context, space string, keys stream.Keys, counts []uint32, named []seq.Request) ([]seq.Range, error) {
	n := len(keys.Places)
	if len(counts) != 0 && len(counts) != n {
		return nil, fmt.Errorf("next batch: %w: %d counts for %d keys", seq.ErrBadBatch, len(counts), n)
	}
	if err := keys.Check(); err != nil {
		return nil, Told("next batch", err)
	}
	for i, n := range counts {
		if err := seq.CheckCount("count", uint64(n)); err != nil {
			return nil, Told(fmt.Sprintf("next batch: index %d", i), err)
		}
	}
	if err := seq.CheckKeys("the call", n); err != nil {
		return nil, Told("next batch", err)
	}
	of, err := c.table.SpaceOf(ctx, space)
	if err != nil {
		return nil, Told("next batch", err)
	}
	requests, err := stream.RequestsIn(of, n, named)
	if err != nil {
		return nil, Told("next batch", err)
	}
	b := &takes{c: c, Takes: stream.Takes{Keys: keys, Counts: counts, Requests: requests}, out: make([]seq.Range, n)}
	errs, err := c.AskOwners(ctx, space, keys.Places, b.ask)
	if err != nil {
		return nil, Told("next batch", err)
	}
	for i, err := range errs {
		if err != nil {
			b.out[i].Err = Told(fmt.Sprintf("next %v", keys.At(space, i)), err)
		}
	}
	return b.out, nil
}

// maxQueued is the largest attempt that goes by a stream, in a batch with the keys of others:
// a call of its own costs a fifth more even here. A larger one would hold the others up for
// longer than a batch takes, and more processors at the server can work on calls of their own.
const maxQueued = 1024

// maxLarge limits the keys of larger attempts that are under way to a server at once. It is what a server
// does in some milliseconds, and the size of one of the largest batches. Other attempts wait here, where
// their time does not run yet. Otherwise the server would reach the last keys only after their attempts
// gave up, and would get them twice.
const maxLarge = 1 << 14

// Largely makes an attempt with so many keys when the server has room for it. A call of few keys does not
// wait.
func (s *Server) Largely(ctx context.Context, keys int, attempt func() error) error {
	if keys > maxQueued {
		if err := s.large.Acquire(ctx, int64(keys)); err != nil {
			return err
		}
		defer s.large.Release(int64(keys))
	}
	return attempt()
}

// takes is a call for numbers of many keys.
type takes struct {
	stream.Takes

	c       *Caller
	out     []seq.Range
	bounded bool // a full queue refuses it, instead of being passed by
}

// ask makes an attempt: in a batch on a stream, or by a call of its own.
func (b *takes) ask(ctx context.Context, a *Attempt) ([]Fault, error) {
	if len(a.Idx) <= maxQueued && !b.c.cfg.alone(ctx) {
		if s, err := a.Server.streams.AddAll(a.Space, &b.Takes, a.Idx); err == nil {
			return b.await(ctx, s, a.Idx)
		} else if b.bounded || !errors.Is(err, stream.ErrFull) {
			return nil, err
		}
	}
	idx := a.Idx
	one := b.Batch(a.Space, idx)
	var reply *pb.BatchNextReply
	err := a.Server.Largely(ctx, len(idx), func() error {
		return a.Unary(ctx, func(ctx context.Context) (err error) {
			reply, err = a.Server.RPC.BatchNext(ctx, &pb.BatchNextRequest{Batches: []*pb.Batch{one}, RouteVersion: a.Version})
			if err == nil && len(reply.GetResults()) != 1 {
				err = fmt.Errorf("%w: %d results for 1 batch", stream.ErrMalformed, len(reply.GetResults()))
			}
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	a.Server.Heard(reply.GetRouteVersion(), reply.GetRoutes())
	r := reply.GetResults()[0]
	if b.plain(r, 0, idx) {
		return nil, nil
	}
	errs := stream.KeyErrors(r.GetErrors(), len(idx))
	var faults []Fault
	for k, i := range idx {
		faults = b.put(faults, k, i, stream.RangeOf(r, k, b.Count(i), errs))
	}
	return faults, nil
}

// await waits for the answers to idx, which stand one after the other in a batch from the slot
// on. Those that have to wait at the server come last.
func (b *takes) await(ctx context.Context, s stream.Slot, idx []int) (faults []Fault, err error) {
	if first := s; !first.Await(ctx) {
		return nil, ctx.Err()
	}
	result, from, err := s.Result()
	if err != nil || result != nil && b.plain(result, from, idx) {
		return nil, err
	}
	for k, i := range idx {
		one := s.Next(k)
		if one.Open() && !one.Await(ctx) {
			return nil, ctx.Err()
		}
		faults = b.put(faults, k, i, one.Answer(b.Count(i)))
	}
	return faults, nil
}

// plain puts the answers from an index on away if each is one sound number and nothing
// else, as nearly always. It may have put some away when it says false.
func (b *takes) plain(r *pb.BatchResult, from int, idx []int) bool {
	if len(b.Counts) != 0 || len(r.Errors) != 0 || r.Unordered || len(r.Last) != 0 || len(r.Replayed) != 0 || len(r.First) < from+len(idx) {
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
func (b *takes) put(faults []Fault, k, i int, got seq.Range) []Fault {
	if got = b.c.Ordered(got); got.Err != nil {
		return append(faults, Fault{k, got.Err})
	}
	o := &b.out[i]
	o.First, o.Last, o.Unordered, o.Replayed = got.First, got.Last, got.Unordered, got.Replayed
	return faults
}
