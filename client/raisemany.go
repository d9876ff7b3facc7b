package client

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

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
		return nil, told("raise batch", err)
	}
	r := &raises{Keys: keys, c: c, floors: floors, within: how.MaxJump, out: make([]Raised, len(floors))}
	errs, err := askOwners(ctx, c, space, keys.Places, r.ask)
	if err != nil {
		return nil, told("raise batch", err)
	}
	for i, err := range errs {
		if err != nil {
			r.out[i].Err = told(fmt.Sprintf("raise %v", keys.At(space, i)), err)
		}
	}
	return r.out, nil
}

// raises is a call that raises many keys.
type raises struct {
	stream.Keys

	c      *Client
	floors []seq.Seq
	within uint64 // numbers above what each key has; 0: any
	out    []Raised
}

// ask makes an attempt for some of the keys.
func (r *raises) ask(ctx context.Context, a *attempt) (faults []fault, err error) {
	reply, err := r.send(ctx, a)
	if err != nil {
		return nil, err
	}
	errs := stream.KeyErrors(reply.GetErrors(), len(a.idx))
	for k, i := range a.idx {
		got := reply.GetValues()[k]
		switch {
		case errs != nil && errs[k] != nil:
			faults = append(faults, fault{k, errs[k]})
		case got < uint64(r.floors[i]) || got > uint64(seq.MaxSeq):
			faults = append(faults, fault{k, fmt.Errorf("%w: raised to %d, asked for %d", stream.ErrMalformed, got, r.floors[i])})
		default:
			r.out[i].Seq = seq.Seq(got)
		}
	}
	return faults, nil
}

func (r *raises) send(ctx context.Context, a *attempt) (*pb.RaiseResult, error) {
	b := r.Batch(a.space, a.idx)
	one := &pb.RaiseBatch{Space: b.Space, Uids: b.Uids, Keys: b.Keys, AtLeast: make([]uint64, len(a.idx)), MaxJump: r.within}
	for k, i := range a.idx {
		one.AtLeast[k] = uint64(r.floors[i])
	}
	var reply *pb.BatchRaiseReply
	err := a.server.largely(ctx, len(a.idx), func() error {
		return a.unary(ctx, func(ctx context.Context) (err error) {
			reply, err = a.server.rpc.BatchRaise(ctx, &pb.BatchRaiseRequest{Batches: []*pb.RaiseBatch{one}, RouteVersion: a.version})
			if err == nil && (len(reply.GetResults()) != 1 || len(reply.GetResults()[0].GetValues()) != len(a.idx)) {
				err = fmt.Errorf("%w: not one value for each of %d keys", stream.ErrMalformed, len(a.idx))
			}
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	a.server.Heard(reply.GetRouteVersion(), reply.GetRoutes())
	return reply.GetResults()[0], nil
}

// OwnerOf carries unary calls to the AllocSvr that owns a section, as Next does for keys:
// pb.NewAdminClient(c.OwnerOf(17)), for operators. Retries and errors are as in Any.
func (c *Client) OwnerOf(section seq.SectionID) grpc.ClientConnInterface {
	return conn{c: c, rules: &forSection, at: &section}
}
