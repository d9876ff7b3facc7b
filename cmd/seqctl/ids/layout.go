package ids

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// defaultLayout is the layout of an ID if none is named. The namespace "default" has the
// same unless it was changed.
const defaultLayout = "twitter"

// describe is a layout as the cluster describes it.
func describe(l snowflake.Layout) *pb.SnowflakeLayout {
	policy := l.Policy()
	rollback := policy.Rollback.String()
	if policy.Rollback == snowflake.RollbackWait {
		rollback += ":" + policy.RollbackWait.String()
	}
	return &pb.SnowflakeLayout{
		Name: l.PresetName(), Text: l.String(),
		EpochUnixMs: l.Epoch().UnixMilli(), UnitMs: l.Unit().Milliseconds(), ExhaustedUnixMs: l.Exhausted().UnixMilli(),
		HasDatacenter: l.HasDatacenter(), MaxDatacenter: uint64(l.MaxDatacenter()),
		MaxWorker: uint64(l.MaxWorker()), MaxSequence: l.MaxSequence(),
		Overflow: policy.Overflow.String(), Rollback: rollback, ReadOnly: l.ReadOnly(),
	}
}

// layoutRow is a layout in layouts and namespace.
type layoutRow struct {
	Layout        string  `json:"layout"` // preset, or text if it is none
	Text          string  `json:"text"`
	UnitMS        int64   `json:"unit_ms"`
	Epoch         string  `json:"epoch"`
	RunsOut       string  `json:"runs_out"` // first moment without a tick
	RanOut        bool    `json:"ran_out"`
	Warning       bool    `json:"warning"` // it ran out, or will within a year
	MaxDatacenter *uint64 `json:"max_datacenter,omitempty"`
	MaxWorker     uint64  `json:"max_worker"`
	MaxSequence   uint64  `json:"max_sequence"` // within one tick
	Overflow      string  `json:"overflow"`
	Rollback      string  `json:"rollback"`
	ReadOnly      bool    `json:"read_only,omitempty"` // of 64 bits: nothing makes such IDs

	left time.Duration
}

func newLayoutRow(p *pb.SnowflakeLayout, now time.Time) layoutRow {
	out := time.UnixMilli(p.GetExhaustedUnixMs())
	r := layoutRow{
		Layout: p.GetName(), Text: p.GetText(), UnitMS: p.GetUnitMs(), Epoch: stamp(p.GetEpochUnixMs()), RunsOut: stamp(p.GetExhaustedUnixMs()),
		MaxWorker: p.GetMaxWorker(), MaxSequence: p.GetMaxSequence(), Overflow: p.GetOverflow(), Rollback: p.GetRollback(), ReadOnly: p.GetReadOnly(), left: out.Sub(now),
	}
	if r.Layout == "" {
		r.Layout = r.Text
	}
	if p.GetHasDatacenter() {
		highest := p.GetMaxDatacenter()
		r.MaxDatacenter = &highest
	}
	r.RanOut, r.Warning = r.left <= 0, r.left <= snowflake.ExhaustionWarning
	return r
}

// fields returns the part of the text before the options.
func (r layoutRow) fields() string {
	fields, _, _ := strings.Cut(r.Text, ";")
	return fields
}

// leftCell returns the time left as a table shows it.
func (r layoutRow) leftCell() ui.Cell {
	switch {
	case r.RanOut:
		return ctl.State("ran out", false)
	case r.Warning:
		return ctl.Pending(ui.Duration(r.left))
	}
	return ctl.State(ui.Duration(r.left), true)
}

// meaning holds the flags that choose the layout of an ID.
type meaning struct{ layout, namespace string }

// addTo adds the flags. The text also becomes part of the help of --layout.
func (m *meaning) addTo(cmd *cobra.Command, o *ctl.Options, also string) {
	cmd.Flags().StringVar(&m.layout, "layout", "", "preset, or a layout's `text`; "+also+"default "+defaultLayout)
	cmd.Flags().StringVar(&m.namespace, "namespace", "", "the layout that this `namespace` has at the cluster, a name or an alias; empty: --layout")
	_ = cmd.RegisterFlagCompletionFunc("namespace", completer(o, namespaces))           // it is there
	_ = cmd.RegisterFlagCompletionFunc("layout", ctl.OneOf(snowflake.PresetNames()...)) // it is there
}

// read gives the layout, the default one where none is named, and whether a cluster
// is asked. Errors are daemon.ErrUsage.
func (m *meaning) read(cmd *cobra.Command) (l snowflake.Layout, asked bool, err error) {
	named := cmd.Flags().Changed("namespace")
	if named && m.layout != "" {
		return l, false, daemon.Usage(fmt.Errorf("%w: --layout and --namespace: expected one of them", seq.ErrBadArgument))
	}
	text := m.layout
	if text == "" {
		text = defaultLayout
	}
	l, err = parseLayout("--layout", text)
	return l, named || cmd.Flags().Changed("addr"), err
}

func layoutsCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "layouts [LAYOUT]",
		Short: "list the preset layouts, or describe one, with when it runs out; no cluster needed",
		Example: "  seqctl snowflake layouts\n" +
			"  seqctl snowflake layouts 'time:32,worker:9,sequence:12;js53;unit=1s;epoch=2026-01-01T00:00Z' -o json",
		Args:              ctl.RangeArgs(0, 1),
		ValidArgsFunction: ctl.OneOf(snowflake.PresetNames()...),
	}
	cmd.Flags().StringVarP(&output, "output", "o", string(ui.FormatTable), "table, json or yaml")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		format, err := ui.ParseFormat(output)
		if err != nil {
			return daemon.Usage(err)
		}
		if len(args) == 0 {
			args = snowflake.PresetNames()
		}
		rows := []layoutRow{}
		for _, text := range args {
			l, err := snowflake.Preset(text) // as it is made here
			if err != nil {
				l, err = parseLayout("LAYOUT", text)
			}
			if err != nil {
				return err
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
