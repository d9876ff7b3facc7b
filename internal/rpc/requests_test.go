package rpc_test

import (
	"context"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/rpc"
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
