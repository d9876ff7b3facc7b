package rpc

import (
	"context"
	"fmt"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Named says whether the one key of a request such as NextRequest is a string key, and not a
// UID. id is the oneof of the request, key its member. seq.ErrBadArgument.
func Named(id any, key string) (bool, error) {
	switch id.(type) {
	case *pb.NextRequest_Uid, *pb.LookupRequest_Uid, *pb.RaiseRequest_Uid, *pb.OpenRequest_Uid, *pb.DoneRequest_Uid:
		return false, nil
	case *pb.NextRequest_Key, *pb.LookupRequest_Key, *pb.RaiseRequest_Key, *pb.OpenRequest_Key, *pb.DoneRequest_Key:
		return true, seq.CheckKey("key", key)
	}
	return false, fmt.Errorf("%w: neither uid nor key is set", seq.ErrBadArgument)
}

// Keys is the number of keys over all batches.
func Keys(batches []*pb.Batch) (n int) {
	for _, b := range batches {
		n += len(b.GetUids()) + len(b.GetKeys())
	}
	return n
}

// keyBytes is about what one key in work takes, without a request id.
const keyBytes = 256

// Load is what the batches weigh in work: their keys, and one more for every keyBytes of
// request ids. The largest batch weighs seq.MaxBatch, whatever its ids.
func Load(batches []*pb.Batch) int {
	keys, ids := Keys(batches), 0
	for _, b := range batches {
		for _, id := range b.GetRequestIds() {
			ids += len(id)
		}
	}
	return max(keys, min(keys+ids/keyBytes, seq.MaxBatch))
}

// RaisedKeys checks the batches of a BatchRaise and counts their keys. It does not check the floors, which
// are refused one by one. It returns seq.ErrBadBatch or seq.ErrBadArgument.
func RaisedKeys(batches []*pb.RaiseBatch) (keys int, err error) {
	for i, b := range batches {
		n := len(b.GetUids()) + len(b.GetKeys())
		if len(b.GetAtLeast()) != n {
			return 0, fmt.Errorf("%w: batches[%d].at_least has %d entries for %d keys, expected one a key", seq.ErrBadBatch, i, len(b.GetAtLeast()), n)
		}
		if err := (seq.Batch{UIDs: b.GetUids(), Keys: b.GetKeys()}).Check(i); err != nil {
			return 0, err
		}
		keys += n
	}
	return keys, seq.CheckKeys("batches", keys)
}

const (
	// defaultWait bounds a request whose caller set no deadline.
	defaultWait = 5 * time.Second
	// answerAhead is the time before the caller's deadline at which the wait ends, so that the answer can
	// say what was waited for. A wait ends early by no more than a tenth of the time left.
	answerAhead = 20 * time.Millisecond
)

// Bounded is the context in which a request waits: it ends in time for an answer to the
// caller, after 5 s if that set no deadline.
func Bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithTimeout(ctx, defaultWait)
	}
	return context.WithDeadline(ctx, deadline.Add(-min(answerAhead, max(0, time.Until(deadline))/10)))
}

// ErrorOfAll is the error of all n keys of a batch, of which the other batches of the request are
// served all the same.
func ErrorOfAll(err error, n int) []*pb.KeyError {
	out := make([]*pb.KeyError, n)
	for i := range out {
		out[i] = ToKeyError(i, err)
	}
	return out
}

// OneIfNone makes a count of 0 one: proto3 does not tell a count of 0 from none, and
// most callers in other languages leave it out. Counts of a Batch are always said, and stand.
func OneIfNone(count *uint32) { *count = max(*count, 1) }
