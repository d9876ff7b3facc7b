package documents

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

const (
	// loadTimeout bounds a load that readers share.
	loadTimeout = 10 * time.Second
	// readPause is the pause between two shared loads.
	readPause = 25 * time.Millisecond
	// unknownTries bounds the tries of a change whose outcomes are unknown because W stores do not answer.
	unknownTries = 4
	// changePause bounds the random pause before a change is tried again. A pause grows up to it, because
	// writers that meet once would meet again.
	changePause = 100 * time.Millisecond
)

// Stores keep compare-and-swap documents; see quorum.Group.
type Stores interface {
	LoadDocument(ctx context.Context, session seq.Session, reg seq.Register) (quorum.Document, error)
	SwapDocument(ctx context.Context, session seq.Session, reg seq.Register, old uint64, body []byte) (quorum.Document, error)
}

// Config holds the parts of a Document. All fields except OnNew are required.
type Config[T any] struct {
	Life     context.Context // of the node: it bounds the loads that readers share
	Stores   Stores
	Session  seq.Session
	Register seq.Register
	Parse    func(body []byte) (T, error) // an empty body means that the document was never written
	Encode   func(T) ([]byte, error)
	OnNew    func(T) // called with each newer version, one call at a time
}

// Document is a document with a body of type T. A T is never modified. Safe for concurrent use.
type Document[T any] struct {
	cfg   Config[T]
	known atomic.Pointer[T]

	adopting sync.Mutex // guards version, the order of known and of the calls of OnNew
	version  uint64

	mu      sync.Mutex // guards all below
	loading bool
	next    *load[T] // begins when the present load has ended; nil if no call waits for it
}

// load is one read, shared by all calls that asked before it began.
type load[T any] struct {
	done  chan struct{} // closed once the others are set
	value T
	err   error
}

// New makes a Document whose known version is first.
func New[T any](cfg Config[T], first T) *Document[T] {
	d := &Document[T]{cfg: cfg}
	d.known.Store(&first)
	return d
}

// Known returns the newest version that this node has seen, at first the argument of New. It does not
// block.
func (d *Document[T]) Known() T { return *d.known.Load() }

// Load reads the present version of the document. It returns the errors of quorum.Group.LoadDocument, or an
// error if the body cannot be parsed.
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

// Read returns a version of the document that was current after the call began. Its load may be shared with
// other calls. Read waits as long as ctx lasts, and returns the errors of Load.
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

// loadNext loads for the waiting readers, and after a pause for readers that came meanwhile. A reader that
// gives up does not end the load for the others.
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

// Change edits the document and returns the new version. If another writer was faster, it calls edit again
// with the newer version, until ctx ends. If edit reports no change, nothing is written. After a swap of
// unknown outcome, edit is called with doubt, because now may contain its own change. Change returns the
// errors of edit and Load, the error of ctx, or quorum.ErrUnknownOutcome if the change may have been made.
func (d *Document[T]) Change(ctx context.Context, edit func(now T, doubt bool) (next T, changed bool, err error)) (T, error) {
	var unknown error // of a swap before
	tries := unknownTries
	for attempt := 0; ; attempt++ {
		value, version, err := d.load(ctx)
		if err != nil {
			return value, unsure(unknown, err)
		}
		next, changed, err := edit(value, unknown != nil)
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
		switch {
		case errors.Is(err, quorum.ErrUnknownOutcome):
			unknown = err
			if errors.Is(err, seq.ErrNoQuorum) {
				tries--
			}
		case !errors.Is(err, seq.ErrConflict):
			return value, unsure(unknown, err)
		}
		if tries == 0 {
			return value, err
		}
		if !wake.Sleep(ctx, 1+rand.N(min(changePause, time.Millisecond<<min(attempt, 16)))) {
			return value, unsure(unknown, fmt.Errorf("change %s: %w: other writers were faster %d times", d.cfg.Register, context.Cause(ctx), attempt+1))
		}
	}
}

// unsure returns err, or a quorum.ErrUnknownOutcome if a swap before may have made the change.
func unsure(unknown, err error) error {
	if unknown == nil || errors.Is(err, quorum.ErrUnknownOutcome) {
		return err
	}
	return fmt.Errorf("%w, then: %w", unknown, err)
}

// upgrade says what to do about stores that have no such document.
func upgrade(err error) error {
	if errors.Is(err, seq.ErrUnknownRegister) {
		return fmt.Errorf("%w: upgrade the stores first", err)
	}
	return err
}
