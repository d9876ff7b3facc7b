package storectl

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/storesvr/backup"
)

func checkCommand() *cobra.Command {
	o := &offline{}
	var sign signing
	cmd := &cobra.Command{
		Use:     "check FILE|DIR",
		Example: "  seqctl store check /backup/seqsvr-2026-01-31",
		Short:   "check every record of a backup, or of the database of a store that does not run; exit 1 if one is wrong",
		Args:    ctl.ExactArgs("FILE|DIR"),
	}
	o.addTo(cmd)
	sign.addTo(cmd, "a backup that was not made with it is wrong; empty: any is right")
	cmd.RunE = o.Verb(func(_ context.Context, format ui.Format, args []string, stdout io.Writer) error {
		key, err := sign.key()
		if err != nil {
			return err
		}
		m, states, sig, err := open(args[0], key)
		if err != nil {
			return err
		}
		result := struct {
			Registers int              `json:"registers"`
			Wrong     []string         `json:"wrong"`
			Spent     []string         `json:"spent"`               // sound, and at their end
			Signature backup.Signature `json:"signature,omitempty"` // empty for a database
			Set       *backup.OfSet    `json:"set,omitempty"`       // nil if Wrong tells why it cannot be read
		}{len(states), append([]string{}, backup.Check(m.Mapping, states)...), append([]string{}, backup.Spent(m.Mapping, states)...), sig, setOf(states)}
		if format == ui.FormatTable {
			printSignature(stdout, sig)
			printSpent(stdout, result.Spent)
			printSet(stdout, result.Set, nil)
			for _, what := range result.Wrong {
				fmt.Fprintln(stdout, what)
			}
			fmt.Fprintf(stdout, "%d registers checked, %d wrong\n", result.Registers, len(result.Wrong))
		} else if err := ui.Print(stdout, format, result, nil); err != nil {
			return err
		}
		if len(result.Wrong) > 0 {
			return fmt.Errorf("%w: %s", backup.ErrUnsound, result.Wrong[0])
		}
		if sig == "" {
			return nil
		}
		return key.Check(m, sig)
	})
	return cmd
}

// mostSpent bounds the spent counters that are printed for people.
const mostSpent = 20

// printSpent prints the names that have no more numbers.
func printSpent(w io.Writer, spent []string) {
	for _, line := range spent[:min(len(spent), mostSpent)] {
		fmt.Fprintln(w, line)
	}
	if more := len(spent) - mostSpent; more > 0 {
		fmt.Fprintf(w, "and %d more are spent\n", more)
	}
}
