package ids

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/rpc"
	"github.com/seqsvr/seqsvr/internal/ui"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// lookAgain is the pause before a tag that has no owner for the moment is asked for
// again: short against a takeover, which is a lease at least.
const lookAgain = 100 * time.Millisecond

// segmentNextResult is what next prints.
type segmentNextResult struct {
	Tag   string `json:"tag"`
	First uint64 `json:"first"`
	Last  uint64 `json:"last"` // inclusive
	Count uint32 `json:"count"`
}

func segmentNextCommand() *cobra.Command {
	o := &ctl.Options{}
	var count int64
	cmd := &cobra.Command{
		Use:     "next TAG",
		Short:   "take the next number of a tag, or a contiguous range of them",
		Example: "  seqctl segment next orders\n  seqctl segment next orders --count 1000 -o json",
		Args:    between(1, 1),
	}
	o.AddTo(cmd, askTimeout)
	cmd.Flags().Int64Var(&count, "count", 1, fmt.Sprintf("how many numbers, 1 to %d", seq.MaxCount))
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		if count < 1 || count > seq.MaxCount {
			return badCount(count, seq.MaxCount)
		}
		reply, err := take(ctx, o, &pb.SegmentTakeRequest{Tag: args[0], Count: uint32(count)})
		if err != nil {
			return err
		}
		r := segmentNextResult{args[0], reply.GetFirst(), reply.GetLast(), uint32(count)}
		return ui.Print(stdout, format, r, func() *ui.Table {
			return ui.NewTable("tag", "first", "last", "count").Row(r.Tag, digits(r.First), digits(r.Last), r.Count)
		})
	})
	return cmd
}

// take asks addr and goes where it points to, until the tag's owner answers or ctx
// ends. An answer that was lost skips numbers.
func take(ctx context.Context, o *ctl.Options, req *pb.SegmentTakeRequest) (*pb.SegmentTakeReply, error) {
	addr := o.Addr
	at := addr
	for hops := 0; ; hops++ {
		reply, err := askSegment(ctx, o, at, func(ctx context.Context, c pb.SegmentClient) (*pb.SegmentTakeReply, error) { return c.Take(ctx, req) })
		if err == nil {
			return reply, nil
		}
		next, ok := whereNext(addr, at, err)
		switch {
		case !ok:
			return nil, err
		case rpc.CodeOf(err) == pb.ErrorCode_ERROR_CODE_UNSPECIFIED: // gRPC's own, of an owner that is gone
			err = fmt.Errorf("%w: owner of tag %q at %s: %v", seq.ErrNoRoute, req.GetTag(), at, err)
		}
		if (next == addr || hops > 0) && !wait(ctx, lookAgain) {
			return nil, err
		}
		at = next
	}
}

// whereNext is the address to ask after an error of the node at: the owner that it
// names, or addr again, which learns of a new owner; false: nothing else would help.
func whereNext(addr, at string, err error) (string, bool) {
	var owner *rpc.NotOwnerError
	switch {
	case errors.As(err, &owner) && owner.Addr != "" && owner.Addr != at:
		return owner.Addr, true
	case errors.Is(err, seq.ErrNotOwner), errors.Is(err, seq.ErrNoLease):
		return addr, true
	}
	return addr, at != addr && status.Code(err) == codes.Unavailable
}

// wait waits for d, or gives false when ctx ends before.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
