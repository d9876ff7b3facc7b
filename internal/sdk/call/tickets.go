package call

import (
	"context"
	"fmt"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Done ends the ticket of a key that begins at the number first and has the id. It retries as Next does. A
// repeated call whose first answer was lost may return seq.ErrTicketEnded.
func (c *Caller) Done(ctx context.Context, key seq.Key, first seq.Seq, id uint64, cancelled bool) error {
	err := key.Check()
	if err == nil {
		err = seq.CheckTicket(uint64(first), id)
	}
	if err == nil {
		err = c.AskOwner(ctx, key, func(ctx context.Context, a *Attempt) error {
			req := &pb.DoneRequest{Space: a.Space.Name, Id: &pb.DoneRequest_Uid{Uid: uint64(key.UID)}, First: uint64(first), Ticket: id, Cancelled: cancelled, RouteVersion: a.Version}
			if name, ok := key.Name(); ok {
				req.Id = &pb.DoneRequest_Key{Key: name}
			}
			reply, err := a.Server.RPC.Done(ctx, req)
			if err == nil {
				a.Server.Heard(reply.GetRouteVersion(), reply.GetRoutes())
			}
			return err
		})
	}
	if err != nil {
		return Told(fmt.Sprintf("done %v", key), err)
	}
	return nil
}

// AskOwner asks for one key by unary calls.
func (c *Caller) AskOwner(ctx context.Context, key seq.Key, ask func(context.Context, *Attempt) error) error {
	errs, err := c.AskOwners(ctx, key.Space, []seq.UID{key.Place()}, func(ctx context.Context, a *Attempt) ([]Fault, error) {
		return nil, a.Unary(ctx, func(ctx context.Context) error { return ask(ctx, a) })
	})
	if err == nil && errs != nil {
		err = errs[0]
	}
	return err
}
