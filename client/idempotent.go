package client

import (
	"context"
	"fmt"

	"github.com/seqsvr/seqsvr/internal/sdk/call"
	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Request makes a take of a space of mode=exact one that can be repeated.
//
// Take, Next, NextBatch and Begin without a Request make an id for themselves, which lasts
// for their own retries and not for a second call.
type Request = seq.Request

// TakeIdempotent is Take with a request id. The call may be repeated after any error, and after a crash of this
// program. Range.Replayed reports that the request already had its numbers.
//
// TakeIdempotent returns these errors at once, beside the errors of Next, and takes nothing then:
//
//   - seq.ErrIDConflict, as a *seq.IDConflict, if the id has numbers of another count.
//   - seq.ErrIDExpired, if the id is too old.
//   - seq.ErrSentAhead, if the clocks of the cluster have not reached Sent.
//   - seq.ErrIDNotKept, if the space has another mode.
//   - seq.ErrBadArgument, if the id is not valid.
func (c *Client) TakeIdempotent(ctx context.Context, key Key, n uint32, r Request) (Range, error) {
	return c.calls.Take(ctx, key, n, &r)
}

// NextBatchIdempotent is NextBatch with requests[i] for uids[i]. Each request may be repeated, alone or in
// another batch. It returns the errors of TakeIdempotent for single uids, except seq.ErrIDNotKept and
// seq.ErrBadArgument, which end the whole call.
func (c *Client) NextBatchIdempotent(ctx context.Context, space string, uids []seq.UID, counts []uint32, requests []Request) ([]Range, error) {
	return c.calls.NextBatch(ctx, space, stream.Keys{Places: uids}, counts, requests)
}

// NextKeysIdempotent is NextBatchIdempotent for string keys.
func (c *Client) NextKeysIdempotent(ctx context.Context, space string, names []string, counts []uint32, requests []Request) ([]Range, error) {
	return c.calls.NextBatch(ctx, space, stream.KeysOf(names), counts, requests)
}

// Lookup gives what a request id of the key has got, in a space of mode=exact, and false if
// that is nothing, or was longer ago than ids are kept. It takes nothing, and fails as
// TakeIdempotent does.
func (c *Client) Lookup(ctx context.Context, key Key, id string) (Range, bool, error) {
	got, err := c.lookup(ctx, key, id)
	if err != nil {
		err = call.Told(fmt.Sprintf("lookup %v", key), err)
		return Range{Err: err}, false, err
	}
	return got, got.First != 0, nil
}

func (c *Client) lookup(ctx context.Context, key Key, id string) (got Range, err error) {
	if err := key.Check(); err != nil {
		return got, err
	}
	if err := seq.CheckRequestID("request id", id); err != nil {
		return got, err
	}
	space, err := c.calls.Table().SpaceOf(ctx, key.Space)
	if err != nil {
		return got, err
	}
	if err := space.KeepsIDs(); err != nil {
		return got, err
	}
	ask := func(ctx context.Context, a *call.Attempt) ([]call.Fault, error) {
		return nil, a.Unary(ctx, func(ctx context.Context) error {
			req := &pb.LookupRequest{Space: a.Space.Name, Id: &pb.LookupRequest_Uid{Uid: uint64(key.UID)}, RequestId: []byte(id), RouteVersion: a.Version}
			if name, ok := key.Name(); ok {
				req.Id = &pb.LookupRequest_Key{Key: name}
			}
			reply, err := a.Server.RPC.Lookup(ctx, req)
			if err != nil {
				return err
			}
			a.Server.Heard(reply.GetRouteVersion(), reply.GetRoutes())
			if got = (Range{}); !reply.GetFound() {
				return nil
			}
			count := reply.GetLast() - reply.GetFirst() + 1
			if seq.CheckCount("", count) != nil {
				return fmt.Errorf("%w: numbers %d to %d", stream.ErrMalformed, reply.GetFirst(), reply.GetLast())
			}
			got = stream.CheckRange(reply.GetFirst(), reply.GetLast(), uint32(count), false)
			return got.Err
		})
	}
	errs, err := c.calls.AskOwners(ctx, key.Space, []seq.UID{key.Place()}, ask)
	if err == nil && errs != nil {
		err = errs[0]
	}
	return got, err
}
