package setctl

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/ops/survey"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// setRow is one Set in list.
type setRow struct {
	Set      string   `json:"set"`
	Cluster  string   `json:"cluster_id"`
	Sections int      `json:"sections"` // by the map
	Addrs    []string `json:"addrs"`
	Alive    bool     `json:"alive"`
	Error    string   `json:"error,omitempty"` // why not
}

func listCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list the Sets, and whether they answer",
		Args:  ctl.ExactArgs(),
	}
	o.AddTo(cmd, askTimeout)
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, _ []string, stdout io.Writer) error {
		return o.with(ctx, func(d *division) error {
			rows := d.list(ctx)
			return ui.Print(stdout, format, rows, func() *ui.Table {
				t := ui.NewTable("set", "cluster", "sections", "state", "addresses")
				for _, r := range rows {
					t.Row(r.Set, r.Cluster, r.Sections, ctl.State(cmp.Or(r.Error, "alive"), r.Alive), strings.Join(r.Addrs, ","))
				}
				return t
			})
		})
	})
	return cmd
}

// list asks all Sets at once.
func (d *division) list(ctx context.Context) []setRow {
	all, ranges := d.all(), d.ranges()
	rows := make([]setRow, len(all))
	records := d.records(ctx)
	for i, s := range all {
		rows[i] = setRow{Set: s.Name, Cluster: s.Cluster, Sections: count(ranges[i]), Addrs: s.Addrs, Alive: records[i].err == nil}
		if i == 0 && len(s.Addrs) == 0 {
			rows[i].Addrs = d.addrs
		}
		switch r := records[i]; {
		case r.err != nil:
			rows[i].Error = "no answer: " + survey.LastReason(r.err)
		case r.cluster != s.Cluster:
			rows[i].Alive, rows[i].Error = false, "cluster "+r.cluster+" answers"
		}
	}
	return rows
}

// answer is a Set's record of all sections.
type answer struct {
	record  sets.Record
	cluster string
	err     error
}

// records asks all Sets at once, each for at most setPatience.
func (d *division) records(ctx context.Context) []answer {
	ctx, cancel := context.WithTimeout(ctx, setPatience)
	defer cancel()
	out := make([]answer, len(d.all()))
	var wg sync.WaitGroup
	for i, s := range d.all() {
		wg.Go(func() {
			set, err := d.set(s.Name)
			if err == nil {
				out[i].record, out[i].cluster, _, err = set.Record(ctx)
			}
			out[i].err = err
		})
	}
	wg.Wait()
	return out
}

// shown is the output of show.
type shown struct {
	Version uint64     `json:"sets_version"`
	Sets    []setShown `json:"sets"`
	Moves   []openMove `json:"moves"`
}

type setShown struct {
	Set      string `json:"set"`
	Count    int    `json:"count"`
	Sections string `json:"sections"`
}

// openMove is a move that is under way: one part for all sections that are equally far.
type openMove struct {
	Move  uint64     `json:"move"`
	From  string     `json:"from"`
	To    string     `json:"to"`
	Begun int64      `json:"begun_unix_ms"` // zero if it is not known
	Parts []openPart `json:"parts"`
}

type openPart struct {
	Sections string `json:"sections"`
	InFrom   string `json:"in_from"` // what that Set says of them
	InTo     string `json:"in_to"`
}

func showCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "show",
		Short: "show which Set has which sections, and how far open moves are",
		Args:  ctl.ExactArgs(),
	}
	o.AddTo(cmd, askTimeout)
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, _ []string, stdout io.Writer) error {
		return o.with(ctx, func(d *division) error {
			r := d.show(ctx)
			if format != ui.FormatTable {
				return ui.Print(stdout, format, r, nil)
			}
			return printShown(stdout, r)
		})
	})
	return cmd
}

func (d *division) show(ctx context.Context) shown {
	r := shown{Version: d.sets.Version, Sets: []setShown{}, Moves: []openMove{}}
	for i, ranges := range d.ranges() {
		r.Sets = append(r.Sets, setShown{d.all()[i].Name, count(ranges), rangesText(ranges)})
	}
	if len(d.sets.Moves) == 0 {
		return r
	}
	records := map[string]answer{}
	for i, a := range d.records(ctx) {
		records[d.all()[i].Name] = a
	}
	for _, m := range d.sets.Moves {
		open := openMove{Move: m.ID, From: m.From, To: m.To, Begun: m.Begun}
		parts := map[openPart][]seq.SectionID{}
		var order []openPart
		for _, id := range sets.Sections(m.Sections) {
			p := openPart{InFrom: records[m.From].at(id), InTo: records[m.To].at(id)}
			if parts[p] == nil {
				order = append(order, p)
			}
			parts[p] = append(parts[p], id)
		}
		for _, p := range order {
			of := p
			of.Sections = rangesText(sets.RangesOf(parts[p]))
			open.Parts = append(open.Parts, of)
		}
		r.Moves = append(r.Moves, open)
	}
	return r
}

// at returns the state of a section in the Set's record.
func (a answer) at(id seq.SectionID) string {
	if a.err != nil {
		return "no answer"
	}
	return a.record.At(id).String()
}

func printShown(w io.Writer, r shown) error {
	t := ui.NewTable("set", "count", "sections")
	for _, s := range r.Sets {
		t.Row(s.Set, s.Count, s.Sections)
	}
	if err := t.Write(w); err != nil || len(r.Moves) == 0 {
		return err
	}
	fmt.Fprintln(w)
	t = ui.NewTable("open move", "from", "to", "begun", "sections", "in the one", "in the other")
	for _, m := range r.Moves {
		for _, p := range m.Parts {
			t.Row(m.Move, m.From, m.To, survey.Stamp(m.Begun), p.Sections, p.InFrom, p.InTo)
		}
	}
	if err := t.Write(w); err != nil {
		return err
	}
	for _, m := range r.Moves {
		fmt.Fprintf(w, "move %d: %s\n", m.Move, hint(sets.Move{ID: m.Move}))
	}
	return nil
}

// rangesText is as --sections takes it; "-" for none.
func rangesText(ranges []sets.Range) string {
	if len(ranges) == 0 {
		return "-"
	}
	parts := make([]string, len(ranges))
	for i, r := range ranges {
		parts[i] = r.String()
	}
	return strings.Join(parts, ",")
}
