package client

import (
	"context"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/internal/sdk/call"
	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Value is what Current tells of one key.
type Value struct {
	Seq        seq.Seq   // at or above the last number handed out; zero if none was ever handed out
	UpperBound bool      // perhaps above it: nothing was taken since the last takeover
	LastTaken  time.Time // when a number was last taken, to the block of 64 uids; zero: not known
	Err        error
}

// Current reads the sequences of 1 to seq.MaxBatch uids without taking a number. It
// retries and fails as NextBatch does.
func (c *Client) Current(ctx context.Context, space string, uids []seq.UID) ([]Value, error) {
	return c.current(ctx, space, stream.Keys{Places: uids})
}

// CurrentKeys is Current for string keys; seq.ErrBadArgument for one that cannot be.
func (c *Client) CurrentKeys(ctx context.Context, space string, names []string) ([]Value, error) {
	return c.current(ctx, space, stream.KeysOf(names))
}

func (c *Client) current(ctx context.Context, space string, keys stream.Keys) ([]Value, error) {
	if err := keys.Check(); err != nil {
		return nil, call.Told("current", err)
	}
	out := make([]Value, len(keys.Places))
	ask := func(ctx context.Context, a *call.Attempt) (faults []call.Fault, err error) {
		idx := a.Idx
		b := keys.Batch(a.Space, idx)
		var reply *pb.CurrentReply
		err = a.Server.Largely(ctx, len(idx), func() error {
			return a.Unary(ctx, func(ctx context.Context) (err error) {
				reply, err = a.Server.RPC.Current(ctx, &pb.CurrentRequest{Batches: []*pb.Batch{b}, RouteVersion: a.Version})
				if err == nil && (len(reply.GetResults()) != 1 || len(reply.GetResults()[0].GetValues()) != len(idx)) {
					err = fmt.Errorf("%w: not one value for each of %d keys", stream.ErrMalformed, len(idx))
				}
				return err
			})
		})
		if err != nil {
			return nil, err
		}
		a.Server.Heard(reply.GetRouteVersion(), reply.GetRoutes())
		r := reply.GetResults()[0]
		errs := stream.KeyErrors(r.GetErrors(), len(idx))
		for k, i := range idx {
			if errs != nil && errs[k] != nil {
				faults = append(faults, call.Fault{K: k, Err: errs[k]})
				continue
			}
			v := Value{Seq: seq.Seq(r.GetValues()[k]), UpperBound: true}
			if k < len(r.GetUpperBound()) {
				v.UpperBound = r.GetUpperBound()[k]
			}
			if k < len(r.GetLastTakenUnix()) && r.GetLastTakenUnix()[k] != 0 {
				v.LastTaken = time.Unix(r.GetLastTakenUnix()[k], 0)
			}
			out[i] = v
		}
		return faults, nil
	}
	errs, err := c.calls.AskOwners(ctx, space, keys.Places, ask)
	if err != nil {
		return nil, call.Told("current", err)
	}
	for i, err := range errs {
		if err != nil {
			out[i].Err = call.Told(fmt.Sprintf("current %v", keys.At(space, i)), err)
		}
	}
	return out, nil
}

// RaiseOption changes what one Raise does.
type RaiseOption func(*pb.RaiseRequest)

// Forced lets a Raise move the ceiling of the key's section by more than its space's
// largest jump. After a crash every key of that section goes on from there: at seq.MaxSeq
// they are used up for good. The cluster writes it to its log of events.
func Forced(r *pb.RaiseRequest) { r.Force = true }

// Within lets a Raise go at most so far, above 0, beyond the key's number of now:
// seq.ErrForbidden otherwise.
func Within(numbers uint64) RaiseOption {
	return func(r *pb.RaiseRequest) { r.MaxJump = numbers }
}

// Raise lifts the key's sequence to at least the floor, 0 to seq.MaxSeq, and gives
// the sequence after it, durable by then; the next number is above. It never lowers
// and may be repeated. seq.ErrOverflow for a larger floor; seq.ErrJump if the ceiling of
// the key's section would move by more than its space's largest jump, unless Forced is
// given; otherwise like Next.
func (c *Client) Raise(ctx context.Context, key Key, floor seq.Seq, opts ...RaiseOption) (seq.Seq, error) {
	if err := key.Check(); err != nil {
		return 0, call.Told("raise", err)
	}
	req := &pb.RaiseRequest{Id: &pb.RaiseRequest_Uid{Uid: uint64(key.UID)}, AtLeast: uint64(floor)}
	if name, ok := key.Name(); ok {
		req.Id = &pb.RaiseRequest_Key{Key: name}
	}
	for _, opt := range opts {
		opt(req)
	}
	if floor > seq.MaxSeq {
		return 0, fmt.Errorf("raise %v: %w: at_least %d, expected 0 to %d", key, seq.ErrOverflow, floor, seq.MaxSeq)
	}
	var got seq.Seq
	ask := func(ctx context.Context, a *call.Attempt) ([]call.Fault, error) {
		return nil, a.Unary(ctx, func(ctx context.Context) error {
			req := &pb.RaiseRequest{Space: a.Space.Name, Id: req.Id, AtLeast: req.AtLeast, Force: req.Force, MaxJump: req.MaxJump, RouteVersion: a.Version}
			reply, err := a.Server.RPC.Raise(ctx, req)
			if err != nil {
				return err
			}
			a.Server.Heard(reply.GetRouteVersion(), reply.GetRoutes())
			if got = seq.Seq(reply.GetValue()); got < floor {
				return fmt.Errorf("%w: raised to %d, asked for %d", stream.ErrMalformed, got, floor)
			}
			return nil
		})
	}
	errs, err := c.calls.AskOwners(ctx, key.Space, []seq.UID{key.Place()}, ask)
	if err == nil && errs != nil {
		err = errs[0]
	}
	if err != nil {
		return 0, call.Told(fmt.Sprintf("raise %v", key), err)
	}
	return got, nil
}
