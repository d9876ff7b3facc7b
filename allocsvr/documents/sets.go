package documents

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// ErrNotRoot means that the map can be changed and loaded only at the root Set. The error says where the
// root is.
var ErrNotRoot = fmt.Errorf("%w: this is not the root Set", seq.ErrBadArgument)

// lookEvery is the time between two regular reads of the documents.
const lookEvery = 5 * time.Second

// SetsAtStart holds the documents as they were read before the node began.
type SetsAtStart struct {
	Record sets.Record
	Map    sets.Map // except at the root, the newest map that a node of this Set has read
}

// SetsConfig holds the parts of Sets. All fields except Root and OnRecord are required.
type SetsConfig struct {
	Life    context.Context
	Stores  Stores
	Session seq.Session
	First   SetsAtStart // as it was read before anything was served
	// Root reads the map at a node of the root Set. It returns the zero Map if the map is not newer than
	// newerThan. If nil, the map is not read.
	Root func(ctx context.Context, addr string, newerThan uint64) (sets.Map, error)
	// OnRecord is called with each newer Record. It must not block.
	OnRecord func(sets.Record)
	Logger   *slog.Logger
}

// Sets is the knowledge that a node has of the Sets. It has two documents: the Record of its own Set, kept at
// its stores, and the Map of all Sets, which the root Set keeps. Package sets has the rules of both.
//
// The known versions may be old. A node decides by Load, after the register was promised, whether it may
// serve a section. Known and Map serve answers to callers, and the choice of sections not to bid for.
//
// Safe for concurrent use.
type Sets struct {
	cfg    SetsConfig
	record *Document[sets.Record]
	own    *Document[sets.Map]      // at the root; elsewhere what the nodes have heard of it
	told   atomic.Pointer[sets.Map] // elsewhere: the newest that this node has heard
	look   *wake.Signal
}

// NewSets makes Sets that know the Record given.
func NewSets(cfg SetsConfig) *Sets {
	d := &Sets{cfg: cfg, look: wake.New()}
	d.record = New(Config[sets.Record]{Life: cfg.Life, Stores: cfg.Stores, Session: cfg.Session,
		Register: seq.RecordRegister, Parse: sets.ParseRecord, Encode: sets.Record.Encode, OnNew: cfg.OnRecord}, cfg.First.Record)
	d.own = New(Config[sets.Map]{Life: cfg.Life, Stores: cfg.Stores, Session: cfg.Session,
		Register: seq.SetsRegister, Parse: sets.ParseMap, Encode: sets.Map.Encode}, cfg.First.Map)
	d.told.Store(&sets.Map{})
	return d
}

// ReadSets reads the documents of a cluster before there is a node.
func ReadSets(ctx context.Context, stores Stores, session seq.Session) (first SetsAtStart, err error) {
	d := NewSets(SetsConfig{Life: ctx, Stores: stores, Session: session, Logger: slog.New(slog.DiscardHandler)})
	if first.Record, err = d.Load(ctx); err != nil {
		return first, err
	}
	if first.Map, err = d.own.Load(ctx); errors.Is(err, seq.ErrUnknownRegister) {
		err = nil
	}
	return first, err
}

// Known returns the newest Record that this node has seen.
func (d *Sets) Known() sets.Record { return d.record.Known() }

// Load reads the present Record. It returns the errors of Document.Load. Stores of a build that does not
// know Sets have no Record, so the cluster has no other Sets.
func (d *Sets) Load(ctx context.Context) (sets.Record, error) {
	r, err := d.record.Load(ctx)
	if errors.Is(err, seq.ErrUnknownRegister) {
		return d.Known(), nil
	}
	return r, err
}

// Step takes a step with sections, unless it was taken. It returns the errors of sets.Record.Apply and
// Document.Change.
func (d *Sets) Step(ctx context.Context, s sets.Step, ranges []sets.Range) (sets.Record, error) {
	r, err := d.record.Change(ctx, func(now sets.Record, _ bool) (sets.Record, bool, error) { return now.Apply(s, ranges) })
	return r, upgrade(err)
}

// Join makes the cluster a Set, without sections, of the root in another cluster. It calls before once the
// Record is known to allow that. It returns the errors of before, sets.Record.Join and Document.Change.
func (d *Sets) Join(ctx context.Context, name string, root []string, rootCluster string, before func(context.Context) error) (sets.Record, error) {
	r, err := d.record.Load(ctx)
	if err == nil {
		_, _, err = r.Join(name, root, rootCluster)
	}
	if err == nil {
		err = before(ctx)
	}
	if err != nil {
		return r, upgrade(err)
	}
	r, err = d.record.Change(ctx, func(now sets.Record, _ bool) (sets.Record, bool, error) { return now.Join(name, root, rootCluster) })
	return r, upgrade(err)
}

// Found gives the name of a root Set to a cluster without Sets. From then on its backups are backups of one
// Set of several.
func (d *Sets) Found(ctx context.Context, name string) error {
	_, err := d.record.Change(ctx, func(now sets.Record, _ bool) (sets.Record, bool, error) {
		if !now.IsRoot() || now.Name != "" && now.Name != name {
			return now, false, fmt.Errorf("%w: it is Set %s already", seq.ErrConflict, now.SetName())
		}
		next := now
		next.Name = name
		return next, now.Name == "", nil
	})
	return upgrade(err)
}

// Map returns the newest map that this node has seen; the zero Map if there is one Set.
func (d *Sets) Map() sets.Map {
	own, told := d.own.Known(), *d.told.Load()
	if d.Known().IsRoot() || own.Version >= told.Version {
		return own
	}
	return told
}

// LoadMap reads the present map. It returns ErrNotRoot or the errors of Document.Load.
func (d *Sets) LoadMap(ctx context.Context) (sets.Map, error) {
	if err := d.atRoot(); err != nil {
		return sets.Map{}, err
	}
	m, err := d.own.Load(ctx)
	return m, upgrade(err)
}

// ChangeMap changes the map. It returns ErrNotRoot, or the errors of edit and Document.Change. It may call edit again
// after the change was written, and edit must then find that.
func (d *Sets) ChangeMap(ctx context.Context, edit func(sets.Map) (sets.Map, bool, error)) (sets.Map, error) {
	if err := d.atRoot(); err != nil {
		return sets.Map{}, err
	}
	m, err := d.own.Change(ctx, func(now sets.Map, _ bool) (sets.Map, bool, error) { return edit(now) })
	return m, upgrade(err)
}

func (d *Sets) atRoot() error {
	if r := d.Known(); !r.IsRoot() {
		return fmt.Errorf("%w: Set %s, ask %v", ErrNotRoot, r.SetName(), r.Root)
	}
	return nil
}

// Look has Run look at the documents soon: something was heard that is newer.
func (d *Sets) Look() { d.look.Kick() }

// Run looks at the documents now and then until ctx ends.
func (d *Sets) Run(ctx context.Context) {
	unheard := false // by the root, at the last look
	for first := true; first || d.look.Wait(ctx, lookEvery); first = false {
		r, err := d.Load(ctx)
		if err == nil && r.IsRoot() {
			_, err = d.own.Load(ctx)
		} else if err == nil {
			err = d.ask(ctx, r.Root)
			if err != nil && !unheard && ctx.Err() == nil {
				d.cfg.Logger.Warn("the root Set does not tell the map; callers are sent on by an older one", "root", r.Root, "error", err)
			}
			unheard = err != nil
			err = errors.Join(err, d.keep(ctx))
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, seq.ErrUnknownRegister) {
			d.cfg.Logger.Debug("documents of the Sets not read", "error", err)
		}
	}
}

// ask reads the map at the first of the root's nodes that answers.
func (d *Sets) ask(ctx context.Context, addrs []string) error {
	if d.cfg.Root == nil {
		return nil
	}
	var errs []error
	for _, addr := range addrs {
		m, err := d.cfg.Root(ctx, addr, d.Map().Version)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		// The map of a backup may lack a Set that this one has heard of: settling the root asks for it.
		if held := d.Map().Version; m.Version > held && (!m.Restored || held == 0) {
			d.told.Store(&m)
		}
		return nil
	}
	return errors.Join(errs...)
}

// keep records what was heard at this Set's own stores, so that nodes which start while the root
// is dead know of the other Sets.
func (d *Sets) keep(ctx context.Context) error {
	heard := *d.told.Load()
	if heard.Version <= d.own.Known().Version {
		return nil
	}
	heard.Heard = true
	_, err := d.own.Change(ctx, func(now sets.Map, _ bool) (sets.Map, bool, error) {
		if now.Version >= heard.Version {
			return now, false, nil
		}
		return heard, true, nil
	})
	return err
}
