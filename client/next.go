package client

import (
	"context"

	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	"github.com/seqsvr/seqsvr/seq"
)

// Next takes one number of the key: above all that earlier calls got, from any
// client. It retries until ctx ends, or Config.Timeout if ctx has no deadline, and
// then returns the context's error wrapped with the last reason. seq.ErrNoQuorum, with
// the stores that are missing, is returned once no AllocSvr that can be reached has a quorum,
// and for one of several Sets also once none can be reached;
// seq.ErrUnknownSpace, seq.ErrOverflow, seq.ErrOverloaded (too many callers wait in this
// process), ErrUnordered and ErrClosed immediately. After an error a number may have been
// skipped, so calling again is always safe. In a space of mode=exact no retry of the call takes a
// second number, but calling again does: TakeIdempotent is what repeats a call.
func (c *Client) Next(ctx context.Context, key Key) (seq.Seq, error) { return c.calls.Next(ctx, key) }

// NextN takes n numbers of the key, 1 to seq.MaxCount: first to last, inclusive and
// contiguous. seq.ErrBadCount for another n; otherwise like Next.
func (c *Client) NextN(ctx context.Context, key Key, n uint32) (first, last seq.Seq, err error) {
	r, err := c.Take(ctx, key, n)
	return r.First, r.Last, err
}

// Take is NextN that also tells whether the answer is unordered. Range.Err is the
// returned error.
func (c *Client) Take(ctx context.Context, key Key, n uint32) (Range, error) {
	return c.calls.Take(ctx, key, n, nil)
}

// NextBatch takes numbers for 1 to seq.MaxBatch uids of one space: counts[i] for
// uids[i], or one each if counts is empty. A uid may stand there many times. The
// ranges are in the order of uids, each with its own error, of the kinds of Next. The
// returned error is for the whole call, before anything was sent: seq.ErrBadBatch,
// seq.ErrBadCount, seq.ErrUnknownSpace, or no route table in time.
func (c *Client) NextBatch(ctx context.Context, space string, uids []seq.UID, counts []uint32) ([]Range, error) {
	return c.calls.NextBatch(ctx, space, stream.Keys{Places: uids}, counts, nil)
}

// NextKeys is NextBatch for string keys; seq.ErrBadArgument for one that cannot be.
func (c *Client) NextKeys(ctx context.Context, space string, names []string, counts []uint32) ([]Range, error) {
	return c.calls.NextBatch(ctx, space, stream.KeysOf(names), counts, nil)
}
