package ctl

import (
	"context"

	"github.com/spf13/cobra"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

func drainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "drain NODE",
		Example: "  seqctl drain alloc-2",
		Short:   "move all sections away from an AllocSvr, with their counters, and give it no others",
		Args:    ExactArgs("NODE"),
	}
	return changeVerb(cmd, func(ctx context.Context, admin pb.AdminClient, args []string) (*pb.ChangeReply, error) {
		return admin.Drain(ctx, &pb.DrainRequest{Node: args[0]})
	})
}
