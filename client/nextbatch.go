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
	return c.nextBatch(ctx, space, keys{places: uids}, counts, nil)
}

// NextKeys is NextBatch for string keys; seq.ErrBadArgument for one that cannot be.
func (c *Client) NextKeys(ctx context.Context, space string, names []string, counts []uint32) ([]Range, error) {
	return c.nextBatch(ctx, space, keysOf(names), counts, nil)
}

func (c *Client) nextBatch(ctx context.Context, space string, keys keys, counts []uint32, named []Request) ([]Range, error) {
	n := len(keys.places)
	if len(counts) != 0 && len(counts) != n {
		return nil, fmt.Errorf("next batch: %w: %d counts for %d keys", seq.ErrBadBatch, len(counts), n)
	}
	if err := keys.check(); err != nil {
		return nil, told("next batch", err)
	}
	for i, n := range counts {
		if err := seq.CheckCount("count", uint64(n)); err != nil {
			return nil, told(fmt.Sprintf("next batch: index %d", i), err)
		}
	}
	if err := seq.CheckKeys("the call", n); err != nil {
		return nil, told("next batch", err)
	}
	of, err := c.table.spaceOf(ctx, space)
	if err != nil {
		return nil, told("next batch", err)
	}
	requests, err := requestsIn(of, n, named)
	if err != nil {
		return nil, told("next batch", err)
	}
	b := &takes{c: c, keys: keys, counts: counts, requests: requests, out: make([]Range, n)}
	errs, err := askOwners(ctx, c, space, keys.places, b.ask)
	if err != nil {
		return nil, told("next batch", err)
	}
	for i, err := range errs {
		if err != nil {
			b.out[i].Err = told(fmt.Sprintf("next %v", keys.at(space, i)), err)
		}
	}
	return b.out, nil
}

// maxQueued is the largest attempt that goes by a stream, in a batch with the keys of others:
// a call of its own costs a fifth more even here. A larger one would hold the others up for
// longer than a batch takes, and more processors at the server can work on calls of their own.
const maxQueued = 1024

// maxLarge is how many keys of larger attempts may be under way to a server at once: as much as
// it does in some milliseconds, and one of the largest batches. The others wait here, where that costs them no part of
// their attempt's time; sent all at once, those that the server comes to last would have
// been given up by then, and be sent again.
const maxLarge = 1 << 14

// largely makes an attempt with so many keys when the server has room for it. It is of no
// effect on a call of few keys.
func (s *server) largely(ctx context.Context, keys int, attempt func() error) error {
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
	keys

	c      *Client
	counts []uint32 // empty: 1 each
	out    []Range
	// requests, one a key in an exact space, else nil, are what all attempts repeat.
	requests []request
	bounded  bool // a full queue refuses it, instead of being passed by
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
	one := b.batch(a.space, idx)
	if len(b.counts) != 0 {
		for _, i := range idx {
			one.Counts = append(one.Counts, b.counts[i])
		}
	}
	if b.requests != nil {
		for _, i := range idx {
			one.RequestIds, one.FirstSentMs = append(one.RequestIds, b.requests[i].id), append(one.FirstSentMs, b.requests[i].sent)
		}
	}
	var reply *pb.BatchNextReply
	err := a.server.largely(ctx, len(idx), func() error {
		return a.unary(ctx, func(ctx context.Context) (err error) {
			reply, err = a.server.rpc.BatchNext(ctx, &pb.BatchNextRequest{Batches: []*pb.Batch{one}, RouteVersion: a.version})
			if err == nil && len(reply.GetResults()) != 1 {
				err = fmt.Errorf("%w: %d results for 1 batch", errMalformed, len(reply.GetResults()))
			}
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	a.server.heard(reply.GetRouteVersion(), reply.GetRoutes())
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
	if len(b.counts) != 0 || len(r.Errors) != 0 || r.Unordered || len(r.Last) != 0 || len(r.Replayed) != 0 || len(r.First) < from+len(idx) {
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
	o.First, o.Last, o.Unordered, o.Replayed = got.First, got.Last, got.Unordered, got.Replayed
	return faults
}
