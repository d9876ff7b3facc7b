package ctl

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/ops/survey"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/seq"
)

// nextResult is the output of next.
type nextResult struct {
	Space string `json:"space"`
	survey.CounterID
	First     uint64 `json:"first"`
	Last      uint64 `json:"last"` // inclusive
	Count     uint32 `json:"count"`
	Unordered bool   `json:"unordered"` // only in unique-only spaces
	Replayed  bool   `json:"replayed"`  // the request id had them before
}

func nextCommand() *cobra.Command {
	o, who := &Options{}, &target{}
	var count int64
	var request requestFlags
	cmd := &cobra.Command{
		Use:     "next UID|--key K",
		Short:   "take the next number of a UID, or a contiguous range of them",
		Example: "  seqctl next 42\n  seqctl next 42 --count 100 -o json\n  seqctl next --key room:7 --space channel\n  seqctl next 42 --space orders --request-id msg-1",
		Args:    RangeArgs(0, 1),
	}
	o.AddTo(cmd, askTimeout)
	who.addTo(cmd, o)
	cmd.Flags().Int64Var(&count, "count", 1, fmt.Sprintf("how many numbers, 1 to %d", seq.MaxCount))
	request.addTo(cmd)
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		id, _, err := who.one(cmd, args, 0)
		if err != nil {
			return err
		}
		if count < 1 || count > seq.MaxCount {
			return daemon.Usage(fmt.Errorf("%w: --count %d, expected 1 to %d", seq.ErrBadCount, count, seq.MaxCount))
		}
		key := sequenceOf(who.space, id)
		return withClient(ctx, o, func(c *client.Client) error {
			got, err := request.take(ctx, c, key, uint32(count))
			if err != nil {
				return err
			}
			r := nextResult{cmp.Or(who.space, seq.DefaultSpace), id, uint64(got.First), uint64(got.Last), uint32(count), got.Unordered, got.Replayed}
			return ui.Print(stdout, format, r, func() *ui.Table {
				columns, row := []string{"space", id.Column(), "first", "last", "count"}, []any{r.Space, id.String(), Digits(r.First), Digits(r.Last), r.Count}
				if request.id != nil {
					columns, row = append(columns, "replayed"), append(row, r.Replayed)
				}
				return ui.NewTable(columns...).Row(row...)
			})
		})
	})
	return cmd
}
