package ctl

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/internal/ops/survey"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// Of --wait.
const (
	waitTimeout = time.Minute // the default of --timeout then; an idle node is empty within a second
	waitPause   = 250 * time.Millisecond
)

// waitFlag declares --wait until something is so.
func waitFlag(cmd *cobra.Command, o *Options, wait *bool, until string) {
	cmd.Flags().BoolVar(wait, "wait", false, fmt.Sprintf("wait until %s; --timeout is %v then unless given", until, waitTimeout))
	cmd.PreRun = func(cmd *cobra.Command, _ []string) {
		if *wait && !cmd.Flags().Changed("timeout") {
			o.Timeout = waitTimeout
		}
	}
}

// await asks all nodes again and again until nothing is left to do, and tells each time
// what is. The error is gaveUp when ctx ends before, or one of left.
func await(ctx context.Context, o *Options, progress io.Writer, subject string, gaveUp error, left func(s *survey.Survey) (what string, done bool, err error)) (*survey.Survey, error) {
	told, what := "", "nothing is known of it yet"
	for {
		s, err := takeSurvey(ctx, o, false)
		switch {
		case over(ctx): // it was cut short and says nothing
		case err != nil:
			what = err.Error()
		default:
			var done bool
			if what, done, err = left(s); err != nil || done {
				return s, err
			}
		}
		if what != told {
			told = what
			fmt.Fprintf(progress, "%s: %s\n", subject, what)
		}
		if !wake.Sleep(ctx, waitPause) {
			return nil, fmt.Errorf("%w after %v: %s: %s; it goes on, and seqctl status tells how far it is", gaveUp, o.Timeout, subject, what)
		}
	}
}

// over reports whether the time of ctx has passed. A server may say so before a busy machine lets the
// timer of ctx do.
func over(ctx context.Context) bool {
	deadline, bounded := ctx.Deadline()
	return ctx.Err() != nil || bounded && !time.Now().Before(deadline)
}

// newest returns the answer of the node that knows most, once that is a route table of the
// version or a later one and it has read the stores; left says what is missing.
func newest(s *survey.Survey, version uint64) (best *pb.StatusReply, left string) {
	best = s.View()
	switch {
	case best == nil:
		return nil, fmt.Sprintf("none of %d AllocSvr answers", len(s.Cluster.Table.Nodes))
	case best.GetRouteVersion() < version:
		return best, "the route table that says so has not been read yet"
	}
	for _, m := range best.GetMembers() {
		if m.GetLeaseLeftMs() >= 0 { // only a node that has read the stores knows of leases
			return best, ""
		}
	}
	return best, "who owns what could not be read from the stores"
}

// onTheWay returns a text about the sections that are not served where they should be, or "" if there are
// none.
func onTheWay(best *pb.StatusReply) string {
	switch moving, unowned := best.GetSectionsMoving(), best.GetSectionsUnowned(); {
	case moving > 0:
		return fmt.Sprintf("%d sections are on their way", moving)
	case unowned > 0:
		return fmt.Sprintf("%d sections of the cluster have no owner", unowned)
	}
	return ""
}

// settled says what is left until every section is where the table wants it.
func settled(s *survey.Survey, version uint64) (what string, done bool, err error) {
	best, left := newest(s, version)
	if left == "" {
		left = onTheWay(best)
	}
	for _, m := range best.GetMembers() {
		owned, desired := m.GetSectionsOwned(), m.GetSectionsDesired()
		if left == "" && m.GetRole() == "alloc" && owned != desired {
			left = fmt.Sprintf("%s has %d sections of %d", m.GetName(), owned, desired)
		}
	}
	return left, left == "", nil
}
