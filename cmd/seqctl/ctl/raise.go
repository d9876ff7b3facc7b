package ctl

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/ui"
)

// raiseResult is what raise prints.
type raiseResult struct {
	Space   string `json:"space"`
	UID     uint64 `json:"uid"`
	Key     string `json:"key,omitempty"`
	AtLeast uint64 `json:"at_least"`
	Current uint64 `json:"current"` // after the call; the next number is above it
}

func raiseCommand() *cobra.Command {
	o, who := &Options{}, &target{}
	cmd := &cobra.Command{
		Use:     "raise UID|--key K N",
		Short:   "lift a UID's sequence to at least N; it never lowers, and may be repeated",
		Example: "  seqctl raise 42 100000",
		Args:    rangeArgs(1, 2),
	}
	o.AddTo(cmd, askTimeout)
	who.addTo(cmd)
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		uid, rest, err := who.uid(cmd, args, 1)
		if err != nil {
			return err
		}
		floor, err := parseSeq(rest[0])
		if err != nil {
			return err
		}
		return withClient(ctx, o, func(c *client.Client) error {
			value, err := c.Raise(ctx, client.Key{Space: who.space, UID: uid}, floor)
			if err != nil {
				return err
			}
			r := raiseResult{spaceName(who.space), uint64(uid), who.key, uint64(floor), uint64(value)}
			return ui.Print(stdout, format, r, func() *ui.Table {
				return ui.NewTable("space", "uid", "at least", "current").Row(r.Space, text(r.UID), text(r.AtLeast), text(r.Current))
			})
		})
	})
	return cmd
}
