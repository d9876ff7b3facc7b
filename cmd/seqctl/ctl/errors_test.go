package ctl

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/seq"
)

func TestADeadlineWithAReasonIsNoMissingAnswer(t *testing.T) {
	over := context.DeadlineExceeded
	answered := rpc.FromStatus(rpc.ToStatus(fmt.Errorf("section 7 is acquiring: %w", over)))
	silent := rpc.FromStatus(status.Error(codes.DeadlineExceeded, "context deadline exceeded"))
	refused := status.Error(codes.Unavailable, "connection refused")
	errMove := errors.New("section 3 is not sealed yet")
	for _, row := range []struct {
		err  error
		want string
	}{
		{answered, "section 7 is acquiring: context deadline exceeded"},
		{fmt.Errorf("next user/7: %w", answered), "next user/7: section 7 is acquiring: context deadline exceeded"},
		{fmt.Errorf("%w: last attempt: %w", over, rpc.FromStatus(rpc.ToStatus(&rpc.NotOwnerError{Section: 7}))), "context deadline exceeded: last attempt: not the owner of the section: new owner not known (routes version 0)"},
		{fmt.Errorf("move: %w: %w", errMove, over), "move: section 3 is not sealed yet: context deadline exceeded"},
		{over, "no answer at a:1 in time: context deadline exceeded"},
		{fmt.Errorf("next user/7: %w", silent), "no answer at a:1 in time: next user/7: context deadline exceeded"},
		{fmt.Errorf("%w: last attempt: %w", over, refused), "no answer at a:1: code = Unavailable desc = connection refused (is the cluster running? seqctl dev starts one)"},
		{fmt.Errorf("%w: %w", seq.ErrNoQuorum, over), "no quorum of stores: context deadline exceeded"},
	} {
		if got := plain("a:1", row.err); got == nil || got.Error() != row.want {
			t.Errorf("%v:\n got %v\nwant %s", row.err, got, row.want)
		}
	}
}
