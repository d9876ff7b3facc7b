package rpc_test

import (
	"context"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

func TestTheWaitOfARequestEndsBeforeTheCallersDeadline(t *testing.T) {
	const ahead = 20 * time.Millisecond
	for _, row := range []struct{ given, least time.Duration }{
		{10 * time.Second, ahead},
		{time.Second, ahead},
	} {
		caller, cancel := context.WithTimeout(t.Context(), row.given)
		ctx, done := rpc.Bounded(caller)
		want, _ := caller.Deadline()
		if got, _ := ctx.Deadline(); want.Sub(got) != row.least {
			t.Errorf("of %v: ends %v ahead, want %v", row.given, want.Sub(got), row.least)
		}
		done()
		cancel()
	}
	ctx, done := rpc.Bounded(context.Background())
	defer done()
	if _, ok := ctx.Deadline(); !ok {
		t.Error("no bound without a deadline")
	}
}

func TestTheBytesOfRequestIDsCountAmongWhatIsInWork(t *testing.T) {
	batch := func(keys, id int) *pb.Batch {
		b := &pb.Batch{Uids: make([]uint64, keys)}
		for range keys {
			b.RequestIds = append(b.RequestIds, make([]byte, id))
		}
		return b
	}
	for _, row := range []struct {
		name    string
		batches []*pb.Batch
		want    int
	}{
		{"no ids", []*pb.Batch{{Uids: make([]uint64, 100), Keys: make([]string, 3)}}, 103},
		{"one short id", []*pb.Batch{batch(1, 16)}, 1},
		{"long ids, over two batches", []*pb.Batch{batch(100, seq.MaxRequestID), batch(60, seq.MaxRequestID)}, 200},
		{"the largest batch, which must fit into every limit", []*pb.Batch{batch(seq.MaxBatch, seq.MaxRequestID)}, seq.MaxBatch},
		{"nearly the largest batch", []*pb.Batch{batch(seq.MaxBatch-1, seq.MaxRequestID)}, seq.MaxBatch},
	} {
		if got := rpc.Load(row.batches); got != row.want {
			t.Errorf("%s: got %d, want %d", row.name, got, row.want)
		}
	}
}
