package ctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/ops/survey"
	"github.com/seqsvr/seqsvr/seq"
)

// currentRow is one UID in current.
type currentRow struct {
	Space string `json:"space"`
	survey.CounterID
	Current       uint64 `json:"current"`
	Exact         bool   `json:"exact"`           // if false, it may be above the last number handed out
	LastTakenUnix int64  `json:"last_taken_unix"` // seconds; zero if it is not known
	Error         string `json:"error,omitempty"`
}

func currentCommand() *cobra.Command {
	o, who := &Options{}, &target{}
	cmd := &cobra.Command{
		Use:     "current UID...|--key K",
		Short:   "show the last number of each UID, or an upper bound of it, without taking one",
		Example: "  seqctl current 42 43\n  seqctl current --key room:7",
		Args:    RangeArgs(0, seq.MaxBatch),
	}
	o.AddTo(cmd, askTimeout)
	who.addTo(cmd, o)
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		ids, err := who.all(cmd, args)
		if err != nil {
			return err
		}
		return withClient(ctx, o, func(c *client.Client) error {
			values, err := current(ctx, c, who.space, ids)
			if err != nil {
				return err
			}
			rows, err := currentRows(who.space, ids, values)
			return errors.Join(ui.Print(stdout, format, rows, func() *ui.Table { return currentTable(rows) }), err)
		})
	})
	return cmd
}

// current reads UIDs, or one string key.
func current(ctx context.Context, c *client.Client, space string, ids []survey.CounterID) ([]client.Value, error) {
	if ids[0].UID == nil {
		return c.CurrentKeys(ctx, space, []string{ids[0].Key})
	}
	uids := make([]seq.UID, len(ids))
	for i, id := range ids {
		uids[i] = seq.UID(*id.UID)
	}
	return c.Current(ctx, space, uids)
}

// all reads one or more targets.
func (t *target) all(cmd *cobra.Command, args []string) ([]survey.CounterID, error) {
	if len(args) <= 1 || cmd.Flags().Changed("key") {
		id, _, err := t.one(cmd, args, 0)
		return []survey.CounterID{id}, err
	}
	ids := make([]survey.CounterID, len(args))
	for i, arg := range args {
		uid, err := parseUID(arg)
		if err != nil {
			return nil, err
		}
		ids[i] = survey.CounterOf(uid)
	}
	return ids, nil
}

// currentRows returns the rows, and an error that counts the UIDs that failed.
func currentRows(space string, ids []survey.CounterID, values []client.Value) ([]currentRow, error) {
	rows := make([]currentRow, len(ids))
	var first error
	bad := 0
	for i, v := range values {
		rows[i] = currentRow{Space: cmp.Or(space, seq.DefaultSpace), CounterID: ids[i], Current: uint64(v.Seq), Exact: !v.UpperBound}
		if !v.LastTaken.IsZero() {
			rows[i].LastTakenUnix = v.LastTaken.Unix()
		}
		if v.Err != nil {
			rows[i].Exact, rows[i].Error = false, v.Err.Error()
			if bad++; first == nil {
				first = v.Err
			}
		}
	}
	if bad > 0 {
		return rows, fmt.Errorf("%d of %d failed: %w", bad, len(ids), first)
	}
	return rows, nil
}

func currentTable(rows []currentRow) *ui.Table {
	t := ui.NewTable("space", rows[0].Column(), "current", "exact", "last taken")
	for _, r := range rows {
		taken, current := "", Digits(r.Current)
		if r.LastTakenUnix != 0 {
			taken = time.Unix(r.LastTakenUnix, 0).Format(time.DateTime)
		}
		exact := any("exact")
		switch {
		case r.Error != "":
			current, exact = "-", State("error", false)
		case !r.Exact:
			exact = Pending("upper bound")
		}
		t.Row(r.Space, r.CounterID.String(), current, exact, taken)
	}
	return t
}
