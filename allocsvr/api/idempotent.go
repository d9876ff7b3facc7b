package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/exact"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// requestsOf returns the requests of a batch of an exact space, one a key. If they have no ids, it returns nil.
// seq.ErrIDNotKept, seq.ErrBadArgument.
func requestsOf(space *seq.Space, ids [][]byte, sent []int64) ([]section.Request, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	if err := space.KeepsIDs(); err != nil {
		return nil, err
	}
	out := make([]section.Request, len(ids))
	for i, id := range ids {
		out[i].ID = string(id)
		if len(sent) > 0 && sent[i] != 0 {
			out[i].Sent = time.UnixMilli(sent[i])
		}
	}
	return out, nil
}

// checkRequest checks the request id of a call for one key, which may have none.
func checkRequest(id []byte) error {
	if id == nil {
		return nil
	}
	return seq.CheckRequestID("request_id", id)
}

// requestOf returns the request of a call for one key.
func requestOf(space *seq.Space, id []byte, sent int64) ([]section.Request, error) {
	if id == nil {
		return nil, nil
	}
	return requestsOf(space, [][]byte{id}, []int64{sent})
}

// refusals are the errors of package exact, and what callers know them as.
var refusals = []struct{ of, as error }{
	{exact.ErrExpired, seq.ErrIDExpired},
	{exact.ErrTime, seq.ErrSentAhead},
	{exact.ErrFull, seq.ErrOverloaded},
	{exact.ErrSpent, seq.ErrOverflow},
}

// refusal is an error of a take as callers know it.
func refusal(err error) error {
	var had *exact.Conflict
	if errors.As(err, &had) {
		return &seq.IDConflict{First: seq.Seq(had.First), Count: had.Count, Asked: had.Asked}
	}
	for _, r := range refusals {
		if errors.Is(err, r.of) {
			return &named{err, r.as}
		}
	}
	return err
}

// named is an error with its text, known as another.
type named struct {
	error

	as error
}

// Unwrap gives both.
func (e *named) Unwrap() []error { return []error{e.as, e.error} }

// Lookup implements pb.SequenceServer.
func (s *Sequence) Lookup(ctx context.Context, req *pb.LookupRequest) (*pb.LookupReply, error) {
	space, key, err := s.counter(ctx, req.Space, req.Id, req, func() error { return seq.CheckRequestID("request_id", req.RequestId) })
	if err != nil {
		return nil, err
	}
	if err := space.KeepsIDs(); err != nil {
		return nil, err
	}
	ctx, leave, err := s.enterOne(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	got, err := s.Sections.Lookup(ctx, space, key, string(req.RequestId))
	if err != nil {
		return nil, fmt.Errorf("lookup: %w", refusal(err))
	}
	reply := &pb.LookupReply{}
	if got.First != 0 {
		reply.Found, reply.First, reply.Last = true, got.First, got.First+uint64(got.Count)-1
	}
	reply.RouteVersion, reply.Routes = s.routesFor(req.RouteVersion)
	return reply, nil
}
