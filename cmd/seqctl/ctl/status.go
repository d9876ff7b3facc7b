package ctl

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/ops/survey"
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

// takeSurvey asks all AllocSvr of the route table at once. If whole is set, it asks all Sets, the routers, and
// about snowflake IDs, too.
func takeSurvey(ctx context.Context, o *Options, whole bool) (*survey.Survey, error) {
	c, err := o.routes(ctx)
	if err != nil {
		return nil, err
	}
	conns := survey.NewConns(o.Dial()...)
	defer conns.Close()
	if whole {
		return survey.Whole(ctx, c, conns, survey.Patience, survey.Take), nil
	}
	return survey.Take(ctx, c, conns, survey.Patience), nil
}
