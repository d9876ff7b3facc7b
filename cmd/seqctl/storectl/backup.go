package storectl

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/base/version"
	"github.com/seqsvr/seqsvr/internal/ops/storeadmin"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/storesvr/backup"
)

func backupCommand() *cobra.Command {
	o := &options{}
	var out string
	var sign signing
	cmd := &cobra.Command{
		Use:     "backup --out FILE",
		Short:   "save all registers, read from a quorum of the stores, or with --etcd from etcd, while they serve",
		Example: "  seqctl store backup --out /backup/seqsvr-$(date +%F) --sign-key /etc/seqsvr/backup.key\n  seqctl store backup --etcd 10.0.0.1:2379 --out /backup/seqsvr-$(date +%F)",
		Args:    ctl.ExactArgs(),
	}
	o.addTo(cmd, changeTimeout)
	showEtcd(cmd)
	cmd.Flags().StringVar(&out, "out", "", "`file` to be made; one that is there is left as it is; required")
	sign.addTo(cmd, "sign the backup with it; empty: it is not signed")
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, _ []string, stdout io.Writer) error {
		if out == "" {
			return daemon.Usage(fmt.Errorf("expected --out FILE"))
		}
		if _, err := os.Lstat(out); err == nil {
			return fmt.Errorf("%w: %s", os.ErrExist, out)
		}
		key, err := sign.key()
		if err != nil {
			return err
		}
		save := func(m backup.Manifest, states []quorum.RegisterState) error {
			m.Version = version.String()
			if err := key.Save(out, m, states); err != nil {
				return err
			}
			sig := backup.Unsigned
			if key != nil {
				sig = backup.Held
			}
			return contents{Manifest: m, Signature: sig}.print(stdout, format, nil)
		}
		on, err := o.onEtcd(cmd)
		if err != nil {
			return err
		}
		if on {
			m, states, err := snapshotOfEtcd(ctx, &o.etcd)
			if err != nil {
				return err
			}
			return save(m, states)
		}
		return o.care(ctx, func(c *storeadmin.Care) error {
			progress := ui.NewProgress(cmd.ErrOrStderr(), "registers read", 0)
			c.Told = progress.Add
			snap, err := c.Snapshot(ctx)
			progress.Done()
			if err != nil {
				return err
			}
			m := backup.Manifest{Cluster: snap.Cluster, Era: snap.Era, Members: snap.List, Mapping: snap.Mapping, Sources: snap.Sources,
				Taken: snap.Begun.UTC(), LeaseBound: snap.LeaseBound, Floors: snap.Floors, Required: snap.Required, Registers: len(snap.States)}
			if err := save(m, snap.States); err != nil {
				return err
			}
			note(ctx, os.Stderr, c, "backup", "read from "+strings.Join(snap.Sources, ", "))
			return nil
		})
	})
	return cmd
}
