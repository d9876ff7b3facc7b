package ctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/ui"
	"github.com/seqsvr/seqsvr/seq"
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
	force := false
	cmd := &cobra.Command{
		Use:   "raise UID|--key K N",
		Short: "lift a UID's sequence to at least N; it never lowers, and may be repeated",
		Long: `raise lifts a UID's sequence to at least N, on the disks of a majority before it answers. The
ceiling of the UID's section moves up with it, and after a crash every UID of that section goes on from
the ceiling. So a raise that moves it by more than the space's max-jump (2^32 unless init said otherwise)
is refused without --force. A forced one is written to the events, and cannot be undone: at 2^53-1 the
section is used up for good. A restore from a backup that is older than it goes up by --bump only: back
up afterwards.`,
		Example: "  seqctl raise 42 100000",
		Args:    RangeArgs(1, 2),
	}
	o.AddTo(cmd, askTimeout)
	who.addTo(cmd)
	cmd.Flags().BoolVar(&force, "force", false, "also where it moves the ceiling of the whole section by more than the space's max-jump; cannot be undone")
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		uid, rest, err := who.uid(cmd, args, 1)
		if err != nil {
			return err
		}
		floor, err := parseSeq(rest[0])
		if err != nil {
			return err
		}
		var opts []client.RaiseOption
		if force {
			opts = append(opts, client.Forced)
		}
		return withClient(ctx, o, func(c *client.Client) error {
			value, err := c.Raise(ctx, client.Key{Space: who.space, UID: uid}, floor, opts...)
			if errors.Is(err, seq.ErrJump) {
				return fmt.Errorf("%w (seqctl raise --force)", err)
			}
			if err != nil {
				return err
			}
			r := raiseResult{cmp.Or(who.space, seq.DefaultSpace), uint64(uid), who.key, uint64(floor), uint64(value)}
			return ui.Print(stdout, format, r, func() *ui.Table {
				return ui.NewTable("space", "uid", "at least", "current").Row(r.Space, text(r.UID), text(r.AtLeast), text(r.Current))
			})
		})
	})
	return cmd
}
