package ids

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/internal/daemon"
)

// askTimeout is the default of --timeout.
const askTimeout = 10 * time.Second

// Commands are the verbs snowflake, segment and namespace, each with verbs of its own.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		group("snowflake", "make, read and list global IDs that are ordered by time",
			genCommand(), decodeCommand(), composeCommand(), workersCommand(), layoutsCommand()),
		group("segment", "add, list, use and retire named tags of rising numbers",
			segmentAddCommand(), segmentListCommand(), segmentNextCommand(), segmentRetireCommand()),
		group("namespace", "add, change, list and retire the namespaces of global IDs",
			namespaceAddCommand(), namespaceListCommand(), namespaceShowCommand(), namespaceRetireCommand()),
	}
}

// group is a verb that only has others below it.
func group(name, short string, verbs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   name,
		Short: short,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return daemon.Usage(fmt.Errorf("unknown verb %q: %s --help lists them", args[0], cmd.CommandPath()))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(verbs...)
	return cmd
}
