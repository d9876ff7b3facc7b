package localcluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// etcdPatience bounds making a cluster in etcd: some 70 transactions for 8,192 sections. One that
// does not answer is told of sooner.
const etcdPatience = 30 * time.Second

// inEtcd is the cluster that a directory has below a prefix of etcd.
type inEtcd struct {
	Prefix string  `json:"prefix"`
	UUID   string  `json:"uuid"`
	Era    seq.Era `json:"era"`
}

// InitialiseEtcd makes the directory's cluster below the prefix of l.Etcd if there is none, and finds it
// again otherwise. It never changes an existing cluster. It fails with ErrConfig for a cluster of another
// id, and with ErrState if this directory's cluster is gone or is another one. Other errors are from
// etcdclient and etcdstore.
func (l *Layout) InitialiseEtcd(ctx context.Context, cfg Config) error {
	ctx, cancel := context.WithTimeout(ctx, etcdPatience)
	defer cancel()
	cfg.Etcd = l.Etcd // of a further Set another prefix than the first one's
	with, err := cfg.Etcd.Config(slog.New(slog.DiscardHandler))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	client, err := etcdclient.Dial(with)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	err = l.settle(ctx, client, cfg)
	return errors.Join(err, client.Close())
}

func (l *Layout) settle(ctx context.Context, client *etcdclient.Client, cfg Config) error {
	if _, err := client.Check(ctx, cfg.Etcd.Requirement()); err != nil {
		return err
	}
	look := etcdstore.Config{KV: client, Prefix: cfg.Etcd.Prefix, Clock: clock.Boot()}
	store, err := etcdstore.Open(ctx, look)
	if errors.Is(err, etcdstore.ErrNotInitialized) {
		if had := l.state.Etcd; had != nil {
			return fmt.Errorf("%w: %s had a cluster below %s of etcd, and it is gone: what was handed out is not known any more; another directory begins anew",
				ErrState, l.Dir, had.Prefix)
		}
		spaces, bad := cfg.AllSpaces()
		if bad != nil {
			return bad
		}
		err = etcdstore.Init(ctx, client, etcdstore.InitConfig{Prefix: cfg.Etcd.Prefix, Cluster: l.ClusterID, Spaces: spaces})
		if err == nil || errors.Is(err, etcdstore.ErrInitialized) { // by another process, just now
			store, err = etcdstore.Open(ctx, look)
		}
	}
	if err != nil {
		return err
	}
	return l.adopt(cfg, store.Identity())
}

// adopt notes whose cluster is below the prefix, or says why it is not the directory's.
func (l *Layout) adopt(cfg Config, id quorum.Identity) error {
	now := inEtcd{Prefix: cfg.Etcd.Prefix, UUID: id.UUID, Era: id.Ref.Era}
	had := l.state.Etcd
	switch {
	case id.Ref.Cluster != l.ClusterID:
		return fmt.Errorf("%w: cluster %q is below %s of etcd, and %s is of %q: give another --etcd-prefix, or a new directory and --cluster %[2]s",
			ErrConfig, id.Ref.Cluster, now.Prefix, l.Dir, l.ClusterID)
	case had != nil && had.UUID != now.UUID && now.Era <= had.Era: // a restore makes a later era
		return fmt.Errorf("%w: %s had cluster %s below %s of etcd, and %s is there now: it was made anew and repeats numbers; another directory takes it as it is",
			ErrState, l.Dir, had.UUID, had.Prefix, now.UUID)
	}
	l.state.Etcd, l.state.Initialised = &now, true
	return l.save()
}
