package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/allocsvr/documents"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/etcdmodel"
)

// onEtcd are the registers of a run in an etcd: the real store and the real client of every
// process, which asks members over the simulated network for what tests/kit/etcdmodel does.
type onEtcd struct {
	part
	etcd    *etcdmodel.Etcd
	members *members
	rolled  bool // put back, and no new era yet; guarded by world.mu
	ledger  *ledger
	closed  bool // no process is to be started; likewise
}

// firstCluster is etcd's id of itself.
const firstCluster = 7

func newOnEtcd(p part) *onEtcd {
	b := &onEtcd{part: p, etcd: etcdmodel.New(firstCluster), ledger: newLedger(p.w)}
	b.members = &members{part: p, etcd: b.etcd, did: b.ledger.did}
	return b
}

// assemble implements backend.
func (b *onEtcd) assemble(m seq.Mapping) {
	ctx, local := context.Background(), &etcdmodel.Client{Etcd: b.etcd}
	if err := etcdstore.Init(ctx, local, etcdstore.InitConfig{Prefix: etcdPrefix, Cluster: b.w.cluster(), Spaces: m.Spaces, Era: 1}); err != nil {
		panic(fmt.Sprintf("sim: init of etcd: %v", err))
	}
	b.etcd.OnChange(b.ledger.changed)
	for i := range b.opts.Stores {
		b.w.hosts.add(storeHost, storeName(i)+b.w.tag(), i)
	}
	made, err := etcdstore.Open(ctx, etcdstore.Config{KV: local, Prefix: etcdPrefix, Clock: b.w.hosts.all[0].clock, MaxLease: allocsvr.MaxLease})
	if err != nil {
		panic(fmt.Sprintf("sim: open etcd: %v", err))
	}
	b.w.ident = made.Identity()
}

// begin implements backend.
func (b *onEtcd) begin() {
	for _, h := range b.w.hosts.of(storeHost) {
		b.start(h)
	}
	b.members.begin()
}

// start implements backend.
func (b *onEtcd) start(h *host) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h.up || b.life.Err() != nil {
		return
	}
	h.boot()
	pb.RegisterKVServer(h, &etcdmodel.Member{Do: func(ctx context.Context, t etcdstore.Txn) (etcdstore.Answer, error) {
		return b.members.do(ctx, h, t)
	}})
	b.trace.add("%-8s starts, life %d", h.name, h.life)
}

// dial connects a life of a host to etcd. The member that it asks first depends on the host and the life.
func (b *onEtcd) dial(h *host, life int) (*etcdclient.Client, error) {
	var ends []string
	for _, m := range b.w.hosts.of(storeHost) {
		ends = append(ends, m.name)
	}
	first := (h.index + life) % len(ends)
	return etcdclient.Dial(etcdclient.Config{Endpoints: slices.Concat(ends[first:], ends[:first]), Options: []grpc.DialOption{b.w.net.overEtcd(h, life)}})
}

// open is the cluster as a life of a host finds it. Close the client in the end.
func (b *onEtcd) open(ctx context.Context, h *host, life int) (*etcdclient.Client, *etcdstore.Store, error) {
	client, err := b.dial(h, life)
	if err != nil {
		return nil, nil, err
	}
	store, err := etcdstore.Open(ctx, etcdstore.Config{KV: client, Prefix: etcdPrefix, Clock: h.clock, Wall: h.clock.Wall, MaxLease: allocsvr.MaxLease,
		Logger: b.logger(h.name)})
	if err != nil {
		return nil, nil, errors.Join(err, client.Close())
	}
	return client, store, nil
}

func named(store *etcdstore.Store) []quorum.NamedStore {
	id := store.Identity()
	return []quorum.NamedStore{{Name: id.Name, UUID: id.UUID, Store: store}}
}

// launch implements backend.
func (b *onEtcd) launch(h *host, p *allocProc) {
	b.work.Go(func() {
		client, wiring, err := b.find(h, p)
		if err != nil {
			close(p.over)
			return
		}
		p.era = wiring.Identity.Ref.Era
		b.w.procs.serve(h, p, wiring)
		<-p.over
		_ = client.Close()
	})
}

// find does what a process does before it serves, as often as it takes while it is wanted.
func (b *onEtcd) find(h *host, p *allocProc) (*etcdclient.Client, allocsvr.Wiring, error) {
	for {
		b.mu.Lock()
		closed := b.closed
		b.mu.Unlock()
		if closed {
			b.again(h, p)
			return nil, allocsvr.Wiring{}, errClosed
		}
		try, done := context.WithTimeout(p.ctx, 5*time.Second)
		client, wiring, err := b.connect(try, h, p.life)
		done()
		if err == nil || p.ctx.Err() != nil {
			return client, wiring, err
		}
		b.trace.add("%-8s finds no registers: %v", h.name, err)
		if errors.Is(err, etcdstore.ErrRestored) || errors.Is(err, etcdstore.ErrNotInitialized) {
			b.again(h, p)
			return nil, wiring, err
		}
		select {
		case <-p.ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

var errClosed = errors.New("no process is to be started before there is a new era")

// again ends a process that cannot start, and has it started later.
func (b *onEtcd) again(h *host, p *allocProc) {
	b.w.procs.kill(h, p.life)
	b.schedule(2*time.Second, func() { b.w.procs.start(h) })
}

// connect finds the cluster, and how its string keys are hashed, by a session of its own.
func (b *onEtcd) connect(ctx context.Context, h *host, life int) (*etcdclient.Client, allocsvr.Wiring, error) {
	client, store, err := b.open(ctx, h, life)
	if err != nil {
		return nil, allocsvr.Wiring{}, err
	}
	w := allocsvr.Wiring{Identity: store.Identity(), Stores: named(store)}
	b.mu.Lock()
	secret := b.w.procs.newSecret(h)
	b.mu.Unlock()
	g, err := quorum.NewGroup(quorum.Config{Ref: w.Identity.Ref, N: 1, R: 1, W: 1, Secret: secret}, w.Stores)
	if err == nil {
		w.Keys, err = documents.NewKeys(ctx, g, secret.Session(), w.Identity.Mapping).Begin(ctx)
		g.Close()
	}
	if err != nil {
		return nil, w, errors.Join(err, client.Close())
	}
	return client, w, nil
}

// group implements backend.
func (b *onEtcd) group(ctx context.Context, from *host) (*quorum.Group, func(), error) {
	client, store, err := b.open(ctx, from, from.life)
	if err != nil {
		return nil, nil, err
	}
	g, err := quorum.NewGroup(quorum.Config{Ref: store.Identity().Ref, N: 1, R: 1, W: 1}, named(store))
	if err != nil {
		return nil, nil, errors.Join(err, client.Close())
	}
	return g, func() {
		g.Close()
		_ = client.Close()
	}, nil
}

// kept implements backend: what is handed out is at or below what etcd had.
func (b *onEtcd) kept(h *host, r seq.Register, value uint64) {
	if had := b.ledger.top(r); had < value {
		b.w.check.broken("I5", "%s hands out %d of %s, of which etcd has had %d", h.name, value, r, had)
	}
}

// heal implements backend.
func (b *onEtcd) heal() { b.members.heal() }

// recover implements backend: an etcd that was put back serves when it has a new era.
func (b *onEtcd) recover(moves func()) {
	for deadline := b.now() + orderTime; b.putBack(); {
		if b.now() > deadline {
			b.w.check.broken("liveness", "no new era %v after healing", orderTime)
			return
		}
		if !b.sleep(500 * time.Millisecond) {
			return
		}
	}
	moves()
}

// putBack says whether etcd was put back and waits for a new era.
func (b *onEtcd) putBack() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rolled
}
