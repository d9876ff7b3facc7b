package client

import (
	"context"
	"fmt"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Value is what Current tells of one key.
type Value struct {
	Seq        seq.Seq   // at or above the last number handed out; 0: none ever
	UpperBound bool      // perhaps above it: nothing was taken since the last takeover
	LastTaken  time.Time // when a number was last taken, to the block of 64 uids; zero: not known
	Err        error
}

// Current reads the sequences of 1 to seq.MaxBatch uids without taking a number. It
// retries and fails as NextBatch does.
func (c *Client) Current(ctx context.Context, space string, uids []seq.UID) ([]Value, error) {
	out := make([]Value, len(uids))
	ask := func(ctx context.Context, p *peer, name string, version uint64, idx []int) (func(int) error, error) {
		b := &pb.Batch{Space: name, Uids: make([]uint64, len(idx))}
		for k, i := range idx {
			b.Uids[k] = uint64(uids[i])
		}
		reply, err := p.rpc.Current(ctx, &pb.CurrentRequest{Batches: []*pb.Batch{b}, RouteVersion: version})
		if err != nil {
			return nil, err
		}
		c.heard(reply.GetRouteVersion(), reply.GetRoutes())
		if len(reply.GetResults()) != 1 || len(reply.GetResults()[0].GetValues()) != len(idx) {
			return nil, fmt.Errorf("%w: not one value for each of %d keys", errMalformed, len(idx))
		}
		r := reply.GetResults()[0]
		errs := keyErrors(r.GetErrors(), len(idx))
		return func(k int) error {
			if errs != nil && errs[k] != nil {
				return errs[k]
			}
			v := Value{Seq: seq.Seq(r.GetValues()[k]), UpperBound: true}
			if k < len(r.GetUpperBound()) {
				v.UpperBound = r.GetUpperBound()[k]
			}
			if k < len(r.GetLastTakenUnix()) && r.GetLastTakenUnix()[k] != 0 {
				v.LastTaken = time.Unix(r.GetLastTakenUnix()[k], 0)
			}
			out[idx[k]] = v
			return nil
		}, nil
	}
	errs, err := c.spread(ctx, space, uids, ask)
	if err != nil {
		return nil, fmt.Errorf("current: %w", err)
	}
	for i, err := range errs {
		if err != nil {
			out[i].Err = fmt.Errorf("current %v: %w", Key{space, uids[i]}, err)
		}
	}
	return out, nil
}

// Raise lifts the key's sequence to at least the floor, 0 to seq.MaxSeq, and gives
// the sequence after it, durable by then; the next number is above. It never lowers
// and may be repeated. seq.ErrOverflow for a larger floor; otherwise like Next.
func (c *Client) Raise(ctx context.Context, key Key, floor seq.Seq) (seq.Seq, error) {
	if floor > seq.MaxSeq {
		return 0, fmt.Errorf("raise %v: %w: at_least %d, expected 0 to %d", key, seq.ErrOverflow, floor, seq.MaxSeq)
	}
	var got seq.Seq
	ask := func(ctx context.Context, p *peer, name string, version uint64, _ []int) (func(int) error, error) {
		reply, err := p.rpc.Raise(ctx, &pb.RaiseRequest{
			Space: name, Id: &pb.RaiseRequest_Uid{Uid: uint64(key.UID)}, AtLeast: uint64(floor), RouteVersion: version,
		})
		if err != nil {
			return nil, err
		}
		c.heard(reply.GetRouteVersion(), reply.GetRoutes())
		got = seq.Seq(reply.GetValue())
		if got < floor {
			return nil, fmt.Errorf("%w: raised to %d, asked for %d", errMalformed, got, floor)
		}
		return func(int) error { return nil }, nil
	}
	errs, err := c.spread(ctx, key.Space, []seq.UID{key.UID}, ask)
	if err == nil && errs != nil {
		err = errs[0]
	}
	if err != nil {
		return 0, fmt.Errorf("raise %v: %w", key, err)
	}
	return got, nil
}
