// Package etcdverbs is the verbs `seqctl etcd ...`, for clusters whose registers are in etcd: init
// makes one, status checks the etcd and shows its members. They ask etcd itself.
package etcdverbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/clock"
	"github.com/seqsvr/seqsvr/internal/daemon"
	"github.com/seqsvr/seqsvr/internal/etcdclient"
	"github.com/seqsvr/seqsvr/internal/etcdflags"
	"github.com/seqsvr/seqsvr/internal/etcdstore"
	"github.com/seqsvr/seqsvr/internal/ui"
	"github.com/seqsvr/seqsvr/seq"
)

// patience bounds one verb.
const patience = 30 * time.Second

// Command is `seqctl etcd`.
func Command() *cobra.Command {
	return ctl.Group(&cobra.Command{
		Use:   "etcd",
		Short: "clusters on etcd: init, status",
	}, initCommand(), statusCommand())
}

type options struct {
	ctl.Options
	etcd etcdflags.Flags
}

func (o *options) addTo(cmd *cobra.Command) {
	o.AddLocalTo(cmd)
	o.etcd.AddTo(cmd.Flags())
}

// with runs do on a connection.
func (o *options) with(ctx context.Context, do func(ctx context.Context, c *etcdclient.Client, want etcdclient.Requirement) error) error {
	if !o.etcd.Given() {
		return daemon.Usage(fmt.Errorf("%w: --etcd HOST:PORT,... is required", seq.ErrBadArgument))
	}
	cfg, err := o.etcd.Config(slog.New(slog.DiscardHandler))
	if err != nil {
		return daemon.Usage(err)
	}
	client, err := etcdclient.Dial(cfg)
	if err != nil {
		return daemon.Usage(err)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return errors.Join(do(ctx, client, o.etcd.Requirement()), client.Close())
}

func initCommand() *cobra.Command {
	o := &options{}
	var cluster string
	var spaces []string
	var ifMissing bool
	cmd := &cobra.Command{
		Use:     "init",
		Short:   "make a cluster below a prefix of etcd",
		Example: "  seqctl etcd init --etcd 127.0.0.1:2379 --cluster prod --space user:sections=4096",
		Args:    ctl.ExactArgs(),
	}
	o.addTo(cmd)
	cmd.Flags().StringVar(&cluster, "cluster", "", "`id` of the cluster; required")
	cmd.Flags().StringArrayVar(&spaces, "space", nil, "a `space`, "+seq.SpaceForm+"; may be given again; empty: one of the name "+seq.DefaultSpace)
	cmd.Flags().BoolVar(&ifMissing, "if-missing", false, "succeed and touch nothing where a cluster is, for start scripts that run each time")
	cmd.RunE = o.Verb(func(ctx context.Context, _ ui.Format, _ []string, stdout io.Writer) error {
		cfg := etcdstore.InitConfig{Prefix: o.etcd.Prefix, Cluster: cluster, Spaces: []seq.Space{{Name: seq.DefaultSpace}}}
		for i, text := range spaces {
			if i == 0 {
				cfg.Spaces = nil
			}
			space, err := seq.ParseSpace(text)
			if err != nil {
				return daemon.Usage(fmt.Errorf("--space %q: %w", text, err))
			}
			cfg.Spaces = append(cfg.Spaces, space)
		}
		return o.with(ctx, func(ctx context.Context, c *etcdclient.Client, want etcdclient.Requirement) error {
			if _, err := c.Check(ctx, want); err != nil {
				return err
			}
			err := etcdstore.Init(ctx, c, cfg)
			if ifMissing && errors.Is(err, etcdstore.ErrInitialized) {
				fmt.Fprintln(stdout, "there is a cluster already; it is left as it is")
				return nil
			}
			return err
		})
	})
	return cmd
}

// shown is what status prints.
type shown struct {
	Cluster string  `json:"cluster,omitempty"`
	UUID    string  `json:"uuid,omitempty"`
	Era     seq.Era `json:"era"`
	Trouble string  `json:"trouble,omitempty"` // why it cannot be used
	Members []row   `json:"members"`
}

type row struct {
	Addr     string   `json:"addr"`
	Version  string   `json:"version,omitempty"`
	Leader   bool     `json:"leader"`
	Revision int64    `json:"revision,omitempty"`
	Size     int64    `json:"size_bytes,omitempty"`
	InUse    int64    `json:"in_use_bytes,omitempty"`
	Quota    int64    `json:"quota_bytes,omitempty"` // 0: it does not say
	Alarms   []string `json:"alarms,omitempty"`
	Error    string   `json:"error,omitempty"`
}

func rowOf(m etcdclient.Member) row {
	r := row{Addr: m.Addr, Version: m.Version, Leader: m.ID != 0 && m.ID == m.Leader, Revision: m.Revision, Size: m.Size, InUse: m.InUse, Quota: m.Quota, Alarms: m.Alarms}
	if m.Err != nil {
		r.Error = m.Err.Error()
	}
	return r
}

func statusCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "check the etcd and the cluster there, and show the members",
		Example: "  seqctl etcd status --etcd 127.0.0.1:2379",
		Args:    ctl.ExactArgs(),
	}
	o.addTo(cmd)
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, _ []string, stdout io.Writer) error {
		return o.with(ctx, func(ctx context.Context, c *etcdclient.Client, want etcdclient.Requirement) error {
			members, trouble := c.Check(ctx, want)
			var s shown
			if !errors.Is(trouble, etcdclient.ErrUnreachable) {
				store, err := etcdstore.Open(ctx, etcdstore.Config{KV: c, Prefix: o.etcd.Prefix, Clock: clock.Boot()})
				if err == nil {
					id := store.Identity()
					s.Cluster, s.UUID, s.Era = id.Ref.Cluster, id.UUID, id.Ref.Era
				} else if trouble == nil {
					trouble = err
				}
			}
			if trouble != nil {
				s.Trouble = trouble.Error()
			}
			for _, m := range members {
				s.Members = append(s.Members, rowOf(m))
			}
			return errors.Join(s.print(stdout, format), trouble)
		})
	})
	return cmd
}

func (s shown) print(w io.Writer, format ui.Format) error {
	if format != ui.FormatTable {
		return ui.Print(w, format, s, nil)
	}
	if s.Cluster != "" {
		fmt.Fprintf(w, "cluster %s, era %d\n\n", s.Cluster, s.Era)
	}
	return ui.Print(w, format, s, func() *ui.Table {
		t := ui.NewTable("ENDPOINT", "VERSION", "LEADER", "REVISION", "BYTES", "IN USE", "QUOTA", "STATE")
		for _, m := range s.Members {
			state := "ok"
			switch {
			case m.Error != "":
				state = m.Error
			case len(m.Alarms) > 0:
				state = fmt.Sprint(m.Alarms)
			}
			t.Row(m.Addr, m.Version, m.Leader, m.Revision, m.Size, m.InUse, m.Quota, state)
		}
		return t
	})
}
