package namespaces

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// Allotment is a range of worker ids that a Set other than the root has for good, in one namespace and
// datacenter.
type Allotment struct {
	Namespace  string               `json:"namespace"`
	Datacenter snowflake.Datacenter `json:"datacenter"`
	Cluster    string               `json:"cluster"` // the id of the Set's cluster
	First      snowflake.Worker     `json:"first"`
	Last       snowflake.Worker     `json:"last"`
	// Above is a mark in Unix milliseconds. The IDs that the root made under these worker ids have marks at
	// or below it, and the Set's IDs have marks above it. If zero, a node of the root may still use one of
	// the worker ids, so no node of the Set may.
	Above uint64 `json:"above_ms,omitempty"`
	// Number identifies the call of Reserve that made the allotment, until it is confirmed. It is 0 after
	// that, and in documents of older builds.
	Number uint64 `json:"number,omitempty"`
}

// Size returns the number of worker ids.
func (a Allotment) Size() uint64 { return uint64(a.Last-a.First) + 1 }

// String returns a text for people.
func (a Allotment) String() string {
	return fmt.Sprintf("worker ids %d to %d of namespace %q in datacenter %d", a.First, a.Last, a.Namespace, a.Datacenter)
}

// pooled reports whether the worker ids of both are in one pool.
func (a Allotment) pooled(b Allotment) bool {
	return a.Namespace == b.Namespace && a.Datacenter == b.Datacenter
}

// meets reports whether a worker id is in both.
func (a Allotment) meets(b Allotment) bool {
	return a.pooled(b) && a.First <= b.Last && b.First <= a.Last
}

// Span is a range of worker ids whose IDs begin above a mark, in Unix milliseconds.
type Span struct {
	First, Last snowflake.Worker
	Above       uint64
}

// Size returns the number of worker ids.
func (s Span) Size() uint64 { return uint64(s.Last-s.First) + 1 }

// Own lists the worker ids of one namespace and datacenter that nodes of this cluster may use, in order.
type Own []Span

// Size returns the number of worker ids.
func (o Own) Size() (n uint64) {
	for _, s := range o {
		n += s.Size()
	}
	return n
}

// Find returns the span that a worker id is in.
func (o Own) Find(w snowflake.Worker) (Span, bool) {
	for _, s := range o {
		if s.First <= w && w <= s.Last {
			return s, true
		}
	}
	return Span{}, false
}

// Less returns the spans without the worker ids of taken, which is in order.
func (o Own) Less(taken Own) (out Own) {
	for _, s := range o {
		next, whole := s.First, true
		for _, t := range taken {
			if t.Last < s.First || t.First > s.Last {
				continue
			}
			if t.First > next {
				out = append(out, Span{next, t.First - 1, s.Above})
			}
			next, whole = t.Last+1, t.Last < s.Last
		}
		if whole {
			out = append(out, Span{next, s.Last, s.Above})
		}
	}
	return out
}

// own returns the worker ids that nodes of this cluster may use: of the root, and of a cluster that is
// alone, all worker ids except the allotted ones.
func (d directory) own(l snowflake.Layout, namespace string, dc snowflake.Datacenter) (out Own) {
	for _, a := range d.of(namespace, dc) {
		if a.Above > 0 || !d.Member {
			out = append(out, Span{a.First, a.Last, a.Above})
		}
	}
	if d.Member {
		return out
	}
	return Own{{Last: l.MaxWorker()}}.Less(out)
}

// of returns the allotments out of one pool.
func (d directory) of(namespace string, dc snowflake.Datacenter) (out []Allotment) {
	for _, a := range d.Allotments {
		if a.Namespace == namespace && a.Datacenter == dc {
			out = append(out, a)
		}
	}
	return out
}

// allot adds an allotment: seq.ErrUnsafeChange if one of its worker ids is another's.
func (d directory) allot(a Allotment) (directory, error) {
	if at := slices.IndexFunc(d.Allotments, a.meets); at >= 0 {
		return d, fmt.Errorf("%w: %s: cluster %s has those %d to %d", seq.ErrUnsafeChange, a, d.Allotments[at].Cluster, d.Allotments[at].First, d.Allotments[at].Last)
	}
	d.Allotments = append(slices.Clone(d.Allotments), a)
	slices.SortFunc(d.Allotments, func(x, y Allotment) int {
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Datacenter, y.Datacenter), cmp.Compare(x.First, y.First))
	})
	return d, nil
}

// without returns the directory less one allotment.
func (d directory) without(a Allotment) directory {
	d.Allotments = slices.DeleteFunc(slices.Clone(d.Allotments), func(b Allotment) bool { return a == b })
	return d
}

// told returns the part of the directory for a cluster. It has only the cluster's own allotments that may
// be used.
func (d directory) told(cluster string) directory {
	d.Member, d.Kept = false, 0
	d.Allotments = slices.DeleteFunc(slices.Clone(d.Allotments), func(a Allotment) bool { return a.Cluster != cluster || a.Above == 0 })
	return d
}

// merge adds the contents of another directory: newer namespaces, datacenters and allotments. An allotment
// there is confirmed, and its confirmation ended all reservations that it meets. If the directories
// contradict each other, merge returns seq.ErrUnsafeChange or seq.ErrDatacenterTaken.
func (d directory) merge(other directory) (next directory, changed bool, err error) {
	next = d
	if other.Kept > d.Kept {
		next.Kept, changed = other.Kept, true
	}
	for _, ns := range other.Namespaces {
		for _, have := range next.Namespaces {
			if have.Name != ns.Name && have.meets(ns) {
				return d, false, fmt.Errorf("%w: namespace %q: alias %d belongs to %q", seq.ErrUnsafeChange, ns.Name, ns.Alias, have.Name)
			}
		}
		have, _ := next.find(ns.Name)
		if have.Version == ns.Version && have != ns {
			return d, false, fmt.Errorf("%w: namespace %q: version %d is layout %s with alias %d here, and layout %s with alias %d there", seq.ErrUnsafeChange,
				ns.Name, ns.Version, have.Layout, have.Alias, ns.Layout, ns.Alias)
		}
		if have.Version >= ns.Version {
			continue
		}
		if next, err = next.with(ns); err != nil {
			return d, false, err
		}
		changed = true
	}
	for _, dc := range other.Datacenters {
		if dc.Name == "" && slices.ContainsFunc(next.Datacenters, func(known Datacenter) bool { return known.ID == dc.ID }) {
			continue
		}
		bound := false
		if next, bound, err = next.bind(dc); err != nil {
			return d, false, err
		}
		changed = changed || bound
	}
	for _, a := range other.Allotments {
		if slices.Contains(next.Allotments, a) {
			continue
		}
		next.Allotments = slices.DeleteFunc(slices.Clone(next.Allotments), func(b Allotment) bool { return b.Above == 0 && b.meets(a) })
		if next, err = next.allot(a); err != nil {
			return d, false, err
		}
		changed = true
	}
	return next, changed, nil
}

// join returns the directory of a Set that joins: it has no namespaces but the root's. seq.ErrUnsafeChange if
// IDs were made here, which the root's could repeat.
func (d directory) join() (directory, error) {
	if d.Member {
		return d, nil
	}
	if len(d.Datacenters) > 0 {
		return d, fmt.Errorf("%w: this cluster has made global IDs, which those of the other Sets could repeat; expected one that made none", seq.ErrUnsafeChange)
	}
	return directory{Format: format, Member: true}, nil
}

// Mine returns nil if nodes of this cluster may use a worker id at present. A node that calls it after W
// stores have promised it the worker id may use the id, because an allotment is recorded before the root
// acquires the registers for it. Mine returns the errors of Record.
func (c *Catalog) Mine(ctx context.Context, ns Namespace, dc snowflake.Datacenter, w snowflake.Worker) error {
	v, err := c.Load(ctx)
	if err != nil {
		return err
	}
	if now, ok := v.find(ns.Name); ok {
		if err := now.InUse(); err != nil {
			return err
		}
		if now.Layout != ns.Layout {
			return fmt.Errorf("%w: namespace %q has changed meanwhile", seq.ErrOverloaded, ns.Name)
		}
	}
	if _, ok := v.own(ns.Layout, ns.Name, dc).Find(w); !ok {
		return fmt.Errorf("%w: worker id %d of namespace %q is another Set's", seq.ErrUnsafeChange, w, ns.Name)
	}
	if err := v.kept(c.cfg.Wall()); err != nil {
		return err
	}
	return c.settled(ctx)
}

// settled returns nil at a Set that has joined, at a cluster without other Sets, and at a root that was not
// restored. A restored root does not know what it has allotted.
func (c *Catalog) settled(ctx context.Context) error {
	if c.Member() {
		return nil
	}
	return c.cfg.Root.Settled(ctx)
}

// Own returns the worker ids of a namespace that nodes of this cluster may use, as far as this node
// knows.
func (c *Catalog) Own(ns *Namespace, dc snowflake.Datacenter) Own {
	return c.Known().own(ns.Layout, ns.Name, dc)
}

// Member reports whether the root allots the worker ids of this cluster.
func (c *Catalog) Member() bool { return c.Known().Member }

// Join makes the cluster a Set that uses the worker ids alone that the root allots.
// seq.ErrUnsafeChange if it has made IDs before.
func (c *Catalog) Join(ctx context.Context) error {
	return c.change(ctx, func(v *View) (directory, bool, error) {
		d, err := v.join()
		return d, err == nil && !v.Member, err
	})
}

// Gave reports whether a cluster has worker ids of the root, or is about to have some. It returns the
// errors of documents.Document.Load.
func (c *Catalog) Gave(ctx context.Context, cluster string) (bool, error) {
	v, err := c.Load(ctx)
	return err == nil && slices.ContainsFunc(v.Allotments, func(a Allotment) bool { return a.Cluster == cluster }), err
}

// Told returns the document that this cluster tells another. kept is 0, or until when worker ids that this cluster
// has forgotten may be in use, Unix milliseconds.
func (c *Catalog) Told(ctx context.Context, cluster string, kept uint64) ([]byte, error) {
	v, err := c.Load(ctx)
	if err == nil {
		err = c.settled(ctx)
	}
	if err != nil {
		return nil, err
	}
	d := v.told(cluster)
	d.Kept = kept
	return d.encode()
}

// Settle takes over what Sets say of the namespaces and of what they have, at a root that was
// restored. seq.ErrUnsafeChange, seq.ErrDatacenterTaken: they contradict each other.
func (c *Catalog) Settle(ctx context.Context, told [][]byte) error {
	return c.change(ctx, func(v *View) (d directory, changed bool, err error) {
		d = v.directory
		for _, body := range told {
			one, err := parseDirectory(body)
			if err != nil {
				return d, false, err
			}
			next, more, err := d.merge(one)
			if err != nil {
				return d, false, err
			}
			d, changed = next, changed || more
		}
		return d, changed, nil
	})
}

// Pool is a recorded namespace with the owners of its worker ids.
type Pool struct {
	Namespace
	Datacenter snowflake.Datacenter // in its IDs
	Own        Own                  // the root's
	Allotted   []Allotment          // to other Sets
}

// For returns the pool that a Set's wish means, recorded like Record does. For the root; errors as of
// Record.
func (c *Catalog) For(ctx context.Context, w AllotmentRequest) (p Pool, err error) {
	node := Node{Datacenter: w.Datacenter, Worker: w.Worker}
	if err := node.validate(); err != nil {
		return p, err
	}
	p.Namespace, p.Own, err = c.record(ctx, w.Namespace, node)
	if err != nil {
		return p, err
	}
	p.Datacenter = node.DatacenterIn(p.Layout)
	p.Allotted = c.Known().of(p.Name, p.Datacenter)
	return p, nil
}

// Reserve records an allotment that no node may use yet, and gives what Confirm is to end.
// seq.ErrUnsafeChange if one of the worker ids is another's.
func (c *Catalog) Reserve(ctx context.Context, a Allotment) (Allotment, error) {
	a.Above, a.Number = 0, max(1, rand.Uint64())
	return a, c.change(ctx, func(v *View) (directory, bool, error) {
		if slices.Contains(v.Allotments, a) {
			return v.directory, false, nil
		}
		d, err := v.allot(a)
		return d, true, err
	})
}

// Confirm ends the reservation of one call of Reserve, but not another reservation of the same worker ids.
// The allotment left has the worker ids that no node of the root can use any more. It is nil if there are
// none.
func (c *Catalog) Confirm(ctx context.Context, reserved Allotment, left *Allotment) error {
	return c.change(ctx, func(v *View) (d directory, changed bool, err error) {
		if !slices.Contains(v.Allotments, reserved) {
			return v.directory, false, nil // another has ended it
		}
		d = v.without(reserved)
		if left != nil {
			d, err = d.allot(*left)
		}
		return d, true, err
	})
}
