package ctl

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/ops/survey"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// changeTimeout is the default of the verbs that move sections.
const changeTimeout = 15 * time.Second

// change is the output of undrain, move and rebalance.
type change struct {
	Change       string `json:"change"`
	Subject      string `json:"subject,omitempty"`
	RouteVersion uint64 `json:"route_version"`
	Moved        uint32 `json:"moved"` // sections whose desired owner changed
	State        string `json:"state"` // asked, or with --wait done
}

// changeVerb is one of those verbs: call asks for the change.
func changeVerb(cmd *cobra.Command, call func(ctx context.Context, o *Options, args []string) (*pb.ChangeReply, error)) *cobra.Command {
	o, wait := &Options{}, false
	o.AddTo(cmd, changeTimeout)
	waitFlag(cmd, o, &wait, "every section is where it is to be")
	cmd.ValidArgsFunction = o.completeArgs(nodes)
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		reply, err := call(ctx, o, args)
		if err != nil {
			return err
		}
		result := change{Change: cmd.Name(), RouteVersion: reply.GetRouteVersion(), Moved: reply.GetMoved(), State: "asked"}
		if len(args) > 0 {
			result.Subject = args[0]
		}
		if wait {
			_, err := await(ctx, o, cmd.ErrOrStderr(), result.Change, errNotSettled, func(s *survey.Survey) (string, bool, error) {
				return settled(s, result.RouteVersion)
			})
			if err != nil {
				return err
			}
			result.State = "done"
		}
		return ui.Print(stdout, format, result, func() *ui.Table {
			return ui.NewTable("change", "subject", "routes version", "sections moved", "state").
				Row(result.Change, result.Subject, result.RouteVersion, result.Moved, result.State)
		})
	})
	return cmd
}

func undrainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "undrain NODE",
		Example: "  seqctl undrain alloc-2",
		Short:   "let a drained AllocSvr have sections again",
		Args:    ExactArgs("NODE"),
	}
	return changeVerb(cmd, func(ctx context.Context, o *Options, args []string) (*pb.ChangeReply, error) {
		return onAnyNode(ctx, o, pb.AdminClient.Drain, &pb.DrainRequest{Node: args[0], Undo: true})
	})
}

func moveCommand() *cobra.Command {
	var unpin bool
	cmd := &cobra.Command{
		Use:     "move SECTION NODE",
		Example: "  seqctl move 17 alloc-2 --wait\n  seqctl move 17 --unpin",
		Short:   "move one section to an AllocSvr and pin it there (--unpin SECTION lets it go)",
		Args: func(cmd *cobra.Command, args []string) error {
			if want := 2; unpin && len(args) != 1 || !unpin && len(args) != want {
				return wrongArgs(cmd, len(args))
			}
			_, err := parseSection(args[0])
			return err
		},
	}
	cmd.Flags().BoolVar(&unpin, "unpin", false, "give the section back to the arbiter")
	return changeVerb(cmd, func(ctx context.Context, o *Options, args []string) (*pb.ChangeReply, error) {
		section, err := parseSection(args[0])
		if err != nil {
			return nil, err
		}
		req := &pb.MoveRequest{Section: uint32(section)}
		if !unpin {
			req.Node = args[1]
		}
		return onAnyNode(ctx, o, pb.AdminClient.Move, req)
	})
}

func rebalanceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rebalance",
		Short: "spread the sections afresh over the live AllocSvr, and lift a freeze",
		Args:  ExactArgs(),
	}
	return changeVerb(cmd, func(ctx context.Context, o *Options, _ []string) (*pb.ChangeReply, error) {
		return onAnyNode(ctx, o, pb.AdminClient.Rebalance, &pb.RebalanceRequest{})
	})
}
