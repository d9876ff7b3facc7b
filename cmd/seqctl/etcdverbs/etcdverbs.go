// Package etcdverbs is the verbs `seqctl etcd ...`, for clusters whose registers are in etcd: init
// makes one, status checks the etcd and shows its members and the cluster. They ask etcd itself.
// `seqctl store ... --etcd` is built on the same.
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
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
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
	etcd etcdclient.Flags
}

func (o *options) addTo(cmd *cobra.Command) {
	o.AddLocalTo(cmd)
	o.etcd.AddTo(cmd.Flags())
}

// with is With for patience.
func (o *options) with(ctx context.Context, do func(ctx context.Context, c *etcdclient.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return With(&o.etcd, func(c *etcdclient.Client) error { return do(ctx, c) })
}

// With runs do on a connection that the flags say: daemon.ErrUsage where they say none.
func With(flags *etcdclient.Flags, do func(c *etcdclient.Client) error) error {
	if !flags.Given() {
		return daemon.Usage(fmt.Errorf("%w: --etcd HOST:PORT,... is required", seq.ErrBadArgument))
	}
	cfg, err := flags.Config(slog.New(slog.DiscardHandler))
	if err != nil {
		return daemon.Usage(err)
	}
	client, err := etcdclient.Dial(cfg)
	if err != nil {
		return daemon.Usage(err)
	}
	return errors.Join(do(client), client.Close())
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
		if err := (auth.Identity{Cluster: cluster, Role: auth.Alloc, Name: "any"}).Check(); err != nil { // what no certificate can have
			return daemon.Usage(fmt.Errorf("--cluster: %w", err))
		}
		return o.with(ctx, func(ctx context.Context, c *etcdclient.Client) error {
			if _, err := c.Check(ctx, o.etcd.Requirement()); err != nil {
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

func statusCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "check the etcd and the cluster there, and show the members; exit 1, and what to do first, if they are not healthy",
		Example: "  seqctl etcd status --etcd 127.0.0.1:2379",
		Args:    ctl.ExactArgs(),
	}
	o.addTo(cmd)
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, _ []string, stdout io.Writer) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return Status(ctx, &o.etcd, format, stdout)
	})
	return cmd
}
