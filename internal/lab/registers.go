package lab

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/sets"
)

// registers are connections to what keeps the registers, for looking only: every StoreSvr, or
// etcd as one store.
type registers struct {
	stores []quorum.Store
	refs   []quorum.Ref
	w      int    // so many must say the same
	where  string // they are then, for people
	ends   []func() error
}

func (r *registers) close() {
	for _, end := range r.ends {
		_ = end()
	}
}

// openRegisters asks every store, or etcd, who it is; all must answer.
func openRegisters(ctx context.Context, c *Cluster) (*registers, error) {
	r := &registers{}
	var err error
	if c.etcd.Given() {
		r.where, err = "in etcd", r.inEtcd(ctx, c.etcd)
	} else {
		err = r.atStores(ctx, ofSet(c.Role(store), sets.RootName))
		r.where = fmt.Sprintf("at %d stores", r.w)
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// of is ErrEngine if they are another cluster's than the one that is drilled.
func (r *registers) of(cluster string) error {
	for _, ref := range r.refs {
		if ref.Cluster != cluster {
			return fmt.Errorf("%w: they are of cluster %q, and the nodes of %q", ErrEngine, ref.Cluster, cluster)
		}
	}
	return nil
}

func (r *registers) atStores(ctx context.Context, nodes []localcluster.Node) error {
	for _, n := range nodes {
		client, err := storeclient.Dial(n.Addr)
		if err != nil {
			return err
		}
		r.ends = append(r.ends, client.Close)
		id, err := client.Describe(ctx)
		if status.Code(err) == codes.Unimplemented {
			return fmt.Errorf("%w: %s is no StoreSvr; for registers in etcd give --etcd", ErrEngine, n.Addr)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
		r.stores, r.refs, r.w = append(r.stores, client), append(r.refs, id.Ref), id.W
	}
	return nil
}

func (r *registers) inEtcd(ctx context.Context, flags etcdclient.Flags) error {
	client, err := dialEtcd(flags)
	if err != nil {
		return err
	}
	r.ends = append(r.ends, client.Close)
	s, err := etcdstore.Open(ctx, etcdstore.Config{KV: onlooker{client}, Prefix: flags.Prefix, Clock: clock.Boot()})
	if err != nil {
		return err
	}
	r.stores, r.refs, r.w = []quorum.Store{s}, []quorum.Ref{s.Identity().Ref}, 1
	return nil
}
