package storectl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/internal/ops/storeadmin"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
)

// Defaults of --timeout: a change waits for leases to end, and moves every register.
const (
	askTimeout    = 10 * time.Second
	changeTimeout = 5 * time.Minute
)

// Command is `seqctl store`.
func Command() *cobra.Command {
	return ctl.Group(&cobra.Command{
		Use:   "store",
		Short: "look after the stores, or with --etcd some of it after a cluster on etcd: status, replace, add, remove, abort, backup, inspect, check, restore, windows-over",
	}, statusCommand(), replaceCommand(), addCommand(), removeCommand(), abortCommand(),
		backupCommand(), inspectCommand(), checkCommand(), restoreCommand(), windowsCommand())
}

// options are the flags of the verbs that need running stores.
type options struct {
	ctl.Options
	stores   []string
	etcd     etcdclient.Flags
	anyZones bool // of the verbs that change the member list
}

// addAnyZones declares the flag of verbs that choose which stores there are.
func (o *options) addAnyZones(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.anyZones, "any-zones", false, "do it even if one of three or more zones then has as many stores as a write needs")
}

func (o *options) addTo(cmd *cobra.Command, timeout time.Duration) {
	o.Options.AddTo(cmd, timeout)
	var set []string
	if text := os.Getenv("SEQ_STORES"); text != "" {
		set = strings.Split(text, ",")
	}
	cmd.Flags().StringSliceVar(&o.stores, "stores", set, "gRPC `addresses` of stores (or SEQ_STORES); none: ask --addr for them")
	o.etcd.AddTo(cmd.Flags())
	setEtcdHidden(cmd, true) // refused by most verbs
}

// addrs returns the stores' addresses.
func (o *options) addrs(ctx context.Context) ([]string, error) {
	if o.etcd.Given() {
		return nil, daemon.Usage(errOfStores)
	}
	if len(o.stores) > 0 {
		o.Addr = o.stores[0] // what errors name
		return o.stores, nil
	}
	addrs, err := ctl.StoreAddrs(ctx, &o.Options)
	if err != nil {
		return nil, fmt.Errorf("find the stores (--stores names them): %w", err)
	}
	return addrs, nil
}

// care runs do with a hold on the stores.
func (o *options) care(ctx context.Context, do func(c *storeadmin.Care) error) error {
	addrs, err := o.addrs(ctx)
	if err != nil {
		return err
	}
	c, err := storeadmin.Open(ctx, addrs, o.Dial()...)
	if err != nil {
		return err
	}
	return errors.Join(do(c), c.Close())
}

// changed is the output of the verbs that change the member list.
type changed struct {
	Version uint64   `json:"members_version"`
	N       int      `json:"n"`
	R       int      `json:"r"`
	W       int      `json:"w"`
	Voters  []string `json:"voters"`
	Steps   []string `json:"steps"` // done now; none if nothing was left to do
}

// change runs a plan and prints the result.
func (o *options) change(ctx context.Context, format ui.Format, stdout io.Writer, verb string, plan func(c *storeadmin.Care) ([]storeadmin.Step, error)) error {
	return o.care(ctx, func(c *storeadmin.Care) error {
		c.AnyZones = o.anyZones
		steps, err := plan(c)
		if err != nil {
			return err
		}
		result := changed{Steps: []string{}}
		err = storeadmin.Run(ctx, steps, func(name string) {
			result.Steps = append(result.Steps, name)
			if format == ui.FormatTable {
				fmt.Fprintf(stdout, "%s\n", name)
			}
		})
		if err != nil {
			return fmt.Errorf("%w (the cluster serves on; the same command goes on from here)", err)
		}
		if len(result.Steps) > 0 {
			note(ctx, os.Stderr, c, verb, strings.Join(result.Steps, "; "))
		}
		list := c.List()
		result.Version, result.N, result.R, result.W = list.Version, list.N(), list.R, list.W
		for _, m := range list.Voters() {
			result.Voters = append(result.Voters, m.Name)
		}
		if format != ui.FormatTable {
			return ui.Print(stdout, format, result, nil)
		}
		if len(steps) == 0 {
			fmt.Fprintln(stdout, "nothing to do")
		}
		fmt.Fprintf(stdout, "member list %d: %s, N=%d R=%d W=%d\n", result.Version, strings.Join(result.Voters, ", "), result.N, result.R, result.W)
		return nil
	})
}
