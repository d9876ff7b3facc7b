package ctl

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/daemon"
	"github.com/seqsvr/seqsvr/internal/ui"
	"github.com/seqsvr/seqsvr/seq"
)

// nextResult is what next prints.
type nextResult struct {
	Space     string `json:"space"`
	UID       uint64 `json:"uid"`
	Key       string `json:"key,omitempty"`
	First     uint64 `json:"first"`
	Last      uint64 `json:"last"` // inclusive
	Count     uint32 `json:"count"`
	Unordered bool   `json:"unordered"` // only in unique-only spaces
}

func nextCommand() *cobra.Command {
	o, who := &Options{}, &target{}
	var count int64
	cmd := &cobra.Command{
		Use:     "next UID|--key K",
		Short:   "take the next number of a UID, or a contiguous range of them",
		Example: "  seqctl next 42\n  seqctl next 42 --count 100 -o json\n  seqctl next --key room:7 --space channel",
		Args:    RangeArgs(0, 1),
	}
	o.AddTo(cmd, askTimeout)
	who.addTo(cmd)
	cmd.Flags().Int64Var(&count, "count", 1, fmt.Sprintf("how many numbers, 1 to %d", seq.MaxCount))
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		uid, _, err := who.uid(cmd, args, 0)
		if err != nil {
			return err
		}
		if count < 1 || count > seq.MaxCount {
			return daemon.Usage(fmt.Errorf("%w: --count %d, expected 1 to %d", seq.ErrBadCount, count, seq.MaxCount))
		}
		key := client.Key{Space: who.space, UID: uid}
		return withClient(ctx, o, func(c *client.Client) error {
			got, err := c.Take(ctx, key, uint32(count))
			if err != nil {
				return err
			}
			r := nextResult{cmp.Or(who.space, seq.DefaultSpace), uint64(uid), who.key, uint64(got.First), uint64(got.Last), uint32(count), got.Unordered}
			return ui.Print(stdout, format, r, func() *ui.Table {
				return ui.NewTable("space", "uid", "first", "last", "count").Row(r.Space, text(r.UID), text(r.First), text(r.Last), r.Count)
			})
		})
	})
	return cmd
}
