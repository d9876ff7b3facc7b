package setctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/ops/setadmin"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
	"github.com/seqsvr/seqsvr/storesvr/backup"
)

// settled is the output of the verb.
type settled struct {
	Set   string            `json:"set"`
	Kept  string            `json:"kept"`  // sections
	Given map[string]string `json:"given"` // by the Set that has them
}

func settleCommand() *cobra.Command {
	o, name, bump := &options{}, "", uint64(0)
	cmd := &cobra.Command{
		Use:   "settle --set NAME",
		Short: "decide which sections a restored Set has, after seqctl store restore",
		Long: `settle asks all other Sets which sections they have; what none of them has is the restored Set's, which
serves it from above all that is known of it, and nothing before. Every Set must answer. It may be repeated.
A root Set that was restored gets its map by that, too. If several Sets were restored, settle each of them:
what may have been in more than one goes to the one that the map names.`,
		Example: "  seqctl set settle --set set-2",
		Args:    ctl.ExactArgs(),
	}
	o.AddTo(cmd, moveTimeout)
	cmd.Flags().StringVar(&name, "set", "", "`name` of the Set that was restored; required")
	cmd.Flags().Uint64Var(&bump, "bump", backup.DefaultBump, "how many `numbers` a section that came from another Set begins above what that one had handed out: more than it handed out since, and at least that of seqctl store restore")
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, _ []string, stdout io.Writer) error {
		if name == "" {
			return daemon.Usage(errors.New("expected --set NAME, as seqctl set list tells it"))
		}
		if bump == 0 || bump > uint64(seq.MaxSeq) {
			return daemon.Usage(fmt.Errorf("--bump %d: expected 1 to %d", bump, uint64(seq.MaxSeq)))
		}
		return o.with(ctx, func(d *division) error {
			if _, err := d.set(name); err != nil {
				return err
			}
			s := &setadmin.Settlement{Root: d.root, Conns: d.conns, Set: name, Bump: bump}
			got, err := s.Run(ctx)
			if err != nil {
				return tidy(err)
			}
			return printSettled(stdout, format, name, got)
		})
	})
	return cmd
}

func printSettled(w io.Writer, format ui.Format, name string, got setadmin.Settled) error {
	out := settled{Set: name, Kept: textOf(got.Kept), Given: map[string]string{}}
	for to, ids := range got.Given {
		out.Given[to] = textOf(ids)
	}
	return ui.Print(w, format, out, func() *ui.Table {
		t := ui.NewTable("set", "sections")
		if len(got.Kept) > 0 {
			t.Row(name, out.Kept)
		}
		for _, to := range slices.Sorted(maps.Keys(out.Given)) {
			t.Row(to, out.Given[to])
		}
		return t
	})
}

func textOf(ids []seq.SectionID) string {
	slices.Sort(ids)
	return rangesText(sets.RangesOf(ids))
}
