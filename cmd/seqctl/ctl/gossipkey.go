package ctl

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/membership"
)

func gossipKeyCommand() *cobra.Command {
	var size int
	cmd := &cobra.Command{
		Use:   "gossip-key",
		Short: "make a key for the daemons' --gossip-keys-file; no cluster needed",
		Long: `Writes a new random key, one line in base64, for the file that all daemons of a
cluster take by --gossip-keys-file. Keep it from others:

  (umask 077; seqctl gossip-key > gossip.keys)

"Gossip keys" in docs/security.md tells how to go over to it.`,
		Args: ExactArgs(),
	}
	cmd.Flags().IntVar(&size, "bytes", 32, "length of the key: 16, 24 or 32 `bytes`, for AES-128, AES-192 or AES-256")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		key, err := membership.NewKey(size)
		if err != nil {
			return fmt.Errorf("gossip-key: --bytes: %w", daemon.Usage(err))
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), key)
		return err
	}
	return cmd
}
