package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/ops/msglog"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/seq"
)

// defaultTimeout of one number: longer than any failover, so that a replay goes on
// when the whole cluster is killed and started again.
const defaultTimeout = 60 * time.Second

// findTimeout bounds the first search for the cluster: a wrong address is not waited
// for as long as a failover is.
const findTimeout = 10 * time.Second

// maxCallers bounds --callers.
const maxCallers = 65_536

// errBroken: the service repeated or lowered a number.
var errBroken = errors.New("the sequences are broken")

type options struct {
	ctl.Options
	space   string
	attempt time.Duration
	out     string
	callers int
	ids     bool
}

// Command returns the verb.
func Command() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "replay FILE",
		Short: "take a sequence for every message of a log, and check them all",
		Long: `replay reads a message log, lines of "SENDER RECIPIENT UNIX_SECONDS", plain or .gz,
from FILE or, with "-", from standard input. It takes a sequence from the recipient's
UID for every message, in the order of the log for each recipient, and counts
duplicates, regressions and gaps. Exit 1 when there are duplicates or regressions.

With --request-ids each message has an id, of its line, sender and time: replayed again
within the window of the space, of mode=exact, it gets the same number.`,
		Example: "  seqctl replay messages.txt.gz --out answers.txt -o json\n  seqctl replay messages.txt.gz --space orders --request-ids",
		Args:    ctl.ExactArgs("FILE"),
	}
	o.AddTo(cmd, defaultTimeout)
	cmd.Flags().Lookup("timeout").Usage = "how long to try for one number, retries included"
	o.AddSpaceTo(cmd, &o.space)
	cmd.Flags().StringVar(&o.out, "out", "", "write RECIPIENT SEQUENCE UNIX_SECONDS lines to this `file`, in the order of the log; empty: nowhere")
	cmd.Flags().DurationVar(&o.attempt, "attempt-timeout", ctl.AttemptTimeout, "after how long a silent AllocSvr is given up and another asked, which skips numbers")
	cmd.Flags().IntVar(&o.callers, "callers", 64, "how many messages are under way at once")
	cmd.Flags().BoolVar(&o.ids, "request-ids", false, "take each number by a request id, in a space of mode=exact")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return o.run(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	return cmd
}

func (o *options) run(ctx context.Context, path string, stdout, stderr io.Writer) error {
	format, err := o.Check()
	if err != nil {
		return err
	}
	if o.callers < 1 || o.callers > maxCallers {
		return daemon.Usage(fmt.Errorf("--callers %d: expected 1 to %d", o.callers, maxCallers))
	}
	if o.attempt < time.Millisecond {
		return daemon.Usage(fmt.Errorf("--attempt-timeout %v: expected at least 1ms", o.attempt))
	}
	total, err := count(path, stderr)
	if err != nil {
		return err
	}
	log, err := msglog.Open(path)
	if err != nil {
		return err
	}
	defer log.Close()
	find, cancel := context.WithTimeout(ctx, min(findTimeout, o.Timeout))
	c, err := o.Connect(find, client.Config{Timeout: o.Timeout, AttemptTimeout: o.attempt})
	cancel()
	if err != nil {
		return err
	}
	defer c.Close()
	r, err := o.replay(ctx, c, log, ui.NewProgress(stderr, "replay", total))
	if ctx.Err() != nil {
		// The text alone: a replay that was cut short is no clean stop.
		return fmt.Errorf("interrupted after %d messages", r.Events)
	}
	if err != nil {
		return fmt.Errorf("after %d messages: %w", r.Events, err)
	}
	if err := ui.Print(stdout, format, r, func() *ui.Table { return r.table() }); err != nil {
		return err
	}
	if r.Duplicates > 0 || r.Regressions > 0 {
		return fmt.Errorf("%w: %d duplicates, %d regressions", errBroken, r.Duplicates, r.Regressions)
	}
	return nil
}

func (o *options) replay(ctx context.Context, c *client.Client, log io.Reader, progress *ui.Progress) (r report, err error) {
	var out io.Writer
	if o.out != "" {
		file, err := os.Create(o.out)
		if err != nil {
			return report{}, fmt.Errorf("open --out: %w", err)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		out = file
	}
	take := func(ctx context.Context, j job) (seq.Seq, bool, error) {
		key := client.Key{Space: o.space, UID: seq.UID(j.message.Recipient)}
		if o.ids {
			got, err := c.TakeIdempotent(ctx, key, 1, client.Request{ID: j.request()})
			return got.First, got.Replayed, err
		}
		n, err := c.Next(ctx, key)
		return n, false, err
	}
	defer progress.Done()
	return replay(ctx, msglog.NewReader(log), take, o.callers, out, progress.Add)
}

// count returns the number of messages of a file, for the bar on a terminal; 0 if there is
// no terminal, or if the log can be read but once.
func count(path string, stderr io.Writer) (uint64, error) {
	if info, err := os.Stat(path); path == "-" || !ui.IsTerminal(stderr) || err == nil && !info.Mode().IsRegular() {
		return 0, nil
	}
	text, err := msglog.Open(path)
	if err != nil {
		return 0, err
	}
	defer text.Close()
	log := msglog.NewReader(text)
	for n := uint64(0); ; n++ {
		if _, err := log.Next(); err != nil {
			return n, nil // the replay itself tells of a bad line
		}
	}
}

func (r report) table() *ui.Table {
	return ui.NewTable("events", "users", "duplicates", "regressions", "gaps", "skipped", "replayed", "rate", "p50", "p99", "took").
		Row(r.Events, r.Users, ctl.Bad(r.Duplicates), ctl.Bad(r.Regressions), r.Gaps, r.Skipped, r.Replayed, ui.Uint(uint64(r.Rate))+"/s",
			time.Duration(r.P50)*time.Microsecond, time.Duration(r.P99)*time.Microsecond, time.Duration(r.Seconds*float64(time.Second)))
}
