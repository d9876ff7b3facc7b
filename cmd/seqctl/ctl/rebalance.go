package ctl

import (
	"context"

	"github.com/spf13/cobra"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

func rebalanceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rebalance",
		Short: "spread the sections afresh over the live AllocSvr, and lift a freeze",
		Args:  ExactArgs(),
	}
	return changeVerb(cmd, func(ctx context.Context, admin pb.AdminClient, _ []string) (*pb.ChangeReply, error) {
		return admin.Rebalance(ctx, &pb.RebalanceRequest{})
	})
}
