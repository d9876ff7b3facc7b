package allocsvr

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/documents"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// known holds the documents that a start reads at the stores before there is a node.
type known struct {
	keys  documents.KeyEntries  // how string keys are hashed
	first documents.SetsAtStart // which sections the Set has, and what it knows of others
}

// connect finds what keeps the registers, for as long as the process is wanted, and reads there
// what is to be known.
func (s *Server) connect(ctx context.Context, waiting *starting) (backend, known, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	var told time.Time
	for {
		try, done := context.WithTimeout(ctx, connectPatience)
		found, err := s.find(try, waiting)
		done()
		var read known
		again := false
		if err == nil {
			if id := found.identity.Ref.Cluster; s.cfg.ClusterID != "" && s.cfg.ClusterID != id {
				err := fmt.Errorf("%w: stores of %q, configured for %q", seq.ErrForeignCluster, id, s.cfg.ClusterID)
				return backend{}, known{}, errors.Join(err, found.close())
			}
			if read, err = readFirst(ctx, s.cfg.Name, found); err == nil {
				return found, read, nil
			}
			again = errors.Is(err, seq.ErrStaleEra) // the members have changed since they were found
			err = errors.Join(err, found.close())
		}
		if !again && fatal(err) || ctx.Err() != nil {
			return backend{}, known{}, err
		}
		if now := time.Now(); now.Sub(told) >= time.Second {
			told = now
			s.cfg.Logger.Warn("no quorum of stores yet", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// find is one try.
func (s *Server) find(ctx context.Context, waiting *starting) (backend, error) {
	if s.cfg.onEtcd() {
		found, err := s.onEtcd(ctx)
		if err != nil {
			waiting.missing(s.cfg.Etcd.Endpoints)
		}
		return found, err
	}
	options := append(s.dialOptions(auth.Store), storeclient.Alone(s.cfg.Traces.Alone()))
	told := storeclient.Telling(func(short *storeclient.Shortfall) { waiting.missing(short.Missing) })
	cluster, err := storeclient.Connect(ctx, s.cfg.Stores, append(slices.Clone(options), told)...)
	if err != nil {
		return backend{}, err
	}
	for _, odd := range cluster.Odd {
		s.cfg.Logger.Warn("a store does not belong to the others and is left out", "addr", odd.Addr, "store", odd.Name, "uuid", odd.UUID, "error", odd.Err)
	}
	if err := cluster.Complete(); err != nil {
		return backend{}, errors.Join(err, cluster.Close())
	}
	return s.onStores(cluster, options...), nil
}

// fatal reports whether the error would end every later try, too.
func fatal(err error) bool {
	for _, e := range []error{seq.ErrProtocol, seq.ErrForeignCluster, seq.ErrStaleEra, seq.ErrBadArgument, documents.ErrUnsoundKeys,
		etcdstore.ErrRestored, etcdstore.ErrDamaged, etcdstore.ErrNotInitialized,
		etcdclient.ErrVersion, etcdclient.ErrMixed, etcdclient.ErrCompaction, etcdclient.ErrPermission, etcdclient.ErrLogin, etcdclient.ErrKubernetes} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// readFirst reads how string keys are hashed, and has it settled at a cluster's first start, and
// which sections the Set has: by a session of its own, since the rounds of one session belong to
// one group.
func readFirst(ctx context.Context, node string, found backend) (read known, err error) {
	secret := seq.NewSecret(node)
	ctx, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	id := found.identity
	group, err := quorum.NewGroup(quorum.Config{Ref: id.Ref, N: id.N, R: id.R, W: id.W, Secret: secret}, found.stores)
	if err != nil {
		return read, err
	}
	defer group.Close()
	if read.keys, err = documents.NewKeys(ctx, group, secret.Session(), id.Mapping).Begin(ctx); err != nil {
		return read, fmt.Errorf("read how string keys are hashed: %w", err)
	}
	if read.first, err = documents.ReadSets(ctx, group, secret.Session()); err != nil {
		return read, fmt.Errorf("read which sections the Set has: %w", err)
	}
	return read, nil
}
