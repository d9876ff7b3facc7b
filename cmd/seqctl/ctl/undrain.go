package ctl

import (
	"context"

	"github.com/spf13/cobra"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

func undrainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "undrain NODE",
		Example: "  seqctl undrain alloc-2",
		Short:   "let a drained AllocSvr have sections again",
		Args:    ExactArgs("NODE"),
	}
	return changeVerb(cmd, func(ctx context.Context, admin pb.AdminClient, args []string) (*pb.ChangeReply, error) {
		return admin.Drain(ctx, &pb.DrainRequest{Node: args[0], Undo: true})
	})
}
