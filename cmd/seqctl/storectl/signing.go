package storectl

import (
	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/storesvr/backup"
)

// signing is the flag of the verbs that make or read backups.
type signing struct{ file string }

func (s *signing) addTo(cmd *cobra.Command, what string) {
	cmd.Flags().StringVar(&s.file, "sign-key", "", "`file` with a key of seqctl auth key, mode 0600: "+what)
}

// key returns nil if the flag is not set.
func (s *signing) key() (backup.Key, error) {
	if s.file == "" {
		return nil, nil
	}
	return auth.ReadKey(s.file)
}
