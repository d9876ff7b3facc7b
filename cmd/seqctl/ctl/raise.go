package ctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/ops/survey"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/seq"
)

// raiseResult is the output of raise.
type raiseResult struct {
	Space string `json:"space"`
	survey.CounterID
	AtLeast uint64 `json:"at_least"`
	Current uint64 `json:"current"` // after the call; the next number is above it
}

func raiseCommand() *cobra.Command {
	o, who := &Options{}, &target{}
	force, file := false, ""
	cmd := &cobra.Command{
		Use:   "raise UID|--key K N | --file F",
		Short: "lift a UID's sequence to at least N, or many by a file; it never lowers, and may be repeated",
		Long: `raise lifts a UID's sequence to at least N, on the disks of a majority before it answers. The
ceiling of the UID's section moves up with it, and after a crash every UID of that section goes on from
the ceiling. So a raise that moves it by more than the space's max-jump (2^32 unless init said otherwise)
is refused without --force. A forced one is written to the events, and cannot be undone: at 2^53-1 the
section is used up for good. A restore from a backup that is older than it goes up by --bump only: back
up afterwards.

--file raises each line of a file, without force: a UID and a number, or a string key in quotes and a number,
or what seqctl export wrote. How far it came stands in FILE.progress: however it was stopped, the same
command goes on from there. Lines that are refused for good are left out and stand in FILE.refused.`,
		Example: "  seqctl raise 42 100000\n  seqctl raise --file numbers.txt\n  seqctl export --uids | seqctl raise --context other --file -",
		Args:    RangeArgs(0, 2),
	}
	o.AddTo(cmd, askTimeout)
	who.addTo(cmd, o)
	cmd.Flags().BoolVar(&force, "force", false, "also where it moves the ceiling of the whole section by more than the space's max-jump; cannot be undone")
	cmd.Flags().StringVar(&file, "file", "", "raise each line of this `file`, \"-\" for standard input; --timeout is then of 10,000 lines, "+ui.Duration(chunkTimeout)+" unless given; empty: one UID or key")
	one := o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		id, rest, err := who.one(cmd, args, 1)
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
			value, err := c.Raise(ctx, sequenceOf(who.space, id), floor, opts...)
			if errors.Is(err, seq.ErrJump) {
				return fmt.Errorf("%w (seqctl raise --force)", err)
			}
			if err != nil {
				return err
			}
			r := raiseResult{cmp.Or(who.space, seq.DefaultSpace), id, uint64(floor), uint64(value)}
			return ui.Print(stdout, format, r, func() *ui.Table {
				return ui.NewTable("space", id.Column(), "at least", "current").Row(r.Space, id.String(), Digits(r.AtLeast), Digits(r.Current))
			})
		})
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case file == "":
			return one(cmd, args)
		case len(args) > 0 || cmd.Flags().Changed("key") || force:
			return daemon.Usage(errors.New("--file has UIDs, keys and numbers in its lines, and takes no --force"))
		case !cmd.Flags().Changed("timeout"):
			o.Timeout = chunkTimeout
		}
		return raiseFile(cmd.Context(), o, who.space, file, cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	return cmd
}
