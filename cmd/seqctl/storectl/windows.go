package storectl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/ops/storeadmin"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// told is a store that heard that windows are over.
type told struct {
	Name   string `json:"name"`
	KeptMS uint64 `json:"workers_kept_ms"` // what is left of the wait by its clock
}

func windowsCommand() *cobra.Command {
	o := &options{}
	var reason string
	cmd := &cobra.Command{
		Use:   "windows-over --reason WHY",
		Short: "after a restore: say that nothing from before it holds a snowflake worker id, so that IDs go on at once",
		Long: `windows-over ends the wait for windows of snowflake worker ids after a restore. Say so only if every
allocator from before the restore has ended, and every process that may have had a worker id from one
(the SDK with a fallback) has ended or been started anew, and none of their clocks was ahead. If one
goes on with its window, its IDs come twice. Nothing is ever kept back for longer by it; it may be repeated.`,
		Example: `  seqctl store windows-over --reason "all hosts were rebooted"`,
		Args:    ctl.ExactArgs(),
	}
	o.addTo(cmd, askTimeout)
	showEtcd(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "`why` that is so, for the logs of the stores; required")
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, _ []string, stdout io.Writer) error {
		if reason == "" {
			return daemon.Usage(errors.New("expected --reason WHY: how it is known that nothing holds a window from before the restore"))
		}
		on, err := o.onEtcd(cmd)
		if err != nil {
			return err
		}
		if on {
			all, err := windowsOverOnEtcd(ctx, &o.etcd)
			return printTold(stdout, format, all, err)
		}
		return o.care(ctx, func(c *storeadmin.Care) error {
			var all []told
			err := c.WindowsOver(ctx, reason, func(d *pb.DescribeReply) {
				all = append(all, told{d.GetName(), d.GetWorkersKeptUs() / 1000})
			})
			if len(all) > 0 {
				note(ctx, os.Stderr, c, "windows-over", reason)
			}
			return printTold(stdout, format, all, err)
		})
	})
	return cmd
}

// printTold prints the stores that were told, and returns err.
func printTold(stdout io.Writer, format ui.Format, all []told, err error) error {
	if format != ui.FormatTable {
		return errors.Join(ui.Print(stdout, format, all, nil), err)
	}
	for _, s := range all {
		fmt.Fprintf(stdout, "%s: worker ids are kept back for %v more\n", s.Name, time.Duration(s.KeptMS)*time.Millisecond)
	}
	return err
}
