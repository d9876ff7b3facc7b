package ids

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
)

// askTimeout is the default of --timeout.
const askTimeout = 10 * time.Second

// Commands returns the verbs snowflake, segment, number and namespace, each with verbs of its own.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		ctl.Group(&cobra.Command{Use: "snowflake", Aliases: []string{"id"}, Short: "make, read and list global IDs that are ordered by time"},
			genCommand(), decodeCommand(), composeCommand(), hideCommand(), revealCommand(), workersCommand(), layoutsCommand()),
		ctl.Group(&cobra.Command{Use: "segment", Short: "add, list, use and retire named tags of rising numbers"},
			segmentAddCommand(), segmentListCommand(), segmentNextCommand(), segmentRetireCommand()),
		ctl.Group(&cobra.Command{Use: "number", Short: "add, take and show business numbers, such as INV-20261123-000042"},
			numberAddCommand(), numberNextCommand(), numberShowCommand()),
		ctl.Group(&cobra.Command{Use: "namespace", Short: "add, change, list and retire the namespaces of global IDs"},
			namespaceAddCommand(), namespaceListCommand(), namespaceShowCommand(), namespaceRetireCommand(), namespaceCompareCommand()),
	}
}
