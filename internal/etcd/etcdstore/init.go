package etcdstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// InitConfig is what is fixed for the life of a cluster.
type InitConfig struct {
	Prefix  string
	Cluster string // id, 1 to 128 bytes
	Spaces  []seq.Space
	Era     seq.Era
	Floors  quorum.Floors // of an era that was restored
}

// maxCluster bounds a cluster id in bytes, as StoreSvr does.
const maxCluster = 128

func (c InitConfig) meta() (meta, error) {
	if c.Cluster == "" || len(c.Cluster) > maxCluster {
		return meta{}, fmt.Errorf("%w: cluster id of %d bytes, expected 1 to %d", seq.ErrBadArgument, len(c.Cluster), maxCluster)
	}
	m, err := seq.NewMapping(c.Spaces...)
	if err != nil {
		return meta{}, err
	}
	if m.HasExact() {
		return meta{}, fmt.Errorf("%w: use StoreSvr for them, or another mode", ErrNoExact)
	}
	for i := range m.Spaces {
		m.Spaces[i].KeyHash = cmp.Or(m.Spaces[i].KeyHash, seq.SecretKeys)
	}
	return meta{UUID: uuid.NewString(), Cluster: c.Cluster, Era: c.Era, Spaces: m.Spaces, Floors: c.Floors, Making: true}, nil
}

// Init makes a cluster below the prefix: every register of the mapping and the fixed ones, at
// zero. It goes on where an Init of the same spaces was interrupted, and never touches a
// cluster that is whole: ErrInitialized. Other errors: seq.ErrForeignCluster for one of another
// id that is half made, seq.ErrBadMapping, seq.ErrBadArgument, ErrNoExact, ErrRestored.
func Init(ctx context.Context, kv KV, cfg InitConfig) error {
	if err := initialize(ctx, kv, cfg); err != nil {
		return fmt.Errorf("init cluster %q in etcd below %s: %w", cfg.Cluster, cfg.Prefix, err)
	}
	return nil
}

func initialize(ctx context.Context, kv KV, cfg InitConfig) error {
	k, err := newKeys(cfg.Prefix)
	if err != nil {
		return err
	}
	want, err := cfg.meta()
	if err != nil {
		return err
	}
	if want, err = claim(ctx, kv, k, want); err != nil {
		return err
	}
	made, err := fetchMeta(ctx, kv, k)
	if err != nil {
		return err
	}
	mapping := seq.Mapping{Spaces: want.Spaces}
	regs := seq.FixedRegisters()
	for id := range seq.SectionID(mapping.Sections()) {
		regs = append(regs, seq.SectionRegister(id))
	}
	for len(regs) > 0 {
		n := min(maxItems, len(regs))
		t := Txn{If: []Compare{modified(k.meta(), made.rev)}}
		for _, r := range regs[:n] {
			key := k.register(r)
			t.Then = append(t.Then, Op{Kind: Nested, Txn: &Txn{If: []Compare{absent(key)}, Then: []Op{put(key, register{}.encode(key))}}})
		}
		if err := mustThen(kv.Do(ctx, t)); err != nil {
			return err
		}
		regs = regs[n:]
	}
	want.Making = false
	return mustThen(kv.Do(ctx, Txn{If: []Compare{modified(k.meta(), made.rev)}, Then: []Op{put(k.meta(), encode(k.meta(), want))}}))
}

// claim writes the meta of a cluster in the making, or returns the meta that the same cluster has there.
func claim(ctx context.Context, kv KV, k keys, want meta) (meta, error) {
	probe, err := kv.Do(ctx, Txn{Then: []Op{get(k.meta())}})
	if err != nil {
		return meta{}, err
	}
	want.Etcd = probe.Cluster
	a, err := kv.Do(ctx, Txn{If: []Compare{absent(k.meta())}, Then: []Op{put(k.meta(), encode(k.meta(), want))}, Else: []Op{get(k.meta())}})
	if err != nil || a.Then {
		return want, err
	}
	there, err := readMeta(a)
	if err != nil {
		return meta{}, err
	}
	switch same := (seq.Mapping{Spaces: there.Spaces}).Extends(seq.Mapping{Spaces: want.Spaces}) && len(there.Spaces) == len(want.Spaces); {
	case there.poison() != "":
		return meta{}, restored(there.Poison)
	case there.Cluster != want.Cluster:
		return meta{}, fmt.Errorf("%w: cluster %q is there; choose another --etcd-prefix", seq.ErrForeignCluster, there.Cluster)
	case !there.Making:
		return meta{}, ErrInitialized
	case there.Era != want.Era:
		return meta{}, fmt.Errorf("%w: the making of era %d was interrupted; go on with that, or choose another --etcd-prefix", ErrNotInitialized, there.Era)
	case !same:
		return meta{}, fmt.Errorf("%w: an init of other spaces was interrupted; remove the keys below the prefix", seq.ErrBadMapping)
	}
	return there.meta, nil
}

// errRace is a compare that an init or another process has made fail.
var errRace = errors.New("changed meanwhile, try again")

func mustThen(a Answer, err error) error {
	if err == nil && !a.Then {
		return errRace
	}
	return err
}

// known is a meta as it was read.
type known struct {
	meta
	rev int64 // mod revision of its key
}

// readMeta takes the meta from the first result: ErrNotInitialized if there is none, ErrDamaged.
func readMeta(a Answer) (known, error) {
	if len(a.Results) == 0 || len(a.Results[0].KVs) == 0 {
		return known{}, ErrNotInitialized
	}
	kv := a.Results[0].KVs[0]
	m := known{rev: kv.Modified}
	return m, decode(kv, &m.meta)
}

func fetchMeta(ctx context.Context, kv KV, k keys) (known, error) {
	a, err := kv.Do(ctx, Txn{Then: []Op{get(k.meta())}})
	if err != nil {
		return known{}, err
	}
	return readMeta(a)
}

func restored(why string) error {
	return fmt.Errorf("%w: %w: %s; its numbers would repeat: see docs/etcd.md, A restored etcd", seq.ErrNotVoting, ErrRestored, why)
}
