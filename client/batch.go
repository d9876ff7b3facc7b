package client

import (
	"context"
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
	out := make([]Range, len(uids))
	ask := func(ctx context.Context, p *peer, name string, version uint64, idx []int) (func(int) error, error) {
		b := &pb.Batch{Space: name, Uids: make([]uint64, len(idx))}
		for k, i := range idx {
			b.Uids[k] = uint64(uids[i])
			if len(counts) != 0 {
				b.Counts = append(b.Counts, counts[i])
			}
		}
		reply, err := p.rpc.BatchNext(ctx, &pb.BatchNextRequest{Batches: []*pb.Batch{b}, RouteVersion: version})
		if err != nil {
			return nil, err
		}
		c.heard(reply.GetRouteVersion(), reply.GetRoutes())
		if len(reply.GetResults()) != 1 {
			return nil, fmt.Errorf("%w: %d results for 1 batch", errMalformed, len(reply.GetResults()))
		}
		r := reply.GetResults()[0]
		errs := keyErrors(r.GetErrors(), len(idx))
		return func(k int) error {
			n := uint32(1)
			if len(counts) != 0 {
				n = counts[idx[k]]
			}
			got := c.ordered(rangeOf(r, k, n, errs))
			if got.Err == nil {
				out[idx[k]] = got
			}
			return got.Err
		}, nil
	}
	errs, err := c.spread(ctx, space, uids, ask)
	if err != nil {
		return nil, fmt.Errorf("next batch: %w", err)
	}
	for i, err := range errs {
		if err != nil {
			out[i].Err = fmt.Errorf("next %v: %w", Key{space, uids[i]}, err)
		}
	}
	return out, nil
}
