package ctl

import (
	"context"

	"github.com/spf13/cobra"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

func moveCommand() *cobra.Command {
	var unpin bool
	cmd := &cobra.Command{
		Use:     "move SECTION NODE",
		Example: "  seqctl move 17 alloc-2\n  seqctl move 17 --unpin",
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
	return changeVerb(cmd, func(ctx context.Context, admin pb.AdminClient, args []string) (*pb.ChangeReply, error) {
		section, err := parseSection(args[0])
		if err != nil {
			return nil, err
		}
		req := &pb.MoveRequest{Section: uint32(section)}
		if !unpin {
			req.Node = args[1]
		}
		return admin.Move(ctx, req)
	})
}
