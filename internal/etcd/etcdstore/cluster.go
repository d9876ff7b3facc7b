package etcdstore

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/seqsvr/seqsvr/internal/base/version"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// cluster is what is below the prefix as a whole, and the way to it: each transaction of the
// other rooms goes through do, which finds out that etcd was put back, and each write compares
// unmoved.
type cluster struct {
	kv     KV
	keys   keys
	prefix string
	logger *slog.Logger
	boot   uint64 // etcd's revision at the opening: grows from one Store to the next

	mu   sync.Mutex // guards all below; not held over a call of KV, nor while another room is asked
	meta known
	seen int64 // highest revision of any answer
	gone error // why nothing is answered any more
}

// openCluster reads the meta: ErrNotInitialized, ErrRestored, ErrDamaged, and the errors of KV.
func openCluster(ctx context.Context, cfg Config, k keys) (*cluster, error) {
	c := &cluster{kv: cfg.KV, keys: k, prefix: cfg.Prefix, logger: cfg.Logger}
	a, err := c.kv.Do(ctx, Txn{Then: []Op{get(k.meta())}})
	if err == nil {
		c.meta, err = readMeta(a)
	}
	if err == nil {
		err = c.meta.usable(a.Cluster)
	}
	if err != nil {
		return nil, err
	}
	c.seen, c.boot = a.Revision, uint64(a.Revision)
	return c, nil
}

// usable is nil if a Store may be opened on the meta in that etcd cluster.
func (m known) usable(etcd uint64) error {
	switch {
	case m.Required > version.Protocol:
		return m.tooNew()
	case m.poison() != "":
		return restored(m.Poison)
	case m.Making:
		return fmt.Errorf("%w: its init or restore goes on or was interrupted; if so, run it again", ErrNotInitialized)
	case m.Etcd != etcd:
		return restored(fmt.Sprintf("the cluster was made in the etcd cluster %x, and this is %x", m.Etcd, etcd))
	}
	return nil
}

// identity is all of quorum.Identity but what is configured.
func (c *cluster) identity() quorum.Identity {
	c.mu.Lock()
	defer c.mu.Unlock()
	members := c.members()
	state := "voting"
	if c.gone != nil {
		state = c.gone.Error()
	}
	return quorum.Identity{
		UUID: c.meta.UUID, Name: members[0].Name, BootCount: c.boot, Ref: c.ref(), N: 1, R: 1, W: 1,
		Mapping: seq.Mapping{Spaces: c.meta.Spaces}, Members: members, Voting: c.gone == nil, State: state,
		Commits: uint64(c.seen), Floors: c.meta.Floors, Incarnation: c.meta.incarnation(), Protocol: version.Protocol, Required: c.meta.Required,
	}
}

// incarnation is drawn with the UUID, or with the era that was restored.
func (m meta) incarnation() seq.Incarnation {
	in := seq.NewIncarnation(m.Origin, m.Cluster, m.Era, []string{m.UUID})
	if m.Binding.IsZero() {
		return in
	}
	return seq.Incarnation{Cluster: cmp.Or(m.Origin, m.Binding), Era: m.Era, Binding: m.Binding}
}

func (c *cluster) uuid() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.meta.UUID
}

// floorOf is below which a register of a restored era never is.
func (c *cluster) floorOf(r seq.Register) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.meta.Floors.Of(r)
}

// spaceOf returns the space of a section.
func (c *cluster) spaceOf(id seq.SectionID) (*seq.Space, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return seq.Mapping{Spaces: c.meta.Spaces}.SpaceOf(id)
}

func (c *cluster) members() []quorum.Member {
	return []quorum.Member{{UUID: c.meta.UUID, Name: "etcd"}}
}

// ref is what callers must carry: the member list is one for ever. The caller holds mu.
func (c *cluster) ref() quorum.Ref {
	return quorum.Ref{Cluster: c.meta.Cluster, Era: c.meta.Era, Members: 1, MembersHash: quorum.MembersHash(c.members())}
}

// admit checks that the caller means this cluster.
func (c *cluster) admit(ref quorum.Ref) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	own := c.ref()
	switch {
	case ref.Cluster != own.Cluster:
		return fmt.Errorf("etcd below %s: %w: it has cluster %q, the caller is of %q", c.prefix, seq.ErrForeignCluster, own.Cluster, ref.Cluster)
	case ref != own:
		return fmt.Errorf("etcd below %s: %w: it has %+v, the caller %+v", c.prefix, seq.ErrStaleEra, own, ref)
	}
	return c.gone
}

// do runs a transaction and takes note of its revision. An answer from before what had been
// seen when it was sent is of a store that was put back.
func (c *cluster) do(ctx context.Context, t Txn) (Answer, error) {
	c.mu.Lock()
	floor, gone, etcd := c.seen, c.gone, c.meta.Etcd
	c.mu.Unlock()
	if gone != nil {
		return Answer{}, gone
	}
	a, err := c.kv.Do(ctx, t)
	switch {
	case err != nil:
		return Answer{}, err
	case a.Revision < floor:
		return Answer{}, c.poison(ctx, fmt.Sprintf("revision %d after %d", a.Revision, floor))
	case a.Cluster != etcd:
		return Answer{}, c.poison(ctx, fmt.Sprintf("etcd cluster %x in place of %x", a.Cluster, etcd))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = max(c.seen, a.Revision)
	return a, c.gone
}

// poison ends the use of the cluster, by other processes too where etcd takes the word.
func (c *cluster) poison(ctx context.Context, why string) error {
	err := restored(why)
	c.mu.Lock()
	first := c.gone == nil
	if first {
		c.gone = err
	}
	m := c.meta.meta
	c.mu.Unlock()
	if !first {
		return err
	}
	c.logger.Error("etcd was put back to an older state: nothing is written any more", "reason", why)
	there, failed := fetchMeta(ctx, c.kv, c.keys)
	if failed == nil && there.UUID == m.UUID && there.Era == m.Era && there.poison() == "" {
		there.Poison = why
		_, failed = c.kv.Do(ctx, Txn{If: []Compare{modified(c.keys.meta(), there.rev)},
			Then: []Op{put(c.keys.meta(), encode(c.keys.meta(), there.meta))}})
	}
	if failed != nil {
		c.logger.Error("other processes were not told that etcd was put back", "error", failed)
	}
	return err
}

// unmoved returns the compare that every write makes. A poisoned meta, or the meta of a later era, stops
// all writes by it.
func (c *cluster) unmoved() Compare {
	c.mu.Lock()
	defer c.mu.Unlock()
	return modified(c.keys.meta(), c.meta.rev)
}

// remeta takes in a meta that a failed compare brought, in the first result. An error says that
// nothing may be written by this Store.
func (c *cluster) remeta(ctx context.Context, a Answer) error {
	now, err := readMeta(a)
	if err != nil {
		return c.poison(ctx, "the cluster's meta is gone: "+err.Error())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case now.Required > version.Protocol:
		c.gone = now.tooNew()
	case now.poison() != "":
		c.gone = restored(now.Poison)
	case now.UUID != c.meta.UUID || now.Cluster != c.meta.Cluster:
		c.gone = fmt.Errorf("etcd below %s: %w: another cluster was made there", c.prefix, seq.ErrForeignCluster)
	case now.Era != c.meta.Era:
		c.gone = fmt.Errorf("etcd below %s: %w: era %d in place of %d", c.prefix, seq.ErrStaleEra, now.Era, c.meta.Era)
	case now.rev > c.meta.rev: // answers overtake each other
		c.meta = now
	}
	return c.gone
}
