package client

import (
	"context"
	"fmt"

	"github.com/seqsvr/seqsvr/internal/sdk/call"
	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Raised is what RaiseBatch did to one key.
type Raised struct {
	Seq seq.Seq // after the call, at or above the floor
	Err error
}

// RaiseBatch is Raise, without force, of 1 to seq.MaxBatch UIDs, floors[i] for uids[i]. Each is raised or has an
// error of its own, of the kinds of Raise, whatever became of the others; all of it may be
// repeated. Of the options Within alone is taken, and holds for each UID. The returned error
// is for the whole call, before anything was sent.
func (c *Client) RaiseBatch(ctx context.Context, space string, uids []seq.UID, floors []seq.Seq, opts ...RaiseOption) ([]Raised, error) {
	return c.raiseBatch(ctx, space, stream.Keys{Places: uids}, floors, opts)
}

// RaiseKeys is RaiseBatch for string keys; seq.ErrBadArgument for one that cannot be.
func (c *Client) RaiseKeys(ctx context.Context, space string, names []string, floors []seq.Seq, opts ...RaiseOption) ([]Raised, error) {
	return c.raiseBatch(ctx, space, stream.KeysOf(names), floors, opts)
}

func (c *Client) raiseBatch(ctx context.Context, space string, keys stream.Keys, floors []seq.Seq, opts []RaiseOption) ([]Raised, error) {
	var how pb.RaiseRequest
	for _, opt := range opts {
		opt(&how)
	}
	err := keys.Check()
	switch {
	case err != nil:
	case len(floors) != len(keys.Places):
		err = fmt.Errorf("%w: %d floors for %d keys", seq.ErrBadBatch, len(floors), len(keys.Places))
	case how.Force:
		err = fmt.Errorf("%w: Forced is for one key a call", seq.ErrBadArgument)
	}
	if err != nil {
		return nil, call.Told("raise batch", err)
	}
	r := &raises{Keys: keys, c: c, floors: floors, within: how.MaxJump, out: make([]Raised, len(floors))}
	errs, err := c.calls.AskOwners(ctx, space, keys.Places, r.ask)
	if err != nil {
		return nil, call.Told("raise batch", err)
	}
	for i, err := range errs {
		if err != nil {
			r.out[i].Err = call.Told(fmt.Sprintf("raise %v", keys.At(space, i)), err)
		}
	}
	return r.out, nil
}

// raises is a call that raises many keys.
type raises struct {
	stream.Keys

	c      *Client
	floors []seq.Seq
	within uint64 // how far above its present number a key may rise; zero means no limit
	out    []Raised
}

// ask makes an attempt for some of the keys.
func (r *raises) ask(ctx context.Context, a *call.Attempt) (faults []call.Fault, err error) {
	reply, err := r.send(ctx, a)
	if err != nil {
		return nil, err
	}
	errs := stream.KeyErrors(reply.GetErrors(), len(a.Idx))
	for k, i := range a.Idx {
		got := reply.GetValues()[k]
		switch {
		case errs != nil && errs[k] != nil:
			faults = append(faults, call.Fault{K: k, Err: errs[k]})
		case got < uint64(r.floors[i]) || got > uint64(seq.MaxSeq):
			faults = append(faults, call.Fault{K: k, Err: fmt.Errorf("%w: raised to %d, asked for %d", stream.ErrMalformed, got, r.floors[i])})
		default:
			r.out[i].Seq = seq.Seq(got)
		}
	}
	return faults, nil
}

func (r *raises) send(ctx context.Context, a *call.Attempt) (*pb.RaiseResult, error) {
	b := r.Batch(a.Space, a.Idx)
	one := &pb.RaiseBatch{Space: b.Space, Uids: b.Uids, Keys: b.Keys, AtLeast: make([]uint64, len(a.Idx)), MaxJump: r.within}
	for k, i := range a.Idx {
		one.AtLeast[k] = uint64(r.floors[i])
	}
	var reply *pb.BatchRaiseReply
	err := a.Server.Largely(ctx, len(a.Idx), func() error {
		return a.Unary(ctx, func(ctx context.Context) (err error) {
			reply, err = a.Server.RPC.BatchRaise(ctx, &pb.BatchRaiseRequest{Batches: []*pb.RaiseBatch{one}, RouteVersion: a.Version})
			if err == nil && (len(reply.GetResults()) != 1 || len(reply.GetResults()[0].GetValues()) != len(a.Idx)) {
				err = fmt.Errorf("%w: not one value for each of %d keys", stream.ErrMalformed, len(a.Idx))
			}
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	a.Server.Heard(reply.GetRouteVersion(), reply.GetRoutes())
	return reply.GetResults()[0], nil
}
