package ids

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
	"github.com/seqsvr/seqsvr/snowflake/veil"
)

// hiding holds the flags that choose the permutation of hidden IDs.
type hiding struct{ layout, form, keyFile string }

func (h *hiding) addTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&h.layout, "layout", defaultLayout, "preset, or a layout's `text`, of 32 bits or more")
	cmd.Flags().StringVar(&h.form, "text", snowflake.Decimal.String(), "of hidden IDs, "+textHelp)
	cmd.Flags().StringVar(&h.keyFile, "key-file", "", "`file` with the key, as seqctl auth key writes it; required")
	_ = cmd.RegisterFlagCompletionFunc("layout", ctl.OneOf(snowflake.PresetNames()...))                    // it is there
	_ = cmd.RegisterFlagCompletionFunc("text", ctl.OneOf("decimal", "base58", "base62", "zbase32", "hex")) // it is there
}

// read returns the permutation. Its errors are daemon.ErrUsage, or errors of the key file.
func (h *hiding) read() (l snowflake.Layout, e snowflake.Encoding, v *veil.Veil, err error) {
	if h.keyFile == "" {
		return l, e, nil, daemon.Usage(fmt.Errorf("%w: --key-file is missing", seq.ErrBadArgument))
	}
	if l, err = parseLayout("--layout", h.layout); err != nil {
		return l, e, nil, err
	}
	if e, err = parseEncoding(h.form); err != nil {
		return l, e, nil, err
	}
	key, err := auth.ReadKey(h.keyFile)
	if err != nil {
		return l, e, nil, err
	}
	if v, err = veil.New(l, key); err != nil {
		err = daemon.Usage(fmt.Errorf("%w: %w", seq.ErrBadArgument, err))
	}
	return l, e, v, err
}

// hiddenRow is an ID and what stands for it outside.
type hiddenRow struct {
	IDStr  string `json:"id_str"`
	Hidden string `json:"hidden"` // in the form asked for
}

func hideCommand() *cobra.Command {
	o, h := &ctl.Options{}, &hiding{}
	cmd := &cobra.Command{
		Use:   "hide ID...",
		Short: "give for IDs what may be shown outside: numbers that tell no time and no volume",
		Long: `hide permutes IDs of a layout under a key; reveal gives them back. No cluster is needed. It hides how
many IDs there are and when they were made; it makes no ID secret, and a number that was guessed may
stand for an ID, too: check who may see what.`,
		Example: "  seqctl auth key --out ids.key\n  seqctl id hide 1541815603606036480 --key-file ids.key --text base58",
		Args:    ctl.RangeArgs(1, 1000),
	}
	o.AddTo(cmd, askTimeout)
	h.addTo(cmd)
	cmd.RunE = o.Verb(func(_ context.Context, format ui.Format, args []string, stdout io.Writer) error {
		l, e, v, err := h.read()
		if err != nil {
			return err
		}
		rows := make([]hiddenRow, len(args))
		for i, text := range args {
			id, err := parseID(text, snowflake.Decimal, l)
			if err != nil {
				return err
			}
			hidden, err := v.Hide(id)
			if err != nil {
				return fmt.Errorf("%w: %w", seq.ErrBadID, err)
			}
			if rows[i].Hidden, err = e.FormatOf(l, hidden); err != nil {
				return refused(err)
			}
			rows[i].IDStr = text
		}
		return ui.Print(stdout, format, rows, func() *ui.Table {
			t := ui.NewTable("id", "hidden")
			for _, r := range rows {
				t.Row(r.IDStr, r.Hidden)
			}
			return t
		})
	})
	return cmd
}

func revealCommand() *cobra.Command {
	o, h := &ctl.Options{}, &hiding{}
	cmd := &cobra.Command{
		Use:     "reveal HIDDEN",
		Short:   "take apart the ID that hide made a number of",
		Example: "  seqctl id reveal 7900019259381105715 --key-file ids.key -o json",
		Args:    ctl.RangeArgs(1, 1),
	}
	o.AddTo(cmd, askTimeout)
	h.addTo(cmd)
	cmd.RunE = o.Verb(func(_ context.Context, format ui.Format, args []string, stdout io.Writer) error {
		l, e, v, err := h.read()
		if err != nil {
			return err
		}
		hidden, err := parseID(args[0], e, l)
		if err != nil {
			return err
		}
		id, err := v.Show(hidden)
		if err != nil {
			return fmt.Errorf("%w: %w", seq.ErrBadID, err)
		}
		d, err := decodeHere(l, id)
		if err != nil {
			return err
		}
		return d.print(stdout, format)
	})
	return cmd
}
