package documents

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

const (
	// loadTimeout bounds a load that readers share.
	loadTimeout = 10 * time.Second
	// readPause is between two of them.
	readPause = 25 * time.Millisecond
	// unknownTries is how often a change is repeated whose outcome is not known.
	unknownTries = 4
)

// Stores keep compare-and-swap documents; see quorum.Group.
type Stores interface {
	LoadDocument(ctx context.Context, session seq.Session, reg seq.Register) (quorum.Document, error)
	SwapDocument(ctx context.Context, session seq.Session, reg seq.Register, old uint64, body []byte) (quorum.Document, error)
}

// Config is what a Document is made of. All is required but OnNew.
type Config[T any] struct {
	Life     context.Context // of the node: it bounds the loads that readers share
	Stores   Stores
	Session  seq.Session
	Register seq.Register
	Parse    func(body []byte) (T, error) // a body of no bytes: never written
	Encode   func(T) ([]byte, error)
	OnNew    func(T) // told of each version that is newer than all before, one call at a time
}

// Document is a document of which the body is a T; a T is never modified. Safe for
// concurrent use.
type Document[T any] struct {
	cfg   Config[T]
	known atomic.Pointer[T]

	adopting sync.Mutex // guards version, the order of known and of the calls of OnNew
	version  uint64

	mu      sync.Mutex // guards all below
	loading bool
	next    *load[T] // begins when the one under way has ended; nil: no call waits for it
}

// load is one reading, shared by all that asked before it began.
type load[T any] struct {
	done  chan struct{} // closed once the others are set
	value T
	err   error
}

// New makes a Document of which first is known.
func New[T any](cfg Config[T], first T) *Document[T] {
	d := &Document[T]{cfg: cfg}
	d.known.Store(&first)
	return d
}

// Known is the newest version that this node has seen, or what New was given. It is fast.
func (d *Document[T]) Known() T { return *d.known.Load() }

// Load reads the document as it is now. Errors are those of quorum.Group.LoadDocument, or why
// the body cannot be read.
func (d *Document[T]) Load(ctx context.Context) (T, error) {
	value, _, err := d.load(ctx)
	return value, err
}

func (d *Document[T]) load(ctx context.Context) (value T, version uint64, err error) {
	doc, err := d.cfg.Stores.LoadDocument(ctx, d.cfg.Session, d.cfg.Register)
	if err != nil {
		return value, 0, err
	}
	if value, err = d.cfg.Parse(doc.Body); err != nil {
		return value, 0, fmt.Errorf("load %s version %d: %w", d.cfg.Register, doc.Version, err)
	}
	d.adopt(value, doc.Version)
	return value, doc.Version, nil
}

func (d *Document[T]) adopt(value T, version uint64) {
	d.adopting.Lock()
	defer d.adopting.Unlock()
	if version <= d.version {
		return
	}
	d.version = version
	d.known.Store(&value)
	if d.cfg.OnNew != nil {
		d.cfg.OnNew(value)
	}
}

// Read gives the document as it is at some moment after the call, by a load that it may share
// with others. It waits for that as long as ctx lasts. Errors as of Load.
func (d *Document[T]) Read(ctx context.Context) (T, error) {
	d.mu.Lock()
	l := d.next
	if l == nil {
		l = &load[T]{done: make(chan struct{})}
		d.next = l
		if !d.loading {
			d.loading = true
			go d.loadNext()
		}
	}
	d.mu.Unlock()
	select {
	case <-l.done:
		return l.value, l.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("load %s: %w", d.cfg.Register, context.Cause(ctx))
	}
}

// loadNext loads for the readers that wait, and after a pause for those that came meanwhile.
// One that gives up does not end the load for the others.
func (d *Document[T]) loadNext() {
	d.mu.Lock()
	l := d.next
	d.next, d.loading = nil, l != nil
	d.mu.Unlock()
	if l == nil {
		return
	}
	ctx, cancel := context.WithTimeout(d.cfg.Life, loadTimeout)
	defer cancel()
	l.value, l.err = d.Load(ctx)
	close(l.done)
	time.AfterFunc(readPause, d.loadNext)
}

// Change edits the document, again from the start whenever another writer was faster, and
// returns it as it is then: what edit returned, if that says that it changed something. It
// ends with ctx. After a swap of unknown outcome edit is called with doubt: what it finds may
// be its own change. Errors are those of edit, as of Load, or quorum.ErrUnknownOutcome.
func (d *Document[T]) Change(ctx context.Context, edit func(now T, doubt bool) (next T, changed bool, err error)) (T, error) {
	doubt := false
	for tries := unknownTries; ; {
		value, version, err := d.load(ctx)
		if err != nil {
			return value, err
		}
		next, changed, err := edit(value, doubt)
		if err != nil || !changed {
			return next, err
		}
		body, err := d.cfg.Encode(next)
		if err != nil {
			return value, err
		}
		doc, err := d.cfg.Stores.SwapDocument(ctx, d.cfg.Session, d.cfg.Register, version, body)
		if err == nil {
			d.adopt(next, doc.Version)
			return next, nil
		}
		if doubt = errors.Is(err, quorum.ErrUnknownOutcome); doubt {
			tries--
		} else if !errors.Is(err, seq.ErrConflict) {
			return value, err
		}
		if tries == 0 || ctx.Err() != nil {
			return value, err
		}
	}
}
