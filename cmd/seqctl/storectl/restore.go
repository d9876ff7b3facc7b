package storectl

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr"
	"github.com/seqsvr/seqsvr/storesvr/backup"
)

func restoreCommand() *cobra.Command {
	o := &offline{}
	var sign signing
	r := backup.Restore{}
	var from string
	var era uint64
	var flags etcdclient.Flags
	cmd := &cobra.Command{
		Use:   "restore --from FILE --era N --cluster ID --data-dir DIR --name NAME --members NAMES | --etcd ADDRS",
		Short: "make the database of a store, or with --etcd all of a cluster, for a new era that begins above all that was handed out",
		Long: `restore makes one store's database from a backup. Run it once for every store of the new era, each
with its own --name, from the same file. Stop every process of the era before first: they are refused
afterwards. Numbers jump up by --bump for each era since the backup and never come back; ids of snowflake
workers that the backup knows go on --worker-margin from now, those of others at once. In an exact space the
bump is skipped in every UID, and a request that was answered after the backup gets new numbers when it is
repeated: its id is lost with the disks. --era must be above
every era that the cluster has had: one that was used before would hand out its numbers again. Sections and
tags so near 2^53-1 that there is no room for the bump are named: they hand out nothing more. With --sign-key only a backup that
was made with that key is taken.

With --etcd the new era is made below --etcd-prefix, once: with --from where no cluster is, and without it of the
cluster that is there, after its etcd was restored from a snapshot. It waits until leases of the era before are
over. One that was interrupted serves nothing, and is given again.

A backup of a cluster that is alone does not know that Sets were added since: their numbers would repeat. With
--was-set it is restored as their root, which serves nothing before each Set is added again (seqctl set add) and
the root is settled (seqctl set settle --set main).`,
		Example: "  seqctl store restore --from /backup/seqsvr --era 1 --cluster prod --data-dir /var/lib/seqsvr/store --name store-1 --members store-1,store-2,store-3\n" +
			"  seqctl store restore --etcd 10.0.0.1:2379 --era 1 --cluster prod",
		Args: ctl.ExactArgs(),
	}
	o.addTo(cmd)
	cmd.Flags().StringVar(&from, "from", "", "the backup `file`; required")
	cmd.Flags().Uint64Var(&era, "era", 0, "`number` of the new era, above every one before, the backup's and those since; required")
	cmd.Flags().StringVar(&r.Cluster, "cluster", "", "`id` of the cluster that the backup must be of; required")
	cmd.Flags().StringVar(&r.DataDir, "data-dir", "", "`directory` that the database is made in; required")
	cmd.Flags().StringVar(&r.Name, "name", "", "`name` of this store, one of --members; required")
	cmd.Flags().StringSliceVar(&r.Names, "members", nil, "`names` of all stores of the new era; required")
	cmd.Flags().Uint64Var(&r.Bump, "bump", backup.DefaultBump, "by how many `numbers` every section and tag is raised for each era since the backup: more than any counter handed out in one")
	cmd.Flags().DurationVar(&r.WorkerMargin, "worker-margin", backup.DefaultWorkerMargin, "how far beyond now the marks of worker ids are raised")
	cmd.Flags().BoolVar(&r.WasSet, "was-set", false, "the cluster became the root of Sets after the backup, which is of one that is alone: it serves nothing before seqctl set settle")
	flags.AddTo(cmd.Flags())
	sign.addTo(cmd, "take only a backup that was made with it; empty: any")
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, _ []string, stdout io.Writer) error {
		if from == "" && !flags.Given() || era == 0 {
			return daemon.Usage(fmt.Errorf("expected --from FILE and --era N above 0: %w", backup.ErrEra))
		}
		if flags.Given() && (r.DataDir != "" || r.Name != "" || len(r.Names) > 0) {
			return daemon.Usage(errors.New("--etcd with --data-dir, --name or --members, expected it alone: on etcd there are no stores"))
		}
		r.Era = seq.Era(era)
		key, err := sign.key()
		if err != nil {
			return err
		}
		if from == "" {
			return restoreOnEtcd(ctx, &flags, r, nil, format, stdout, cmd.ErrOrStderr())
		}
		m, states, sig, err := key.Load(from)
		if err == nil {
			err = key.Check(m, sig)
		}
		if err != nil {
			return err
		}
		if flags.Given() {
			return restoreOnEtcd(ctx, &flags, r, &loaded{m, states, sig}, format, stdout, cmd.ErrOrStderr())
		}
		made, err := r.Do(m, states)
		if errors.Is(err, storesvr.ErrConfig) || errors.Is(err, backup.ErrEra) || errors.Is(err, backup.ErrWasSet) {
			return daemon.Usage(err)
		}
		if err != nil {
			return err
		}
		m.Era = r.Era
		return contents{Manifest: m, Signature: sig, Spent: made.Spent(), Restored: asked(r)}.print(stdout, format, states)
	})
	return cmd
}
