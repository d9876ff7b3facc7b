package ctl

import (
	"cmp"
	"context"
	"encoding/json"
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

// watchTime is the time for which watch goes on without --timeout.
const watchTime = 24 * time.Hour

func watchCommand() *cobra.Command {
	o, who, changes := &Options{}, &target{}, uint32(0)
	cmd := &cobra.Command{
		Use:     "watch UID...|--key K",
		Short:   "show the mark of each UID now, and whenever it changes",
		Long:    "Show the mark of each UID now, and whenever it changes, until the command is interrupted or --timeout is over. With -o json each line is one object.",
		Example: "  seqctl watch 42 43 --space inbox\n  seqctl watch --key room:7 --changes 1",
		Args:    RangeArgs(0, seq.MaxBatch),
	}
	o.AddTo(cmd, watchTime)
	who.addTo(cmd, o)
	cmd.Flags().Uint32Var(&changes, "changes", 0, "end after so many `lines`; by default never")
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		ids, err := who.all(cmd, args)
		if err != nil {
			return err
		}
		keys, names := make([]client.Key, len(ids)), map[client.Key]survey.CounterID{}
		for i, id := range ids {
			keys[i] = sequenceOf(who.space, id)
			names[keys[i]] = id
		}
		reached, cancel := context.WithTimeout(ctx, min(o.Timeout, askTimeout))
		defer cancel()
		c, err := o.Connect(reached, client.Config{AttemptTimeout: AttemptTimeout})
		if err != nil {
			return err
		}
		defer c.Close()
		w, err := c.Watch(ctx, keys...)
		if err != nil {
			return err
		}
		defer w.Close()
		show := &watchLines{to: stdout, format: format, space: cmp.Or(who.space, seq.DefaultSpace), names: names, left: changes, watched: len(names)}
		for {
			news, err := w.Next(ctx)
			if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
				return show.bad // it went on for as long as it was to
			}
			if err != nil {
				return err
			}
			if over, err := show.print(news); over || err != nil {
				return errors.Join(err, show.bad)
			}
		}
	})
	return cmd
}

// watchLines prints updates, a line each.
type watchLines struct {
	to      io.Writer
	format  ui.Format
	space   string
	names   map[client.Key]survey.CounterID
	left    uint32 // lines, if not 0
	watched int    // keys
	header  bool
	bad     error // of a key that is not watched any more
}

// print reports whether the watch is over.
func (l *watchLines) print(news []client.Update) (over bool, err error) {
	for _, u := range news {
		id := l.names[u.Key]
		row := markRow{Space: l.space, CounterID: id, Mark: uint64(u.Seq), Fence: uint64(u.Fence), Last: uint64(u.Last), UnknownMs: u.KnownIn.Milliseconds()}
		if u.Err != nil {
			row.Error = u.Err.Error()
		}
		if err := l.line(row); err != nil {
			return true, err
		}
		if u.Ended {
			l.bad = cmp.Or(l.bad, u.Err)
			l.watched--
		}
		if l.watched == 0 || l.left == 1 {
			return true, nil
		}
		l.left = max(l.left, 1) - 1
	}
	return false, nil
}

func (l *watchLines) line(row markRow) error {
	if l.format == ui.FormatJSON {
		return json.NewEncoder(l.to).Encode(row)
	}
	if l.format == ui.FormatYAML {
		if _, err := io.WriteString(l.to, "---\n"); err != nil {
			return err
		}
		return ui.Print(l.to, l.format, row, nil)
	}
	const columns = "%-12s  %-20s  %16s  %16s  %16s%s\n"
	if !l.header {
		l.header = true
		if _, err := fmt.Fprintf(l.to, columns, "SPACE", "KEY", "MARK", "FENCE", "LAST", ""); err != nil {
			return err
		}
	}
	mark, fence, last, note := fmt.Sprint(row.Mark), fmt.Sprint(row.Fence), fmt.Sprint(row.Last), ""
	switch {
	case row.Error != "":
		mark, fence, last, note = "-", "-", "-", "  "+row.Error
	case row.UnknownMs > 0:
		mark, fence, note = "-", "-", fmt.Sprintf("  known in %v", time.Duration(row.UnknownMs)*time.Millisecond)
	}
	_, err := fmt.Fprintf(l.to, columns, row.Space, row.CounterID.String(), mark, fence, last, note)
	return err
}
