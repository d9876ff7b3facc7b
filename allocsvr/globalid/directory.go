package globalid

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

const (
	// followEvery is how often changes of the namespaces are looked for.
	followEvery = 10 * time.Second
	// reloadPause is between two looks for a name that is not known, so that a flood of
	// wrong names does not become one of reads: those who ask meanwhile share the next.
	reloadPause = 25 * time.Millisecond
	// followPause is after a load that failed.
	followPause = time.Second
	// recordTries is how often a change of the document is repeated when others change
	// it at the same moment.
	recordTries = 16
)

// view is what this node knows of the namespaces: the document as it was loaded last,
// and what is offered beside it. Immutable. Generation rests on it only for finding an
// issuer; a worker id is acquired under what the document says at that moment.
type view struct {
	directory directory
	version   uint64        // of the document
	loaded    bool          // it was, at all
	at        time.Duration // on the clock: what was recorded before is in it
	names     map[string]*issuer
	aliases   map[uint32]*issuer
	spaces    map[string]Namespace
}

// find gives the issuer of a namespace, nil if there is none such.
func (v *view) find(ref Ref) *issuer {
	ref = ref.normal()
	i := v.names[ref.Name]
	if ref.Name == "" {
		i = v.aliases[ref.Alias]
	}
	if i == nil || !ref.matches(v.spaces[i.name]) {
		return nil
	}
	return i
}

// show makes a directory the node's view, unless a newer one is.
func (s *Service) show(d directory, version uint64, at time.Duration, loaded bool) {
	next := &view{directory: d, version: version, loaded: loaded, at: at,
		names: map[string]*issuer{}, aliases: map[uint32]*issuer{}, spaces: map[string]Namespace{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.view.Load(); old != nil && old.loaded && old.version > version {
		return
	}
	for _, ns := range d.all(s.offers) {
		i := s.issuers[ns.Name]
		if i == nil {
			i = &issuer{name: ns.Name}
			s.issuers[ns.Name] = i
		}
		next.names[ns.Name], next.spaces[ns.Name] = i, ns
		if ns.Alias != 0 {
			next.aliases[ns.Alias] = i
		}
	}
	s.view.Store(next)
}

// load reads the document.
func (s *Service) load(ctx context.Context) (directory, uint64, error) {
	at := s.cfg.Clock.Now()
	doc, err := s.cfg.Documents.LoadDocument(ctx, s.cfg.Holder.Session, seq.NamespacesRegister)
	if err != nil {
		return directory{}, 0, err
	}
	d, err := parseDirectory(doc.Body)
	if err != nil {
		return directory{}, 0, fmt.Errorf("load %s version %d: %w", seq.NamespacesRegister, doc.Version, err)
	}
	s.show(d, doc.Version, at, true)
	return d, doc.Version, nil
}

// find gives the issuer of a namespace. Before it says that there is none it has looked
// at the stores since it was asked, so that what was recorded at another node a moment
// ago is found: seq.ErrUnknownNamespace.
func (s *Service) find(ctx context.Context, ref Ref) (*issuer, error) {
	if i := s.view.Load().find(ref); i != nil {
		return i, nil
	}
	asked := s.cfg.Clock.Now()
	select {
	case s.reload <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("find namespace: %w: %w", ref.normal().unknown(), ctx.Err())
	}
	defer func() { <-s.reload }()
	if v := s.view.Load(); !v.loaded || v.at < asked {
		if wait := v.at + reloadPause - asked; v.loaded && wait > 0 {
			pause(ctx, wait)
		}
		if _, _, err := s.load(ctx); err != nil {
			return nil, fmt.Errorf("find namespace: %w", err)
		}
	}
	if i := s.view.Load().find(ref); i != nil {
		return i, nil
	}
	return nil, ref.normal().unknown()
}

// record makes sure that the document has the namespace, as it is offered if nobody
// recorded it, that it is in use, and that this node's datacenter is bound to its name. It
// returns the namespace as it is recorded. After it, neither can change in a way that could
// repeat IDs.
func (s *Service) record(ctx context.Context, name string) (Namespace, error) {
	var ns Namespace
	_, err := s.change(ctx, func(d directory) (directory, bool, error) {
		var err error
		var recorded, changed, bound bool
		if ns, recorded = d.find(name); !recorded {
			if ns, err = s.offered(d, name); err == nil {
				err = ns.lasts(s.cfg.Wall())
			}
			if err != nil {
				return d, false, err
			}
			if d, ns, err = d.put(ns, 0); err != nil {
				return d, false, err
			}
			changed = true
		}
		if err := ns.inUse(); err != nil {
			return d, false, err
		}
		if err := s.cfg.fits(ns.Layout); err != nil {
			return d, false, err // before its datacenter is bound to a name for good
		}
		d, bound, err = d.bind(Datacenter{ID: s.cfg.DatacenterID, Name: s.cfg.Datacenter})
		return d, changed || bound, err
	})
	return ns, err
}

// offered is the offer of that name that nothing recorded stands against.
func (s *Service) offered(d directory, name string) (Namespace, error) {
	for _, ns := range d.all(s.offers) {
		if ns.Name == name {
			return ns, nil
		}
	}
	return Namespace{}, Ref{Name: name}.unknown()
}

// change changes the document by compare-and-swap, again from the start whenever
// somebody else did, and returns it as it is then. If edit changes nothing, nothing is
// written. It may be repeated: edits are.
func (s *Service) change(ctx context.Context, edit func(directory) (directory, bool, error)) (directory, error) {
	var last error
	for range recordTries {
		d, version, err := s.load(ctx)
		if err != nil {
			return d, err
		}
		next, changed, err := edit(d)
		if err != nil || !changed {
			return next, err
		}
		body, err := next.encode()
		if err != nil {
			return d, err
		}
		at := s.cfg.Clock.Now()
		doc, err := s.cfg.Documents.SwapDocument(ctx, s.cfg.Holder.Session, seq.NamespacesRegister, version, body)
		switch {
		case err == nil:
			s.show(next, doc.Version, at, true)
			return next, nil
		case errors.Is(err, seq.ErrConflict), errors.Is(err, quorum.ErrUnknownOutcome):
			last = err
		default:
			return d, err
		}
	}
	return directory{}, fmt.Errorf("%w: %d times: %w", seq.ErrConflict, recordTries, last)
}

// follow records what is configured, then loads the document now and then. It ends with
// ctx, or if a configured namespace or the datacenter of this node is recorded otherwise.
func (s *Service) follow(ctx context.Context) error {
	declared := false
	for wait := time.Duration(0); pause(ctx, wait); {
		wait = followEvery
		if !declared {
			err := s.declare(ctx)
			if err != nil && hopeless(err) {
				return fmt.Errorf("snowflake endpoint: %w", err)
			}
			if declared = err == nil; !declared {
				s.log.Debug("configured namespaces not recorded", "error", err)
				wait = followPause
			}
		}
		d, _, err := s.load(ctx)
		if err != nil {
			s.log.Debug("namespaces not loaded", "error", err)
			wait = followPause
			continue
		}
		if _, _, err := d.bind(Datacenter{ID: s.cfg.DatacenterID, Name: s.cfg.Datacenter}); err != nil {
			return fmt.Errorf("snowflake endpoint: %w", err)
		}
		for _, l := range s.leases() {
			if ns, ok := d.find(l.ns.Name); ok {
				s.adopt(l, ns)
				s.warnEnd(l.issuer, ns)
			}
			s.watch(ctx, l)
		}
	}
	return nil
}

// adopt gives up a lease whose layout or policy has changed, or whose namespace is
// retired; the next request acquires one under the new, or is refused. The old one's IDs
// stay apart from the new one's by its mark.
func (s *Service) adopt(l *lease, ns Namespace) {
	if ns.Layout == l.ns.Layout && ns.Retired == 0 || !s.giveUp(l) {
		return
	}
	s.log.Info("layout changed or namespace retired", "retired", ns.Retired != 0, "namespace", ns.Name, "from", l.ns.Layout.String(), "to", ns.Layout.String())
	s.spawn(func(ctx context.Context) {
		item := quorum.LeaseItem{Register: l.register, Round: l.round}
		if err := s.cfg.Holder.Release(ctx, []quorum.LeaseItem{item}, 0); err != nil {
			s.log.Debug("worker id not released", "worker", l.worker, "error", err)
		}
	})
}

// edited is what somebody wants a namespace to be. Empty fields keep what it is, or
// what is offered.
type edited struct {
	name                       string
	alias                      uint32
	layout, overflow, rollback string
	version                    uint64 // that it has now; 0: not recorded
}

// over is the namespace with the edits. seq.ErrBadLayout.
func (e edited) over(old Namespace) (Namespace, error) {
	ns := old
	ns.Name = e.name
	if e.alias != 0 {
		ns.Alias = e.alias
	}
	var err error
	if e.layout != "" {
		if ns.Layout, err = parseLayout(e.layout); err != nil {
			return ns, err
		}
	}
	p := ns.Layout.Policy()
	if e.overflow != "" {
		if p.Overflow, err = snowflake.ParseOverflow(e.overflow); err != nil {
			return ns, reading.name(err)
		}
	}
	if e.rollback != "" {
		if p.Rollback, p.RollbackWait, err = snowflake.ParseRollback(e.rollback); err != nil {
			return ns, reading.name(err)
		}
	}
	ns.Layout = ns.Layout.WithPolicy(p)
	return ns, nil
}

// put records or changes a namespace.
func (s *Service) put(ctx context.Context, want edited) (Namespace, error) {
	var done Namespace
	d, err := s.change(ctx, func(d directory) (directory, bool, error) {
		// A try of which the outcome was not known may have been made: the version
		// tells, since each has one content.
		if old, ok := d.find(want.name); ok && old.Version == want.version+1 && done == old {
			return d, false, nil
		}
		old, _ := d.find(want.name)
		if offer, err := s.offered(d, want.name); err == nil {
			old = offer
		}
		ns, err := want.over(old)
		if err == nil && old.Retired == 0 {
			err = ns.lasts(s.cfg.Wall())
		}
		if err != nil {
			return d, false, err
		}
		d, ns, err = d.put(ns, want.version)
		if err == nil {
			done = ns
		}
		return d, err == nil, err
	})
	if err != nil {
		return Namespace{}, err
	}
	s.adoptAll(d)
	return done, nil
}

// retire has a namespace hand out nothing more, or undoes that.
func (s *Service) retire(ctx context.Context, ref Ref, undo bool) (Namespace, error) {
	var done Namespace
	now := s.cfg.Wall()
	d, err := s.change(ctx, func(d directory) (next directory, changed bool, err error) {
		next, done, changed, err = d.retire(s.offers, ref, now, undo)
		return next, changed, err
	})
	if err != nil {
		return Namespace{}, err
	}
	s.adoptAll(d)
	return done, nil
}

// adoptAll has every lease follow what is recorded of its namespace.
func (s *Service) adoptAll(d directory) {
	for _, l := range s.leases() {
		if ns, ok := d.find(l.ns.Name); ok {
			s.adopt(l, ns)
		}
	}
}
