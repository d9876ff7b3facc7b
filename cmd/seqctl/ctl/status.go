package ctl

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/ops/survey"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// askTimeout is the default of the verbs that only ask.
const askTimeout = 10 * time.Second

func statusCommand() *cobra.Command {
	o := &Options{}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "say at a glance whether the cluster is healthy; exit 1 if a part of it does not serve",
		Args:  ExactArgs(),
	}
	o.AddTo(cmd, askTimeout)
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, _ []string, stdout io.Writer) error {
		s, err := takeSurvey(ctx, o, true)
		if err != nil {
			return err
		}
		result := s.Judge()
		if err := printStatus(stdout, format, result); err != nil {
			return err
		}
		if result.Health == survey.Failed {
			return fmt.Errorf("%w: %s", errUnhealthy, result.Problems[0])
		}
		return nil
	})
	return cmd
}

// takeSurvey asks all AllocSvr of the route table at once. If ids is set, it also asks about
// snowflake IDs, other Sets, and what routers refuse.
func takeSurvey(ctx context.Context, o *Options, ids bool) (*survey.Survey, error) {
	c, err := o.routes(ctx)
	if err != nil {
		return nil, err
	}
	conns := survey.NewConns(o.Dial()...)
	defer conns.Close()
	s := survey.Take(ctx, c, conns, survey.Patience)
	if ids {
		var asking sync.WaitGroup
		asking.Go(func() { s.AskRouters(ctx, conns, survey.Patience) })
		s.AskSets(ctx, conns, survey.Patience)
		asking.Wait()
	}
	if addr := s.Answered(); ids && addr != "" {
		if conn, err := conns.To(addr); err == nil {
			ctx, cancel := context.WithTimeout(ctx, survey.Patience)
			defer cancel()
			s.AskIDs(ctx, pb.NewSnowflakeClient(conn), time.Now())
		}
	}
	return s, nil
}
