package ctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/ops/survey"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/seq"
)

// openedResult is the output of open.
type openedResult struct {
	Space string `json:"space"`
	survey.CounterID
	First  uint64 `json:"first"`
	Last   uint64 `json:"last"` // inclusive
	Ticket uint64 `json:"ticket"`
	LifeMs int64  `json:"life_ms"` // from when the command began
}

func openCommand() *cobra.Command {
	o, who := &Options{}, &target{}
	count, life := uint32(1), time.Duration(0)
	cmd := &cobra.Command{
		Use:     "open UID|--key K",
		Short:   "take numbers with a ticket, below which marks stay until done",
		Example: "  seqctl open 42 --space inbox\n  seqctl open --key room:7 --space inbox --life 2s",
		Args:    RangeArgs(0, 1),
	}
	o.AddTo(cmd, askTimeout)
	who.addTo(cmd, o)
	cmd.Flags().Uint32Var(&count, "count", 1, "how many `numbers`, 1 to "+strconv.Itoa(seq.MaxCount))
	cmd.Flags().DurationVar(&life, "life", 0, "the life of the ticket, at most the space's; 0: the space's")
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		id, _, err := who.one(cmd, args, 0)
		if err != nil {
			return err
		}
		var options []client.OpenOption
		if life != 0 {
			options = append(options, client.WithLife(life))
		}
		return withClient(ctx, o, func(c *client.Client) error {
			t, err := c.Open(ctx, sequenceOf(who.space, id), count, options...)
			if err != nil {
				return err
			}
			r := openedResult{cmp.Or(who.space, seq.DefaultSpace), id, uint64(t.First), uint64(t.Last), t.ID, t.Life.Milliseconds()}
			return ui.Print(stdout, format, r, func() *ui.Table {
				return ui.NewTable("space", id.Column(), "first", "last", "ticket", "life").
					Row(r.Space, id.String(), Digits(r.First), Digits(r.Last), Digits(r.Ticket), t.Life.String())
			})
		})
	})
	return cmd
}

// doneResult is the output of done.
type doneResult struct {
	Space string `json:"space"`
	survey.CounterID
	First uint64 `json:"first"`
	State string `json:"state"` // done or cancelled
}

func doneCommand() *cobra.Command {
	o, who, cancelled := &Options{}, &target{}, false
	cmd := &cobra.Command{
		Use:     "done UID|--key K FIRST TICKET",
		Short:   "end a ticket, since its numbers are committed, or will not be",
		Example: "  seqctl done 42 7 123456 --space inbox\n  seqctl done --key room:7 7 123456 --space inbox --cancel",
		Args:    RangeArgs(2, 3),
	}
	o.AddTo(cmd, askTimeout)
	who.addTo(cmd, o)
	cmd.Flags().BoolVar(&cancelled, "cancel", false, "the numbers will not be committed")
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		id, rest, err := who.one(cmd, args, 2)
		if err != nil {
			return err
		}
		var numbers [2]uint64
		for i, text := range rest {
			if numbers[i], err = strconv.ParseUint(text, 10, 64); err != nil {
				return daemon.Usage(fmt.Errorf("%w: %s is %q, expected a number as open gave it", seq.ErrBadArgument, []string{"FIRST", "TICKET"}[i], text))
			}
		}
		if err := seq.CheckTicket(numbers[0], numbers[1]); err != nil {
			return daemon.Usage(err)
		}
		return withClient(ctx, o, func(c *client.Client) error {
			if err := c.Caller().Done(ctx, sequenceOf(who.space, id), seq.Seq(numbers[0]), numbers[1], cancelled); err != nil {
				return err
			}
			r := doneResult{cmp.Or(who.space, seq.DefaultSpace), id, numbers[0], "done"}
			if cancelled {
				r.State = "cancelled"
			}
			return ui.Print(stdout, format, r, func() *ui.Table {
				return ui.NewTable("space", id.Column(), "first", "state").Row(r.Space, id.String(), Digits(r.First), r.State)
			})
		})
	})
	return cmd
}

// markRow is one UID in mark.
type markRow struct {
	Space string `json:"space"`
	survey.CounterID
	Mark      uint64 `json:"mark"`
	Fence     uint64 `json:"fence"`
	Last      uint64 `json:"last"`
	UnknownMs int64  `json:"unknown_ms"` // if not 0, the mark is not known before that time
	Error     string `json:"error,omitempty"`
}

func markCommand() *cobra.Command {
	o, who := &Options{}, &target{}
	cmd := &cobra.Command{
		Use:     "mark UID...|--key K",
		Short:   "show up to which number nothing of each UID is missing",
		Example: "  seqctl mark 42 43 --space inbox\n  seqctl mark --key room:7 --space inbox",
		Args:    RangeArgs(0, seq.MaxBatch),
	}
	o.AddTo(cmd, askTimeout)
	who.addTo(cmd, o)
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		ids, err := who.all(cmd, args)
		if err != nil {
			return err
		}
		keys := make([]client.Key, len(ids))
		for i, id := range ids {
			keys[i] = sequenceOf(who.space, id)
		}
		return withClient(ctx, o, func(c *client.Client) error {
			marks, err := c.Marks(ctx, keys...)
			if err != nil {
				return err
			}
			rows, err := markRows(who.space, ids, marks)
			return errors.Join(ui.Print(stdout, format, rows, func() *ui.Table { return markTable(rows) }), err)
		})
	})
	return cmd
}

// markRows returns the rows, and an error that counts the UIDs that failed.
func markRows(space string, ids []survey.CounterID, marks []client.Mark) ([]markRow, error) {
	rows := make([]markRow, len(ids))
	var first error
	bad := 0
	for i, m := range marks {
		rows[i] = markRow{Space: cmp.Or(space, seq.DefaultSpace), CounterID: ids[i], Mark: uint64(m.Seq), Fence: uint64(m.Fence), Last: uint64(m.Last), UnknownMs: m.KnownIn.Milliseconds()}
		if m.Err != nil {
			rows[i].Error = m.Err.Error()
			if bad++; first == nil {
				first = m.Err
			}
		}
	}
	if bad > 0 {
		return rows, fmt.Errorf("%d of %d failed: %w", bad, len(ids), first)
	}
	return rows, nil
}

func markTable(rows []markRow) *ui.Table {
	t := ui.NewTable("space", rows[0].Column(), "mark", "fence", "last", "known")
	for _, r := range rows {
		mark, fence, known := Digits(r.Mark), Digits(r.Fence), any("known")
		switch {
		case r.Error != "":
			mark, fence, known = "-", "-", State("error", false)
		case r.UnknownMs > 0:
			mark, fence, known = "-", "-", Pending("in "+(time.Duration(r.UnknownMs)*time.Millisecond).String())
		}
		t.Row(r.Space, r.CounterID.String(), mark, fence, Digits(r.Last), known)
	}
	return t
}
