package ids

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/internal/daemon"
	"github.com/seqsvr/seqsvr/internal/ui"
	"github.com/seqsvr/seqsvr/snowflake"
)

func layoutsCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "layouts [LAYOUT]",
		Short: "list the preset layouts, or describe one, with when it runs out; no cluster needed",
		Example: "  seqctl snowflake layouts\n" +
			"  seqctl snowflake layouts 'time:32,worker:9,sequence:12;js53;unit=1s;epoch=2026-01-01T00:00Z' -o json",
		Args: between(0, 1),
	}
	cmd.Flags().StringVarP(&output, "output", "o", string(ui.FormatTable), "table, json or yaml")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		format, err := ui.ParseFormat(output)
		if err != nil {
			return fmt.Errorf("layouts: %w", daemon.Usage(err))
		}
		if len(args) == 0 {
			args = snowflake.PresetNames()
		}
		rows := []layoutRow{}
		for _, text := range args {
			l, err := parseLayout("LAYOUT", text)
			if err != nil {
				return fmt.Errorf("layouts: %w", err)
			}
			rows = append(rows, newLayoutRow(describe(l), time.Now()))
		}
		return ui.Print(cmd.OutOrStdout(), format, rows, func() *ui.Table { return layoutsTable(rows) })
	}
	return cmd
}

func layoutsTable(rows []layoutRow) *ui.Table {
	t := ui.NewTable("layout", "runs out", "left", "unit", "epoch", "overflow", "rollback", "fields")
	for _, r := range rows {
		name := r.Layout
		if name == r.Text {
			name = "-" // the fields follow
		}
		t.Row(name, r.RunsOut, r.leftCell(), time.Duration(r.UnitMS)*time.Millisecond, r.Epoch, r.Overflow, r.Rollback, r.fields())
	}
	return t
}
