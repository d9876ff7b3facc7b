package namespaces

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/documents"
	"github.com/seqsvr/seqsvr/internal/wake"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

const (
	// followEvery is how often changes of the namespaces are looked for.
	followEvery = 10 * time.Second
	// followPause is after a load that failed.
	followPause = time.Second
)

// Config is what a Catalog is made of. All is required but Configured and First.
type Config struct {
	Life      context.Context // of the node
	Documents documents.Stores
	Session   seq.Session
	Node      Node
	// Configured are recorded by Follow unless they are already, and stand in place of the
	// defaults of the same name or alias until then. Version is not looked at.
	Configured []Namespace
	// First is what stands against the first use of this node's datacenter in the cluster; nil: nothing.
	First  func(context.Context) error
	OnNew  func(*View) // told of each version that is newer than all before, one call at a time
	Wall   func() time.Time
	Logger *slog.Logger
}

// Catalog is the namespaces as one node knows and changes them. What is done with a namespace
// that is known from memory is safe: a worker id is acquired under what the document says at
// that moment. Safe for concurrent use.
type Catalog struct {
	*documents.Document[*View]
	cfg    Config
	offers []Namespace
}

// New makes a Catalog that knows the offers alone. seq.ErrBadArgument, seq.ErrBadLayout.
func New(cfg Config) (*Catalog, error) {
	if cfg.Documents == nil {
		return nil, fmt.Errorf("%w: no documents", seq.ErrBadArgument)
	}
	if err := errors.Join(cfg.Node.validate(), Check(cfg.Configured)); err != nil {
		return nil, err
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

// Find gives a namespace. Before it says that there is none it has looked at the stores
// since it was asked, so that what was recorded at another node a moment ago is found:
// seq.ErrUnknownNamespace.
func (c *Catalog) Find(ctx context.Context, ref Ref) (*Namespace, error) {
	if ns := c.Known().Find(ref); ns != nil {
		return ns, nil
	}
	v, err := c.Read(ctx)
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
// returns the namespace as it is recorded. After it, neither can change in a way that could
// repeat IDs.
func (c *Catalog) Record(ctx context.Context, name string) (ns Namespace, err error) {
	if err := c.clear(ctx); err != nil {
		return ns, err
	}
	err = c.change(ctx, func(v *View) (directory, bool, error) {
		known, err := v.Named(name)
		if err != nil {
			return v.directory, false, err
		}
		d, recorded := v.directory, known.Version > 0
		if ns = *known; !recorded {
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
		if err := c.cfg.Node.Fits(ns.Layout); err != nil {
			return d, false, err // before its datacenter is bound to a name for good
		}
		d, bound, err := d.bind(c.cfg.Node.Datacenter)
		return d, !recorded || bound, err
	})
	return ns, err
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

// Put records or changes a namespace. seq.ErrConflict, seq.ErrUnsafeChange, seq.ErrBadLayout,
// seq.ErrBadArgument, seq.ErrRetired, seq.ErrTimeExhausted, or why the stores could not.
func (c *Catalog) Put(ctx context.Context, want Edit) (done Namespace, err error) {
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

// Retire has a namespace hand out nothing more, or undoes that. seq.ErrUnknownNamespace,
// seq.ErrTimeExhausted, seq.ErrBadArgument, or why the stores could not.
func (c *Catalog) Retire(ctx context.Context, ref Ref, undo bool) (done Namespace, err error) {
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

// Follow records what is configured, then loads the document now and then, and calls loaded
// with each view. It ends with ctx, or if a configured namespace or the datacenter of this
// node is recorded otherwise: seq.ErrUnsafeChange, seq.ErrTimeExhausted,
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
		v, err := c.Load(ctx)
		if err != nil {
			c.cfg.Logger.Debug("namespaces not loaded", "error", err)
			wait = followPause
			continue
		}
		if _, _, err := v.bind(c.cfg.Node.Datacenter); err != nil {
			return err
		}
		loaded(ctx, v)
	}
	return nil
}

// declare records the configured namespaces that are not recorded yet. Those that are
// stay as they are, retired ones too: a file that one node still has in an
// older version must not undo what another did. seq.ErrTimeExhausted: one is not recorded,
// and its layout has ended. seq.ErrUnsafeChange: one is recorded with a layout or an alias
// under which the same ID, or the same number, means something else.
func (c *Catalog) declare(ctx context.Context) error {
	if len(c.cfg.Configured) == 0 {
		return nil
	}
	err := c.change(ctx, func(v *View) (d directory, changed bool, err error) {
		d = v.directory
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
		have, _ := c.Known().find(want.Name)
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
	return errors.Is(err, seq.ErrUnsafeChange) || errors.Is(err, seq.ErrBadArgument) || errors.Is(err, seq.ErrTimeExhausted) || errors.Is(err, snowflake.ErrLayout)
}
