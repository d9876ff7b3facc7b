package bench

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
)

// Commands returns the verbs bench and check.
func Commands() []*cobra.Command { return []*cobra.Command{benchCommand(), checkCommand()} }

func benchCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "load a cluster and measure it, with every answer of a sample checked",
		Long:  "bench loads a cluster and tells rate and latency. --target is one of\n\n" + kindList() + longNotes,
		Example: "  seqctl bench --callers 512 --duration 30s\n" +
			"  seqctl bench --rate 100000 --callers 512 -o json\n" +
			"  seqctl bench --target batch --batch 1000 --callers 16 --dist zipf",
		Args: ctl.ExactArgs(),
	}
	o.addTo(cmd)
	o.addKindTo(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return o.bench(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	return cmd
}

const longNotes = `
Without --rate each caller calls again at once. With it, calls have a timetable, and one
that was delayed is counted from when it was due.

The numbers taken are used up: they are those of --uids UIDs from --first-uid on. UIDs
that share a section share its ceiling, so on a cluster with users, use a --space of its
own. Exit 1 when no call succeeded, or when a number was repeated or fell.`

func kindList() string {
	var b strings.Builder
	for _, k := range kinds() {
		fmt.Fprintf(&b, "  %-10s %s\n", k.name, k.what)
	}
	return b.String()
}

func (o *options) bench(ctx context.Context, stdout, stderr io.Writer) error {
	p, err := o.check()
	if err != nil {
		return err
	}
	r, err := o.run(ctx, p, stderr)
	if err != nil {
		return err
	}
	if err := r.write(stdout, p.format); err != nil {
		return err
	}
	if ctx.Err() != nil {
		// The text alone: a run that was cut short is no clean stop.
		return fmt.Errorf("interrupted after %.3g s", r.Seconds)
	}
	return r.err()
}
