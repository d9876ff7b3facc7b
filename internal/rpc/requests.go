package rpc

import (
	"context"
	"fmt"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// KeyOf is the UID of the one key in a NextRequest or RaiseRequest. id is the oneof of the
// request, uid and key are its members. seq.ErrBadArgument.
func KeyOf(id any, uid uint64, key string) (seq.UID, error) {
	switch id.(type) {
	case *pb.NextRequest_Uid, *pb.RaiseRequest_Uid:
		return seq.UID(uid), nil
	case *pb.NextRequest_Key, *pb.RaiseRequest_Key:
		return seq.HashKey(key), seq.CheckKey("key", key)
	}
	return 0, fmt.Errorf("%w: neither uid nor key is set", seq.ErrBadArgument)
}

// Keys is the number of keys over all batches.
func Keys(batches []*pb.Batch) (n int) {
	for _, b := range batches {
		n += len(b.GetUids()) + len(b.GetKeys())
	}
	return n
}

const (
	// defaultWait bounds a request whose caller set no deadline.
	defaultWait = 5 * time.Second
	// answerAhead is how long before the caller's deadline the wait ends, so that
	// the answer says what was waited for; at most a tenth of what is left.
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
