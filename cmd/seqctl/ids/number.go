package ids

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/allocsvr/numbers"
	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// numberRow is the state of a tag of business numbers.
type numberRow struct {
	Tag      string `json:"tag"`
	Template string `json:"template"`
	Reset    string `json:"reset"`
	Zone     string `json:"zone"`
	Period   string `json:"period"`  // the present period
	Next     string `json:"next"`    // the next number; empty if the period is used up
	Left     uint64 `json:"left"`    // of the period
	UsedUp   bool   `json:"used_up"` // until the next period
	Retired  string `json:"retired,omitempty"`
}

func newNumberRow(p *pb.NumberShowReply) numberRow {
	t := p.GetTag()
	return numberRow{t.GetTag(), t.GetTemplate(), t.GetReset_(), t.GetZone(), p.GetPeriod(), p.GetNext(), p.GetLeft(), p.GetUsedUp(), retiredText(t.GetRetiredUnixMs())}
}

func (r numberRow) print(w io.Writer, format ui.Format) error {
	return ui.Print(w, format, r, func() *ui.Table {
		next := ui.Cell{Text: r.Next}
		if r.UsedUp {
			next = ctl.State("used up", false)
		}
		return ui.NewTable("tag", "template", "reset", "zone", "period", "next", "left").
			Row(r.Tag, r.Template, r.Reset, r.Zone, r.Period, next, r.Left)
	})
}

func numberAddCommand() *cobra.Command {
	o, want := &ctl.Options{}, &pb.SegmentTag{}
	dry := false
	cmd := &cobra.Command{
		Use:   "add TAG",
		Short: "create a tag of business numbers, or give its count more digits; shows the next number",
		Long: `add creates a tag whose numbers are texts made by a template: literals, one {seq:DIGITS}, and
{date:LAYOUT} of 2006 or 06 (year), 01 (month), 02 (day), 002 (day of the year), 15 04 05 (time) and
- _ . / : T between. The count begins anew as --reset says; the template must then say the period.
Later the count may get more digits and the zone may change; anything else could repeat a number.`,
		Example: "  seqctl number add invoice --template 'INV-{date:20060102}-{seq:6}' --reset daily --zone Asia/Shanghai\n" +
			"  seqctl number add invoice --template 'INV-{date:20060102}-{seq:8}'\n" +
			"  seqctl number add po --template 'PO{date:06}-{seq:5}' --reset yearly --dry-run",
		Args: ctl.RangeArgs(1, 1),
	}
	o.AddTo(cmd, askTimeout)
	cmd.Flags().StringVar(&want.Template, "template", "", "`text` with {seq:DIGITS} and {date:LAYOUT}; empty: what the tag has")
	cmd.Flags().StringVar(&want.Reset_, "reset", "", "`when` the count begins anew: never, daily, monthly or yearly; empty: what the tag has, a new one never")
	cmd.Flags().StringVar(&want.Zone, "zone", "", "time `zone` of the dates, as Europe/Berlin; empty: what the tag has, a new one UTC")
	cmd.Flags().Uint64Var(&want.Start, "start", 0, "`number` at which each period begins; it never falls; a new tag has 1")
	cmd.Flags().Uint64Var(&want.MinStep, "min-step", 0, "smallest `number` of numbers reserved in one write, which a takeover skips; a new tag has 10")
	cmd.Flags().Uint64Var(&want.MaxStep, "max-step", 0, "largest `number` of numbers reserved in one write; a new tag has 1000")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only check the template and show its first number; no cluster needed")
	_ = cmd.RegisterFlagCompletionFunc("reset", ctl.OneOf(numbers.Never, numbers.Daily, numbers.Monthly, numbers.Yearly)) // it is there
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		want.Tag = args[0]
		if dry {
			r, err := dryRun(want, time.Now())
			if err != nil {
				return daemon.Usage(err)
			}
			return r.print(stdout, format)
		}
		if _, err := askSegment(ctx, o, pb.SegmentClient.Put, &pb.SegmentPutRequest{Tag: want}); err != nil {
			return err
		}
		return show(ctx, o, format, want.Tag, stdout)
	})
	return cmd
}

// dryRun returns the row of a tag that would be new.
func dryRun(want *pb.SegmentTag, now time.Time) (numberRow, error) {
	f := numbers.Format{Template: want.Template, Reset: want.Reset_, Zone: want.Zone}.Over(numbers.Format{})
	form, err := f.Parse()
	if err != nil {
		return numberRow{}, err
	}
	first := max(want.Start, 1)
	if first > form.Last() {
		return numberRow{}, fmt.Errorf("%w: start %d, expected at most %d, as the template has digits for", seq.ErrBadArgument, first, form.Last())
	}
	return numberRow{Tag: want.Tag, Template: f.Template, Reset: f.Reset, Zone: f.Zone, Period: form.Period(now), Next: form.Text(now, first), Left: form.Last() - first + 1}, nil
}

func show(ctx context.Context, o *ctl.Options, format ui.Format, tag string, stdout io.Writer) error {
	reply, err := atOwner(ctx, o, tag, pb.SegmentClient.ShowNumber, &pb.NumberShowRequest{Tag: tag})
	if err != nil {
		return err
	}
	return newNumberRow(reply).print(stdout, format)
}

func numberShowCommand() *cobra.Command {
	o := &ctl.Options{}
	cmd := &cobra.Command{
		Use:               "show TAG",
		ValidArgsFunction: completer(o, tags),
		Short:             "show a tag of business numbers and which one would come next, without taking it",
		Example:           "  seqctl number show invoice -o json",
		Args:              ctl.RangeArgs(1, 1),
	}
	o.AddTo(cmd, askTimeout)
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		return show(ctx, o, format, args[0], stdout)
	})
	return cmd
}

// numbersResult is the output of next.
type numbersResult struct {
	Tag     string   `json:"tag"`
	Period  string   `json:"period"`
	Numbers []string `json:"numbers"`
}

func numberNextCommand() *cobra.Command {
	o := &ctl.Options{}
	var count int64
	cmd := &cobra.Command{
		Use:               "next TAG",
		ValidArgsFunction: completer(o, tags),
		Short:             "take the next business number of a tag, or several",
		Example:           "  seqctl number next invoice\n  seqctl number next invoice --count 100 -o json",
		Args:              ctl.RangeArgs(1, 1),
	}
	o.AddTo(cmd, askTimeout)
	cmd.Flags().Int64Var(&count, "count", 1, fmt.Sprintf("how many numbers, 1 to %d", seq.MaxNumbers))
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		if count < 1 || count > seq.MaxNumbers {
			return badCount(count, seq.MaxNumbers)
		}
		reply, err := atOwner(ctx, o, args[0], pb.SegmentClient.NextNumbers, &pb.NumbersNextRequest{Tag: args[0], Count: uint32(count)})
		if err != nil {
			return err
		}
		r := numbersResult{args[0], reply.GetPeriod(), reply.GetNumbers()}
		return ui.Print(stdout, format, r, func() *ui.Table {
			t := ui.NewTable("number", "tag", "period")
			for _, text := range r.Numbers {
				t.Row(text, r.Tag, r.Period)
			}
			return t
		})
	})
	return cmd
}
