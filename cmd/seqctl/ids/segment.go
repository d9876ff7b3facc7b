package ids

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// tagRow is a tag and its limits.
type tagRow struct {
	Tag     string `json:"tag"`
	Section uint32 `json:"section"` // whose owner serves it
	MinStep uint64 `json:"min_step"`
	MaxStep uint64 `json:"max_step"`
	Start   uint64 `json:"start"`             // no number below it is handed out
	Retired string `json:"retired,omitempty"` // time; empty while it is in use
	effect
}

func newTagRow(p *pb.SegmentTag) tagRow {
	return tagRow{p.GetTag(), p.GetSection(), p.GetMinStep(), p.GetMaxStep(), p.GetStart(), retiredText(p.GetRetiredUnixMs()), effect{InEffectInMS: p.GetInEffectInMs()}}
}

func tagTable(rows ...tagRow) *ui.Table {
	t := ui.NewTable("tag", "section", "min step", "max step", "start", "state")
	for _, r := range rows {
		t.Row(r.Tag, ctl.Digits(r.Section), r.MinStep, r.MaxStep, ctl.Digits(r.Start), stateCell(r.Retired))
	}
	return t
}

// maxStep is the largest segment, in numbers.
const maxStep = 1 << 32

// addResult is the output of add.
type addResult struct {
	tagRow
	Created bool `json:"created"` // if false, the tag existed and now has these settings
}

func segmentAddCommand() *cobra.Command {
	o, want := &ctl.Options{}, &pb.SegmentTag{}
	cmd := &cobra.Command{
		Use:   "add TAG | --file F",
		Short: "create a tag, or change its limits; it may be repeated",
		Long: `add creates a tag, of 1 to 128 bytes of A-Z a-z 0-9 . _ : and -. If there is one of
that name, the flags that are given change it, and the others leave it as it is.`,
		Example: "  seqctl segment add orders\n  seqctl segment add orders --start 5000000 --min-step 10000\n  seqctl segment add --file tags.txt",
		Args:    ctl.RangeArgs(1, 1),
	}
	o.AddTo(cmd, askTimeout)
	cmd.Flags().Uint64Var(&want.MinStep, "min-step", 0, "smallest number of numbers reserved in one write; a new tag has 1000")
	cmd.Flags().Uint64Var(&want.MaxStep, "max-step", 0, "largest number of `numbers` reserved in one write; a new tag has 1000000")
	cmd.Flags().Uint64Var(&want.Start, "start", 0, "hand out no `number` below this one; it never falls; a new tag has 1")
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		want.Tag = args[0]
		for _, limit := range []struct {
			flag        string
			value, most uint64
		}{{"min-step", want.MinStep, maxStep}, {"max-step", want.MaxStep, maxStep}, {"start", want.Start, uint64(seq.MaxSeq)}} {
			if cmd.Flags().Changed(limit.flag) && (limit.value < 1 || limit.value > limit.most) {
				return daemon.Usage(fmt.Errorf("%w: --%s %d, expected 1 to %d", seq.ErrBadArgument, limit.flag, limit.value, limit.most))
			}
		}
		reply, err := askSegment(ctx, o, pb.SegmentClient.Put, &pb.SegmentPutRequest{Tag: want})
		if errors.Is(err, seq.ErrRetired) {
			return fmt.Errorf("%w (seqctl segment retire %s --undo brings it back)", err, want.GetTag())
		}
		if err != nil {
			return err
		}
		r := addResult{newTagRow(reply.GetTag()), reply.GetCreated()}
		if err := ui.Print(stdout, format, r, func() *ui.Table { return tagTable(r.tagRow) }); err != nil || format != ui.FormatTable {
			return err
		}
		r.note(stdout)
		return nil
	})
	addFlag(cmd, o, "a tag, then any of start=, min-step=, max-step=, template=, reset= and zone=", addTags)
	return cmd
}

func segmentListCommand() *cobra.Command {
	o := &ctl.Options{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list all tags with their limits",
		Args:  ctl.RangeArgs(0, 0),
	}
	o.AddTo(cmd, askTimeout)
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, _ []string, stdout io.Writer) error {
		reply, err := askSegment(ctx, o, pb.SegmentClient.List, &pb.SegmentListRequest{})
		if err != nil {
			return err
		}
		rows := []tagRow{}
		for _, tag := range reply.GetTags() {
			rows = append(rows, newTagRow(tag))
		}
		return ui.Print(stdout, format, rows, func() *ui.Table { return tagTable(rows...) })
	})
	return cmd
}

// lookAgain is the pause before a tag that has no owner for the moment is asked for
// again: short against a takeover, which is a lease at least.
const lookAgain = 100 * time.Millisecond

// segmentNextResult is the output of next.
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
		Use:               "next TAG",
		ValidArgsFunction: completer(o, tags),
		Short:             "take the next number of a tag, or a contiguous range of them",
		Example:           "  seqctl segment next orders\n  seqctl segment next orders --count 1000 -o json",
		Args:              ctl.RangeArgs(1, 1),
	}
	o.AddTo(cmd, askTimeout)
	cmd.Flags().Int64Var(&count, "count", 1, fmt.Sprintf("how many numbers, 1 to %d", seq.MaxCount))
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		if count < 1 || count > seq.MaxCount {
			return badCount(count, seq.MaxCount)
		}
		reply, err := atOwner(ctx, o, args[0], pb.SegmentClient.Take, &pb.SegmentTakeRequest{Tag: args[0], Count: uint32(count)})
		if err != nil {
			return err
		}
		r := segmentNextResult{args[0], reply.GetFirst(), reply.GetLast(), uint32(count)}
		return ui.Print(stdout, format, r, func() *ui.Table {
			return ui.NewTable("tag", "first", "last", "count").Row(r.Tag, ctl.Digits(r.First), ctl.Digits(r.Last), r.Count)
		})
	})
	return cmd
}

// atOwner asks addr and goes where it points to, until the tag's owner answers or ctx
// ends. An answer that was lost skips numbers.
func atOwner[Q, R any](ctx context.Context, o *ctl.Options, tag string, method func(pb.SegmentClient, context.Context, *Q, ...grpc.CallOption) (*R, error), req *Q) (*R, error) {
	addr, err := o.Seed(ctx)
	if err != nil {
		return nil, err
	}
	at := addr
	for hops := 0; ; hops++ {
		reply, err := segmentAt(ctx, o, at, method, req)
		if err == nil {
			return reply, nil
		}
		next, ok := whereNext(addr, at, err)
		switch {
		case !ok:
			return nil, err
		case rpc.CodeOf(err) == pb.ErrorCode_ERROR_CODE_UNSPECIFIED: // gRPC's own, of an owner that is gone
			err = fmt.Errorf("%w: owner of tag %q at %s: %v", seq.ErrNoRoute, tag, at, err)
		}
		if (next == addr || hops > 0) && !wake.Sleep(ctx, lookAgain) {
			return nil, err
		}
		at = next
	}
}

// whereNext returns the address to ask after an error of the node at. It is the owner that the error names,
// or addr again, which learns of a new owner. whereNext returns false if no other address would help.
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

func segmentRetireCommand() *cobra.Command {
	o, want := &ctl.Options{}, &pb.SegmentRetireRequest{}
	cmd := &cobra.Command{
		Use:               "retire TAG",
		ValidArgsFunction: completer(o, tags),
		Short:             "have a tag hand out nothing more; --undo brings it back",
		Long: `retire has a tag hand out no more numbers: callers get RETIRED once it is answered. add does not bring
it back: --undo does, above all its numbers, since its register stays. Retire once every node runs a
version that knows how to: an older one would go on, and bring it back with the next add of any tag.`,
		Example: "  seqctl segment retire orders\n  seqctl segment retire orders --undo",
		Args:    ctl.RangeArgs(1, 1),
	}
	o.AddTo(cmd, askTimeout)
	cmd.Flags().BoolVar(&want.Undo, "undo", false, "have it hand out numbers again")
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		want.Tag = args[0]
		reply, err := askSegment(ctx, o, pb.SegmentClient.Retire, want)
		if err != nil {
			return err
		}
		r := newTagRow(reply)
		if err := ui.Print(stdout, format, r, func() *ui.Table { return tagTable(r) }); err != nil || format != ui.FormatTable {
			return err
		}
		r.note(stdout)
		return nil
	})
	return cmd
}
