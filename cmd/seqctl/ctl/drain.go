package ctl

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/ops/survey"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// drainResult is the output of drain.
type drainResult struct {
	Change       string `json:"change"`
	Subject      string `json:"subject"`
	RouteVersion uint64 `json:"route_version"`
	ToMove       uint32 `json:"to_move"` // sections that the node still had by the route table when this was printed
	State        string `json:"state"`   // asked, or with --wait drained
}

func drainCommand() *cobra.Command {
	o := &Options{}
	var wait bool
	cmd := &cobra.Command{
		Use:     "drain NODE",
		Example: "  seqctl drain alloc-2 --wait",
		Short:   "move all sections away from an AllocSvr, with their counters, and give it no others",
		Long: `drain asks for all sections of an AllocSvr to be moved away, with their counters, and
for it to be given no others. The node does so itself, which has only begun when drain
without --wait ends. With --wait it ends when the node has no section any more and every
section of the cluster has an owner, or fails after --timeout; the node then goes on
draining all the same.`,
		Args:              ExactArgs("NODE"),
		ValidArgsFunction: o.completeArgs(nodes),
	}
	o.AddTo(cmd, changeTimeout)
	waitFlag(cmd, o, &wait, "the node is empty")
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		r, err := drain(ctx, o, args[0])
		if err != nil {
			return err
		}
		if wait {
			if err := r.wait(ctx, o, cmd.ErrOrStderr()); err != nil {
				return err
			}
		}
		return ui.Print(stdout, format, r, func() *ui.Table {
			return ui.NewTable("change", "subject", "routes version", "sections to move", "state").
				Row(r.Change, r.Subject, r.RouteVersion, r.ToMove, r.State)
		})
	})
	return cmd
}

// drain asks, and does not wait.
func drain(ctx context.Context, o *Options, node string) (*drainResult, error) {
	reply, err := onAnyNode(ctx, o, pb.AdminClient.Drain, &pb.DrainRequest{Node: node})
	if err != nil {
		return nil, err
	}
	return &drainResult{Change: "drain", Subject: node, RouteVersion: reply.GetRouteVersion(), ToMove: reply.GetMoved(), State: "asked"}, nil
}

// wait waits until the drain is complete. Errors: errStillDraining, errUndrained.
func (r *drainResult) wait(ctx context.Context, o *Options, progress io.Writer) error {
	s, err := await(ctx, o, progress, r.Subject, errStillDraining, r.left)
	if err == nil {
		r.ToMove, r.RouteVersion, r.State = 0, s.View().GetRouteVersion(), "drained"
	}
	return err
}

// left says what is still to be done, by the node that knows the newest route table, by the
// stores as it read them, and by the drained node itself.
func (r *drainResult) left(s *survey.Survey) (what string, done bool, err error) {
	best, left := newest(s, r.RouteVersion)
	if left != "" {
		return left, false, nil
	}
	if i := s.Cluster.Table.Index(r.Subject); s.Cluster.Table.Version >= r.RouteVersion && i >= 0 && !s.Cluster.Table.Nodes[i].Drained {
		return "", false, fmt.Errorf("%w: %s", errUndrained, r.Subject)
	}
	toGo := s.Replies[r.Subject].GetSectionsOwned()
	for _, m := range best.GetMembers() {
		if m.GetRole() == "alloc" && m.GetName() == r.Subject {
			toGo = max(toGo, m.GetSectionsDesired(), m.GetSectionsOwned())
		}
	}
	if toGo > 0 {
		return fmt.Sprintf("%d sections to go", toGo), false, nil
	}
	left = onTheWay(best)
	return left, left == "", nil
}
