package storectl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seqsvr/seqsvr/cmd/seqctl/etcdverbs"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr"
	"github.com/seqsvr/seqsvr/storesvr/backup"
)

// errOfStores: the verb is about stores, and etcd has members of its own.
var errOfStores = errors.New("not with --etcd: there are no stores, and etcd's members are changed by etcdctl member add, remove and promote")

// showEtcd has the help of a verb tell of the flags of etcd.
func showEtcd(cmd *cobra.Command) { setEtcdHidden(cmd, false) }

func setEtcdHidden(cmd *cobra.Command, hidden bool) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "etcd" || strings.HasPrefix(f.Name, "etcd-") {
			f.Hidden = hidden
		}
	})
}

// onEtcd reports whether the verb uses etcd.
func (o *options) onEtcd(cmd *cobra.Command) (bool, error) {
	if !o.etcd.Given() {
		return false, nil
	}
	if cmd.Flags().Changed("stores") {
		return true, daemon.Usage(errors.New("--stores and --etcd, expected one of them"))
	}
	o.Addr = strings.Join(o.etcd.Endpoints, ",") // what errors name
	return true, nil
}

// manifestOf returns the manifest of what is below a prefix of etcd.
func manifestOf(c etcdstore.Contents) backup.Manifest {
	m := backup.Manifest{Cluster: c.Cluster, Era: c.OldestOf, Mapping: c.Mapping, Floors: c.Floors, Required: c.Required, Registers: len(c.States), Sources: []string{"etcd"},
		Members: quorum.MemberList{Version: 1, R: 1, W: 1, Incarnation: c.Incarnation, Members: []quorum.Member{{UUID: c.UUID, Name: "etcd"}}}}
	for _, s := range c.Sessions {
		m.LeaseBound = max(m.LeaseBound, s.Lease)
	}
	return m
}

// snapshotOfEtcd reads everything below the prefix at one revision, of a cluster that can serve.
func snapshotOfEtcd(ctx context.Context, flags *etcdclient.Flags) (m backup.Manifest, states []quorum.RegisterState, err error) {
	begun := time.Now()
	err = etcdverbs.With(flags, func(client *etcdclient.Client) error {
		if _, err := client.Check(ctx, flags.Requirement()); err != nil {
			return err
		}
		c, err := etcdstore.Load(ctx, client, flags.Prefix)
		if err == nil {
			err = c.Trouble
		}
		m, states = manifestOf(c), c.States
		m.Taken = begun.UTC()
		return err
	})
	return m, states, err
}

// beginning returns the first contents of etcd that the restore makes of the states.
func beginning(r backup.Restore, m backup.Manifest, states []quorum.RegisterState) (etcdstore.Beginning, error) {
	if m.Mapping.HasExact() {
		return etcdstore.Beginning{}, fmt.Errorf("%w: restore the backup on StoreSvr", etcdstore.ErrNoExact)
	}
	with, err := r.Filling(m, states)
	if err != nil {
		return etcdstore.Beginning{}, err
	}
	b := etcdstore.Beginning{Mapping: m.Mapping, Floors: with.Floors.Made(time.Now()).Floors, LeaseBound: with.LeaseBound, Required: with.Required, Origin: with.Origin}
	for name, st := range with.Registers {
		b.States = append(b.States, st.Of(name))
	}
	slices.SortFunc(b.States, func(a, b quorum.RegisterState) int { return cmp.Compare(a.Register, b.Register) })
	return b, nil
}

// restoreOnEtcd begins a new era below the prefix: of a backup where there is nothing, or else of
// what is there.
func restoreOnEtcd(ctx context.Context, flags *etcdclient.Flags, r backup.Restore, from *loaded, format ui.Format, stdout, stderr io.Writer) error {
	o := etcdstore.NewEra{Prefix: flags.Prefix, Cluster: r.Cluster, Era: r.Era, Told: func(what string) { fmt.Fprintln(stderr, what) }}
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	var out contents
	var states []quorum.RegisterState
	err := etcdverbs.With(flags, func(client *etcdclient.Client) error {
		if _, err := client.Check(ctx, flags.Requirement()); err != nil {
			return err
		}
		if from != nil {
			b, err := beginning(r, from.Manifest, from.states)
			if err != nil {
				return err
			}
			out, states = contents{Manifest: from.Manifest, Signature: from.sig, Spent: backup.Spent(b.Mapping, b.States), Restored: asked(r)}, from.states
			err = o.Make(ctx, client, b)
			if errors.Is(err, etcdstore.ErrInitialized) || errors.Is(err, etcdstore.ErrRestored) {
				return fmt.Errorf("%w: without --from the new era is made of it; or choose another --etcd-prefix", err)
			}
			return err
		}
		return o.Raise(ctx, client, func(c etcdstore.Contents) (etcdstore.Beginning, error) {
			m := manifestOf(c)
			b, err := beginning(r, m, c.States)
			out, states = contents{Manifest: m, Spent: backup.Spent(b.Mapping, b.States), Restored: asked(r)}, c.States
			return b, err
		})
	})
	if errors.Is(err, backup.ErrEra) || errors.Is(err, backup.ErrWasSet) || errors.Is(err, seq.ErrStaleEra) {
		return daemon.Usage(err)
	}
	if err != nil {
		return err
	}
	out.Era = r.Era
	return out.print(stdout, format, states)
}

// loaded is a backup that was read.
type loaded struct {
	backup.Manifest
	states []quorum.RegisterState
	sig    backup.Signature
}

// windowsOverOnEtcd is windows-over for an etcd, which has no clock: this machine's is taken.
func windowsOverOnEtcd(ctx context.Context, flags *etcdclient.Flags) ([]told, error) {
	var floor time.Time
	err := etcdverbs.With(flags, func(client *etcdclient.Client) (err error) {
		floor, err = etcdstore.WindowsOver(ctx, client, flags.Prefix, time.Now().Add(storesvr.Overdrawn))
		return err
	})
	if err != nil {
		return nil, err
	}
	return []told{{"etcd", uint64(max(0, time.Until(floor).Milliseconds()))}}, nil
}
