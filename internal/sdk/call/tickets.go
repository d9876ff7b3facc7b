package call

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Open takes n numbers of a key with a ticket. once is what all attempts repeat; if nil, the request has no id.
// sent is when the attempt began that got the ticket.
func (c *Caller) Open(ctx context.Context, key seq.Key, n uint32, lifeMs uint64, once *stream.Request) (got *stream.TicketCall, sent time.Time, err error) {
	err = c.askTicket(ctx, key, func() *stream.TicketCall {
		got, sent = &stream.TicketCall{Key: key, Count: n, LifeMs: lifeMs, Request: once}, time.Now()
		return got
	}, func(ctx context.Context, a *Attempt, t *stream.TicketCall) error {
		req := &pb.OpenRequest{Space: a.Space.Name, Id: &pb.OpenRequest_Uid{Uid: uint64(key.UID)}, Count: n, LifeMs: lifeMs, RouteVersion: a.Version}
		if name, ok := key.Name(); ok {
			req.Id = &pb.OpenRequest_Key{Key: name}
		}
		if once != nil {
			req.RequestId, req.FirstSentMs = once.ID, once.Sent
		}
		reply, err := a.Server.RPC.Open(ctx, req)
		if err != nil {
			return err
		}
		a.Server.Heard(reply.GetRouteVersion(), reply.GetRoutes())
		r := stream.CheckRange(reply.GetFirst(), reply.GetLast(), n, false)
		r.Replayed = reply.GetReplayed()
		return t.Opened(r, reply.GetTicket(), reply.GetLifeMs())
	})
	return got, sent, err
}

// Done ends the ticket of a key that begins at the number first and has the id. It retries as Next does. A
// repeated call whose first answer was lost may return seq.ErrTicketEnded.
func (c *Caller) Done(ctx context.Context, key seq.Key, first seq.Seq, id uint64, cancelled bool) error {
	err := key.Check()
	if err == nil {
		err = seq.CheckTicket(uint64(first), id)
	}
	if err == nil {
		err = c.askTicket(ctx, key, func() *stream.TicketCall {
			return &stream.TicketCall{Key: key, Done: true, First: uint64(first), Ticket: id, Cancelled: cancelled}
		}, func(ctx context.Context, a *Attempt, _ *stream.TicketCall) error {
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

// askTicket makes a call with a ticket: with the calls of others by a stream, or by a unary call where the server
// takes no others. Each attempt has a TicketCall of its own.
func (c *Caller) askTicket(ctx context.Context, key seq.Key, attempt func() *stream.TicketCall, unary func(context.Context, *Attempt, *stream.TicketCall) error) error {
	errs, err := c.AskOwners(ctx, key.Space, []seq.UID{key.Place()}, func(ctx context.Context, a *Attempt) ([]Fault, error) {
		t := attempt()
		if !c.cfg.alone(ctx) {
			if err := a.Server.streams.Tickets(ctx, a.Space, t); !errors.Is(err, stream.ErrUnary) {
				return nil, err
			}
			t = attempt()
		}
		return nil, a.Unary(ctx, func(ctx context.Context) error { return unary(ctx, a, t) })
	})
	if err == nil && errs != nil {
		err = errs[0]
	}
	return err
}
