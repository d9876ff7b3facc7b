package namespaces

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/documents"
	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/seq"
)

const (
	// followEvery is the time between two looks for changes of the namespaces.
	followEvery = 10 * time.Second
	// FollowedWithin bounds the time after which a Set that reaches the root, or a node of an older build,
	// uses a change.
	FollowedWithin = followEvery + time.Second
	// followPause is the pause after a load that failed.
	followPause = time.Second
)

// Config holds the parts of a Catalog. All fields except Configured, First and Root are required.
type Config struct {
	Life      context.Context // of the node
	Documents documents.Stores
	Session   seq.Session
	Node      Node
	// Configured are recorded by Follow, unless they are recorded already. Until then they replace the
	// defaults of the same name or alias. Their Version is ignored.
	Configured []Namespace
	// First returns an error against the first use of a datacenter by this node or, at the root, by another
	// Set. If nil, every use is allowed.
	First  func(context.Context, Datacenter) error
	OnNew  func(*View) // called with each newer version, one call at a time
	Root   Root        // if nil, the cluster has no other Sets
	Wall   func() time.Time
	Logger *slog.Logger
}

// Root calls the root Set, and knows where it is.
type Root interface {
	// Elsewhere returns nil if this cluster is the root or has no other Sets. Otherwise the error says
	// where the root is.
	Elsewhere() error
	// Ask asks the root, and returns the result of Catalog.Told there.
	Ask(context.Context, AllotmentRequest) ([]byte, error)
	// Settled returns an error if this is the root and its map of Sets is from a backup.
	Settled(context.Context) error
	// Name returns the name of a cluster's Set, or "" if it is not known.
	Name(cluster string) string
}

// Alone is the Root of a cluster that is no Set.
type Alone struct{}

// Elsewhere implements Root.
func (Alone) Elsewhere() error { return nil }

// Settled implements Root.
func (Alone) Settled(context.Context) error { return nil }

// Name implements Root.
func (Alone) Name(string) string { return "" }

// Ask implements Root.
func (Alone) Ask(context.Context, AllotmentRequest) ([]byte, error) {
	return nil, fmt.Errorf("%w: this cluster is alone, and has no root Set to ask", seq.ErrBadArgument)
}

// Catalog holds the namespaces as one node knows them, and changes them. A node may act on a namespace from
// memory, because a worker id is acquired under the document of that moment. Safe for concurrent use.
type Catalog struct {
	*documents.Document[*View]
	cfg    Config
	offers []Namespace

	heard sync.Map // *heard by the namespace that the root was asked about
}

// New makes a Catalog that knows the offers alone. seq.ErrBadArgument, seq.ErrBadLayout.
func New(cfg Config) (*Catalog, error) {
	if cfg.Documents == nil {
		return nil, fmt.Errorf("%w: no documents", seq.ErrBadArgument)
	}
	if err := errors.Join(cfg.Node.validate(), Check(cfg.Configured)); err != nil {
		return nil, err
	}
	if cfg.Root == nil {
		cfg.Root = Alone{}
	}
	c := &Catalog{cfg: cfg, offers: append(slices.Clone(cfg.Configured), defaults()...)}
	c.Document = documents.New(documents.Config[*View]{
		Life: cfg.Life, Stores: cfg.Documents, Session: cfg.Session, Register: seq.NamespacesRegister, OnNew: cfg.OnNew,
		Parse: func(body []byte) (*View, error) {
			d, err := parseDirectory(body)
			return newView(d, c.offers), err
		},
		Encode: func(v *View) ([]byte, error) { return v.directory.encode() },
	}, newView(directory{Format: format}, c.offers))
	return c, nil
}

// Find returns a namespace. Before it returns seq.ErrUnknownNamespace, it looks at the stores. So it finds
// a namespace that another node recorded a moment ago. In a Set other than the root, it must also have
// asked the root less than a second before.
func (c *Catalog) Find(ctx context.Context, ref Ref) (*Namespace, error) {
	if ns := c.Known().Find(ref); ns != nil {
		return ns, nil
	}
	v, err := c.Read(ctx)
	if err == nil && c.cfg.Root.Elsewhere() != nil && v.Find(ref) == nil {
		if err = c.hear(ctx, AllotmentRequest{}, func() bool { return c.Known().Find(ref) != nil }); err == nil {
			v = c.Known()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("find namespace: %w", err)
	}
	if ns := v.Find(ref); ns != nil {
		return ns, nil
	}
	return nil, ref.normal().unknown()
}

// Record makes sure that the document has the namespace, as it is offered if no node
// recorded it, that it is in use, and that this node's datacenter is bound to its name. It
// returns the namespace as it is recorded, and the worker ids of it that this cluster may use. After
// it, neither can change in a way that could repeat IDs. A Set other than the root has all of that
// from the root, which it asks for what it does not know yet.
func (c *Catalog) Record(ctx context.Context, name string) (ns Namespace, own Own, err error) {
	ns, own, err = c.record(ctx, name, c.cfg.Node)
	if errors.Is(err, errAsk) {
		w := AllotmentRequest{Namespace: name, Datacenter: c.cfg.Node.Datacenter, Worker: c.cfg.Node.Worker}
		if err = c.hear(ctx, w, func() bool { return !c.Known().lacks(name, c.cfg.Node) }); err == nil {
			ns, own, err = c.record(ctx, name, c.cfg.Node)
		}
		if errors.Is(err, errAsk) {
			err = fmt.Errorf("%w: the root Set has allotted none to this one", seq.ErrWorkersExhausted)
		}
	}
	return ns, own, err
}

// record is Record for a node of this cluster, or, at the root, of another Set. errAsk: at a Set
// other than the root, which does not know it yet.
func (c *Catalog) record(ctx context.Context, name string, node Node) (ns Namespace, own Own, err error) {
	if err := c.clear(ctx, node.Datacenter); err != nil {
		return ns, nil, err
	}
	if err := c.writes(ctx); err != nil {
		return ns, nil, err
	}
	err = c.change(ctx, func(v *View) (d directory, changed bool, err error) {
		if d = v.directory; c.cfg.Root.Elsewhere() != nil {
			if d, err = d.join(); err != nil {
				return d, false, err
			}
			v = newView(d, c.offers) // v, unless v is older than the Record
		}
		if err := d.kept(c.cfg.Wall()); err != nil {
			return d, false, err
		}
		known, err := v.Named(name)
		if err != nil {
			return d, false, err
		}
		recorded := known.Version > 0
		if ns = *known; !recorded && !d.Member {
			if err := ns.lasts(c.cfg.Wall()); err != nil {
				return d, false, err
			}
			if d, ns, err = d.put(ns, 0); err != nil {
				return d, false, err
			}
		}
		if err := ns.InUse(); err != nil {
			return d, false, err
		}
		if err := node.Fits(ns.Layout); err != nil {
			return d, false, err // before its datacenter is bound to a name for good
		}
		bound := false
		if d, bound, err = d.bind(node.Datacenter); err != nil {
			return d, false, err
		}
		if d.Member && v.lacks(name, node) {
			return v.directory, false, errAsk
		}
		own = d.own(ns.Layout, ns.Name, node.DatacenterIn(ns.Layout))
		return d, !recorded || bound, nil
	})
	return ns, own, err
}

// change changes the document. edit may be repeated.
func (c *Catalog) change(ctx context.Context, edit func(*View) (directory, bool, error)) error {
	_, err := c.Change(ctx, func(v *View, _ bool) (*View, bool, error) {
		d, changed, err := edit(v)
		if err != nil || !changed {
			return v, false, err
		}
		return newView(d, c.offers), true, nil
	})
	return err
}

// Put records or changes a namespace, at the root. seq.ErrConflict, seq.ErrUnsafeChange,
// seq.ErrBadLayout, seq.ErrBadArgument, seq.ErrRetired, seq.ErrTimeExhausted, or why the stores could
// not.
func (c *Catalog) Put(ctx context.Context, want Edit) (done Namespace, err error) {
	if err := c.changeable(ctx); err != nil {
		return done, err
	}
	err = c.change(ctx, func(v *View) (directory, bool, error) {
		var old Namespace
		if known := v.byName[want.Name]; known != nil {
			old = *known
		}
		// A try of which the outcome was not known may have been made: the version
		// tells, since each has one content.
		if old.Version == want.Version+1 && done == old {
			return v.directory, false, nil
		}
		ns, err := want.over(old)
		if err == nil && old.Retired == 0 {
			err = ns.lasts(c.cfg.Wall())
		}
		if err != nil {
			return v.directory, false, err
		}
		d, ns, err := v.directory.put(ns, want.Version)
		if err == nil {
			done = ns
		}
		return d, true, err
	})
	if err != nil {
		return Namespace{}, err
	}
	return done, nil
}

// Retire has a namespace hand out nothing more, or undoes that, at the root. seq.ErrUnknownNamespace,
// seq.ErrTimeExhausted, seq.ErrBadArgument, or why the stores could not.
func (c *Catalog) Retire(ctx context.Context, ref Ref, undo bool) (done Namespace, err error) {
	if err := c.changeable(ctx); err != nil {
		return done, err
	}
	now := c.cfg.Wall()
	err = c.change(ctx, func(v *View) (next directory, changed bool, err error) {
		next, done, changed, err = v.retire(ref, now, undo)
		return next, changed, err
	})
	if err != nil {
		return Namespace{}, err
	}
	return done, nil
}

// writes returns an error if this is the root and was restored. Before a restored root records anything, it
// must have heard what the other Sets know.
func (c *Catalog) writes(ctx context.Context) error {
	if c.cfg.Root.Elsewhere() != nil {
		return nil // the root's are the only ones
	}
	return c.settled(ctx)
}

// changeable returns nil if the namespaces can be changed here, which is so at the root once it is settled.
func (c *Catalog) changeable(ctx context.Context) error {
	if err := c.cfg.Root.Elsewhere(); err != nil {
		return err
	}
	return c.cfg.Root.Settled(ctx)
}

// Follow records what is configured, then loads the document now and then, and calls loaded
// with each view. A Set asks for worker ids ahead of need. It ends with ctx, or if a configured namespace or the datacenter of this
// node is recorded otherwise: seq.ErrUnsafeChange, seq.ErrTimeExhausted, seq.ErrBadLayout,
// seq.ErrDatacenterTaken.
func (c *Catalog) Follow(ctx context.Context, loaded func(context.Context, *View)) error {
	idle := wake.New() // never raised
	declared := false
	for wait := time.Duration(0); idle.Wait(ctx, wait); {
		wait = followEvery
		if !declared {
			err := c.declare(ctx)
			if err != nil && hopeless(err) {
				return err
			}
			if declared = err == nil; !declared {
				c.cfg.Logger.Debug("configured namespaces not recorded", "error", err)
				wait = followPause
			}
		}
		v, err := c.Newest(ctx)
		if err != nil {
			c.cfg.Logger.Debug("namespaces not loaded", "error", err)
			wait = followPause
			continue
		}
		if _, _, err := v.bind(c.cfg.Node.Datacenter); err != nil {
			return err
		}
		loaded(ctx, v)
		if !c.askAhead(ctx, v) {
			wait = followPause
		}
	}
	return nil
}

// declare records the configured namespaces that are not recorded yet. Those that are
// stay as they are, retired ones too: a file that one node still has in an
// older version must not undo what another did. seq.ErrTimeExhausted, seq.ErrBadLayout: one is not recorded,
// and its layout has ended, or not begun. seq.ErrUnsafeChange: one is recorded with a layout or an alias
// under which the same ID, or the same number, means something else.
func (c *Catalog) declare(ctx context.Context) error {
	if len(c.cfg.Configured) == 0 {
		return nil
	}
	if err := c.writes(ctx); err != nil {
		return err
	}
	err := c.change(ctx, func(v *View) (d directory, changed bool, err error) {
		d = v.directory
		if v.Member || c.cfg.Root.Elsewhere() != nil {
			return d, false, nil // the root's are the only ones
		}
		for _, want := range c.cfg.Configured {
			if have, recorded := d.find(want.Name); recorded {
				err = want.agrees(have)
			} else if err = want.lasts(c.cfg.Wall()); err == nil {
				d, _, err = d.put(want, 0)
				changed = true
			}
			if err != nil {
				return d, false, fmt.Errorf("configured %w", err)
			}
		}
		return d, changed, nil
	})
	if err != nil {
		return err
	}
	for _, want := range c.cfg.Configured {
		have, recorded := c.Known().find(want.Name)
		if !recorded {
			continue
		}
		if err := have.InUse(); err != nil {
			c.cfg.Logger.Warn("configured namespace stays retired; seqctl namespace retire --undo brings it back", "namespace", have.Name, "error", err)
		} else if have.Layout != want.Layout || have.Alias != want.Alias {
			c.cfg.Logger.Warn("namespace is recorded otherwise than it is configured, and stays so", "namespace", have.Name,
				"alias", have.Alias, "layout", have.Layout.String(), "version", have.Version)
		}
	}
	return nil
}

// hopeless says that a configured namespace will not be recorded by trying again.
func hopeless(err error) bool {
	return errors.Is(err, seq.ErrUnsafeChange) || errors.Is(err, seq.ErrBadArgument) || errors.Is(err, seq.ErrTimeExhausted) || errors.Is(err, seq.ErrBadLayout)
}
