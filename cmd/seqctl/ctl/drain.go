package ctl

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/internal/ui"
	"github.com/seqsvr/seqsvr/internal/wake"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// Of drain --wait.
const (
	drainTimeout = time.Minute // its default; an idle node is empty within a second
	drainPause   = 250 * time.Millisecond
)

// drainResult is what drain prints.
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
		Args: ExactArgs("NODE"),
	}
	o.AddTo(cmd, changeTimeout)
	cmd.Flags().BoolVar(&wait, "wait", false, fmt.Sprintf("wait until the node is empty; --timeout is %v then unless given", drainTimeout))
	verb := o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
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
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if wait && !cmd.Flags().Changed("timeout") {
			o.Timeout = drainTimeout
		}
		return verb(cmd, args)
	}
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

// wait asks all nodes again and again until the drain is complete, and tells what is left.
// Errors: errStillDraining, errUndrained.
func (r *drainResult) wait(ctx context.Context, o *Options, progress io.Writer) error {
	told, left := "", "nothing is known of it yet"
	for {
		s, err := takeSurvey(ctx, o)
		switch {
		case ctx.Err() != nil: // it was cut short and says nothing
		case err != nil:
			left = err.Error()
		default:
			var done bool
			if left, done, err = r.left(s); err != nil {
				return err
			}
			if done {
				r.ToMove, r.RouteVersion, r.State = 0, s.view().GetRouteVersion(), "drained"
				return nil
			}
		}
		if left != told {
			told = left
			fmt.Fprintf(progress, "%s: %s\n", r.Subject, left)
		}
		if !wake.Sleep(ctx, drainPause) {
			return fmt.Errorf("%w after %v: %s: %s; it goes on, and seqctl status tells how far it is", errStillDraining, o.Timeout, r.Subject, left)
		}
	}
}

// left says what is still to be done, by the node that knows the newest route table, by the
// stores as it read them, and by the drained node itself.
func (r *drainResult) left(s *survey) (what string, done bool, err error) {
	best := s.view()
	if best == nil {
		return fmt.Sprintf("none of %d AllocSvr answers", len(s.cluster.table.Nodes)), false, nil
	}
	if best.GetRouteVersion() < r.RouteVersion {
		return "the route table that says so has not been read yet", false, nil
	}
	if i := s.cluster.table.Index(r.Subject); s.cluster.table.Version >= r.RouteVersion && i >= 0 && !s.cluster.table.Nodes[i].Drained {
		return "", false, fmt.Errorf("%w: %s", errUndrained, r.Subject)
	}
	toGo, known := s.replies[r.Subject].GetSectionsOwned(), false
	for _, m := range best.GetMembers() {
		known = known || m.GetLeaseLeftMs() >= 0 // only a node that has read the stores knows of leases
		if m.GetRole() == "alloc" && m.GetName() == r.Subject {
			toGo = max(toGo, m.GetSectionsDesired(), m.GetSectionsOwned())
		}
	}
	moving, unowned := best.GetSectionsMoving(), best.GetSectionsUnowned()
	switch {
	case !known:
		return "who owns what could not be read from the stores", false, nil
	case toGo > 0:
		return fmt.Sprintf("%d sections to go", toGo), false, nil
	case moving > 0:
		return fmt.Sprintf("%d sections are on their way", moving), false, nil
	case unowned > 0:
		return fmt.Sprintf("it is empty, but %d sections of the cluster have no owner", unowned), false, nil
	}
	return "", true, nil
}
