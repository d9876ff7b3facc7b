package segment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Limits of the catalogue. MaxTags keeps its document far below what a store takes.
const (
	MaxTags        = 20_000
	DefaultMinStep = 1_000
	DefaultMaxStep = 1_000_000
)

// Tag is one entry of the catalogue: 1 <= MinStep <= MaxStep <= seq.MaxStep and
// 1 <= Start <= seq.MaxSeq.
type Tag struct {
	Name    string `json:"tag"`
	MinStep uint64 `json:"min_step"` // numbers; the step's lower limit and where it starts
	MaxStep uint64 `json:"max_step"` // numbers
	Start   uint64 `json:"start"`    // no number below it is handed out; never falls
	// Retired is when the tag was retired, Unix milliseconds; 0: it is in use. A retired one
	// hands out nothing; its register stays, so that it can go on above all its numbers.
	Retired int64 `json:"retired_ms,omitempty"`
}

// inUse is nil, or a seq.ErrRetired that says since when.
func (t Tag) inUse() error {
	if t.Retired == 0 {
		return nil
	}
	return fmt.Errorf("tag %q: %w on %s", t.Name, seq.ErrRetired, time.UnixMilli(t.Retired).UTC().Format(time.RFC3339))
}

// Validate checks the formulas at the type. seq.ErrBadArgument otherwise.
func (t Tag) Validate() error {
	if err := seq.CheckTag(t.Name); err != nil {
		return err
	}
	switch {
	case t.MinStep == 0 || t.MaxStep > seq.MaxStep || t.MinStep > t.MaxStep:
		return fmt.Errorf("%w: tag %q: steps %d to %d, expected 1 <= min <= max <= %d",
			seq.ErrBadArgument, t.Name, t.MinStep, t.MaxStep, uint64(seq.MaxStep))
	case t.Start == 0 || t.Start > uint64(seq.MaxSeq):
		return fmt.Errorf("%w: tag %q: start %d, expected 1 to %d", seq.ErrBadArgument, t.Name, t.Start, uint64(seq.MaxSeq))
	}
	return nil
}

// over is the tag that t makes of an existing one: what is zero in t stays.
func (t Tag) over(old Tag, exists bool) (Tag, error) {
	if err := old.inUse(); err != nil {
		return Tag{}, err
	}
	if !exists {
		old = Tag{Name: t.Name, MinStep: DefaultMinStep, MaxStep: max(DefaultMaxStep, t.MinStep), Start: 1}
		if t.MinStep == 0 && t.MaxStep > 0 {
			old.MinStep = min(DefaultMinStep, t.MaxStep)
		}
	}
	next := old
	if t.MinStep > 0 {
		next.MinStep = t.MinStep
	}
	if t.MaxStep > 0 {
		next.MaxStep = t.MaxStep
	}
	if t.Start > 0 {
		next.Start = t.Start
	}
	if next.Start < old.Start {
		return Tag{}, fmt.Errorf("%w: tag %q: start %d, expected at least %d, which it was", seq.ErrBadArgument, t.Name, next.Start, old.Start)
	}
	return next, next.Validate()
}

// tags is the catalogue of one version of the document. Immutable.
type tags struct {
	version uint64
	byName  map[string]Tag
}

// document is the body of seq.TagsRegister.
type document struct {
	Tags []Tag `json:"tags"` // by name
}

func (t *tags) list() []Tag {
	return slices.SortedFunc(maps.Values(t.byName), func(a, b Tag) int { return strings.Compare(a.Name, b.Name) })
}

// with is the body of the document with one entry put in.
func (t *tags) with(entry Tag) ([]byte, error) {
	next := &tags{byName: maps.Clone(t.byName)}
	next.byName[entry.Name] = entry
	if len(next.byName) > MaxTags {
		return nil, fmt.Errorf("%w: %d tags exist, expected at most %d", seq.ErrBadArgument, len(t.byName), MaxTags)
	}
	body, err := json.Marshal(document{Tags: next.list()})
	if err != nil {
		return nil, fmt.Errorf("encode tags: %w", err)
	}
	return body, nil
}

func parseTags(doc quorum.Document) (*tags, error) {
	t := &tags{version: doc.Version, byName: map[string]Tag{}}
	if len(doc.Body) == 0 {
		return t, nil
	}
	var d document
	if err := json.Unmarshal(doc.Body, &d); err != nil {
		return nil, fmt.Errorf("decode tags of version %d: %w", doc.Version, err)
	}
	for _, entry := range d.Tags {
		if err := entry.Validate(); err != nil {
			return nil, fmt.Errorf("decode tags of version %d: %w", doc.Version, err)
		}
		t.byName[entry.Name] = entry
	}
	return t, nil
}

// Documents are compare-and-swap documents on the stores; see quorum.Group.
type Documents interface {
	LoadDocument(ctx context.Context, session seq.Session, reg seq.Register) (quorum.Document, error)
	SwapDocument(ctx context.Context, session seq.Session, reg seq.Register, old uint64, body []byte) (quorum.Document, error)
}

// catalog is the catalogue as this node knows it. Tags are never removed from it: a
// tag that is known here is known for ever.
type catalog struct {
	life    context.Context // of the service: bounds loads
	docs    Documents
	session seq.Session
	current atomic.Pointer[tags] // nil before the first load
	onNew   func(*tags)          // told of each newer version, one call at a time

	adopting sync.Mutex // guards the order of current and of the calls of onNew

	mu      sync.Mutex // guards loading and waiting
	loading bool
	// waiting is the load that begins when the one under way has ended: whoever
	// asks now must see what was written before he asked.
	waiting *load
}

// loadTimeout bounds one reading of the document.
const loadTimeout = 10 * time.Second

// load is one reading of the document, shared by all that asked before it began.
type load struct {
	done chan struct{}
	tags *tags // valid once done is closed
	err  error
}

// find is a tag by name; a name that is not known here is looked up in the stores.
// seq.ErrUnknownTag if it is not known there either.
func (c *catalog) find(ctx context.Context, name string) (Tag, error) {
	if t := c.current.Load(); t != nil {
		if entry, ok := t.byName[name]; ok {
			return entry, nil
		}
	}
	t, err := c.read(ctx)
	if err != nil {
		return Tag{}, err
	}
	if entry, ok := t.byName[name]; ok {
		return entry, nil
	}
	return Tag{}, fmt.Errorf("%w: %q", seq.ErrUnknownTag, name)
}

// read gives the catalogue as it is at some moment after the call. Any number of
// callers make at most one load at a time, so that unknown names do no harm.
func (c *catalog) read(ctx context.Context) (*tags, error) {
	c.mu.Lock()
	l := c.waiting
	if l == nil {
		l = &load{done: make(chan struct{})}
		c.waiting = l
		if !c.loading {
			c.loading = true
			go c.loadAll()
		}
	}
	c.mu.Unlock()
	select {
	case <-l.done:
		return l.tags, l.err
	case <-ctx.Done():
		return nil, fmt.Errorf("load tags: %w", context.Cause(ctx))
	}
}

// loadAll loads until nobody waits any more. A caller that gives up does not end the
// load for the others; the document's own rounds are bounded.
func (c *catalog) loadAll() {
	for {
		c.mu.Lock()
		l := c.waiting
		c.waiting = nil
		if l == nil {
			c.loading = false
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		ctx, cancel := context.WithTimeout(c.life, loadTimeout)
		l.tags, l.err = c.load(ctx)
		cancel()
		close(l.done)
	}
}

func (c *catalog) load(ctx context.Context) (*tags, error) {
	doc, err := c.docs.LoadDocument(ctx, c.session, seq.TagsRegister)
	if err != nil {
		return nil, fmt.Errorf("load tags: %w", err)
	}
	t, err := parseTags(doc)
	if err != nil {
		return nil, err
	}
	c.adopt(t)
	return t, nil
}

func (c *catalog) adopt(t *tags) {
	c.adopting.Lock()
	defer c.adopting.Unlock()
	if old := c.current.Load(); old != nil && old.version >= t.version {
		return
	}
	c.current.Store(t)
	c.onNew(t)
}

// apply gives a tag its newest entry. In one lock with adopt, so that an older entry
// never follows a newer one.
func (c *catalog) apply(tag *cell) {
	c.adopting.Lock()
	defer c.adopting.Unlock()
	if t := c.current.Load(); t != nil {
		if entry, ok := t.byName[tag.name]; ok {
			tag.limit(entry)
		}
	}
}

// put creates a tag or alters one.
func (c *catalog) put(ctx context.Context, want Tag) (entry Tag, created bool, err error) {
	return c.change(ctx, want.Name, want.over)
}

// retire has a tag hand out nothing from the moment on, or undoes that: now is 0.
func (c *catalog) retire(ctx context.Context, name string, now int64) (Tag, error) {
	entry, _, err := c.change(ctx, name, func(old Tag, exists bool) (Tag, error) {
		if !exists {
			return Tag{}, fmt.Errorf("%w: %q", seq.ErrUnknownTag, name)
		}
		if old.Retired == 0 || now == 0 { // a retired one keeps its moment
			old.Retired = now
		}
		return old, nil
	})
	return entry, err
}

// change writes one entry, as often as another writer is faster. Writing the same entry
// twice changes nothing, so an outcome that is not known is settled by trying again.
func (c *catalog) change(ctx context.Context, name string, edit func(old Tag, exists bool) (Tag, error)) (entry Tag, created bool, err error) {
	if err := seq.CheckTag(name); err != nil {
		return Tag{}, false, err
	}
	for {
		t, err := c.load(ctx)
		if err != nil {
			return Tag{}, false, err
		}
		old, exists := t.byName[name]
		next, err := edit(old, exists)
		if err != nil {
			return Tag{}, false, err
		}
		if exists && next == old {
			return next, created, nil
		}
		body, err := t.with(next)
		if err != nil {
			return Tag{}, false, err
		}
		created = created || !exists
		doc, err := c.docs.SwapDocument(ctx, c.session, seq.TagsRegister, t.version, body)
		switch {
		case err == nil:
			if t, err = parseTags(quorum.Document{Version: doc.Version, Body: body}); err == nil {
				c.adopt(t)
			}
			return next, created, err
		case errors.Is(err, seq.ErrConflict):
			created = false // whatever is there now, this call did not make it
			continue
		case errors.Is(err, quorum.ErrUnknownOutcome) && !errors.Is(err, seq.ErrNoQuorum) && ctx.Err() == nil:
			continue
		}
		return Tag{}, false, fmt.Errorf("put tag %q: %w", name, err)
	}
}
