package client_test

import (
	"context"
	"sync"
	"testing"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/client"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

// tracedKey marks the context of a call that is to be seen.
type tracedKey struct{}

func TestACallAloneReachesInterceptorsWithItsContext(t *testing.T) {
	cluster := clienttest.Start(t, 2, seq.Space{Name: "user", Sections: 8})
	var mu sync.Mutex
	seen := map[any]int{}
	see := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if method == pb.Sequence_BatchNext_FullMethodName {
			mu.Lock()
			seen[ctx.Value(tracedKey{})]++
			mu.Unlock()
		}
		return call(ctx, method, req, reply, cc, opts...)
	}
	c := dial(t, cluster, client.Config{
		AttemptTimeout: patience, DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(see)},
		Alone: func(ctx context.Context) bool { return ctx.Value(tracedKey{}) != nil },
	})
	plain := bounded(t)
	traced := context.WithValue(plain, tracedKey{}, "yes")
	key, uids := client.Key{UID: 7}, []seq.UID{7, 7}
	var before seq.Seq
	for i, ctx := range []context.Context{plain, traced, plain, traced} {
		first, last, err := c.NextN(ctx, key, 3)
		if err != nil || first <= before || last != first+2 {
			t.Fatalf("call %d: got %d to %d after %d, %v", i, first, last, before, err)
		}
		got, err := c.NextBatch(ctx, "", uids, nil)
		if err != nil || got[0].Err != nil || got[0].First <= last || got[1].First <= got[0].First {
			t.Fatalf("batch %d: got %+v after %d, %v", i, got, last, err)
		}
		before = got[1].First
	}
	if seen["yes"] != 4 || len(seen) != 1 {
		t.Errorf("the interceptor saw %v, want the 4 traced calls and no other", seen)
	}
	if _, err := c.Next(traced, client.Key{Space: "nowhere"}); err == nil {
		t.Error("an unknown space gave a number")
	}
	cut, cancel := context.WithCancel(traced)
	cancel()
	if _, err := c.Next(cut, key); err == nil {
		t.Error("a call that was given up gave a number")
	}
}
