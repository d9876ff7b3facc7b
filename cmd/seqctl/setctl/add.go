package setctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/hostport"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/ops/setadmin"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// added is the output of add.
type added struct {
	Set     string   `json:"set"`
	Cluster string   `json:"cluster_id"`
	Addrs   []string `json:"addrs"`
	Root    string   `json:"root"`
	Version uint64   `json:"sets_version"`
}

func addCommand() *cobra.Command {
	o, addrs := &options{}, []string(nil)
	cmd := &cobra.Command{
		Use:   "add NAME --set-addr HOST:PORT[,...]",
		Short: "make a cluster that has served nobody a Set, without sections",
		Long: `add makes a second cluster a Set of the one at --addr. It is a whole cluster of its own, with its own
cluster id, initialised with the same spaces and the same --sections; from here on it serves only what is
moved to it. Callers find it at the addresses of --set-addr, which are kept in the map: give those of all
its AllocSvr. The same add may be repeated, also with other addresses.`,
		Example: "  seqctl set add set-2 --set-addr 10.0.2.1:7400,10.0.2.2:7400,10.0.2.3:7400",
		Args:    ctl.ExactArgs("NAME"),
	}
	o.AddTo(cmd, changeTimeout)
	cmd.Flags().StringSliceVar(&addrs, "set-addr", nil, "gRPC `addresses` of the new Set's AllocSvr, host:port; required")
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		if err := checkAdd(args[0], addrs); err != nil {
			return daemon.Usage(err)
		}
		return o.with(ctx, func(d *division) error {
			m, err := d.root.Add(ctx, setadmin.NewSet(args[0], addrs, d.conns), d.addrs)
			if err != nil {
				return addFailed(err)
			}
			s, err := m.Set(args[0])
			if err != nil {
				return err
			}
			r := added{Set: s.Name, Cluster: s.Cluster, Addrs: s.Addrs, Root: m.Sets[0].Name, Version: m.Version}
			return ui.Print(stdout, format, r, func() *ui.Table {
				return ui.NewTable("set", "cluster", "addresses", "root").Row(r.Set, r.Cluster, strings.Join(r.Addrs, ","), r.Root)
			})
		})
	})
	return cmd
}

func checkAdd(name string, addrs []string) error {
	if err := sets.CheckName(name); err != nil {
		return err
	}
	if len(addrs) == 0 {
		return errors.New("expected --set-addr HOST:PORT of the new Set's AllocSvr")
	}
	return hostport.DialAll("--set-addr", addrs)
}

// addFailed says what to do about a cluster that cannot be added.
func addFailed(err error) error {
	switch {
	case errors.Is(err, setadmin.ErrSetDown):
		return &told{tidy(err).Error() + " (--set-addr takes addresses of AllocSvr)", setadmin.ErrSetDown}
	case errors.Is(err, seq.ErrBadMapping):
		return fmt.Errorf("%w: initialise it anew, with the same --sections and --space", err)
	}
	return err
}
