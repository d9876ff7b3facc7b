package watch

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/seqsvr/seqsvr/seq"
)

// Limits on the watched keys. A watched key takes some 100 bytes.
const (
	// MostOfNode is the largest number of watched keys of a node, each counted once for each watcher.
	MostOfNode = 1 << 22
	// MostOfWatcher is the largest number of keys of one watcher.
	MostOfWatcher = 1 << 20
)

// Stats counts the watches of a node and limits them. Safe for concurrent use. The zero value is ready to use.
type Stats struct {
	Watchers, Keys atomic.Int64  // now
	Told           atomic.Uint64 // values that watchers were told
	Refused        atomic.Uint64 // keys that were refused because there were too many
}

// Entry is a key of a watcher.
type Entry[K comparable] struct {
	Key K
	// ID is the watcher's name for the key. Guarded by the lock of the Keys.
	ID     uint32
	gone   bool // guarded by the lock of the Keys
	marked bool // guarded by the lock of the watcher, as all below

	of            *Keys[K]
	by            *Watcher[K]
	next          *Entry[K] // of the same key; guarded by the lock of the Keys
	before, after *Entry[K] // of the watcher
	queue         *Entry[K] // the next one that is marked
}

// Of returns the Keys that the entry is in.
func (e *Entry[K]) Of() *Keys[K] { return e.of }

// Gone reports whether the key is not watched any more. Needs the lock of the Keys.
func (e *Entry[K]) Gone() bool { return e.gone }

// Keys are watched keys under one lock, such as all of one section.
type Keys[K comparable] struct {
	// ID is the owner's name for the Keys.
	ID   uint32
	lock sync.Locker
	of   map[K]*Entry[K]
	// free is called with each key that has lost its last watcher, under the lock.
	free func(K)
}

// NewKeys returns Keys under the lock. free is called with each key that has lost its last watcher. It may be
// nil.
func NewKeys[K comparable](id uint32, lock sync.Locker, free func(K)) *Keys[K] {
	return &Keys[K]{ID: id, lock: lock, of: make(map[K]*Entry[K]), free: free}
}

// Len returns the number of watched keys. Needs the lock.
func (k *Keys[K]) Len() int { return len(k.of) }

// Watched reports whether the key has a watcher. Needs the lock.
func (k *Keys[K]) Watched(key K) bool { return k.of[key] != nil }

// Watchers returns the number of watchers of a key. Needs the lock.
func (k *Keys[K]) Watchers(key K) (n int) {
	for e := k.of[key]; e != nil; e = e.next {
		n++
	}
	return n
}

// Mark marks a key as changed for its watchers. Needs the lock.
func (k *Keys[K]) Mark(key K) {
	for e := k.of[key]; e != nil; e = e.next {
		e.by.mark(e)
	}
}

// MarkAll marks all keys as changed. Needs the lock.
func (k *Keys[K]) MarkAll() {
	for _, e := range k.of {
		for ; e != nil; e = e.next {
			e.by.mark(e)
		}
	}
}

// Add has a watcher watch a key under the ID, and marks the key. A key that is watched already gets the new ID.
// seq.ErrWatches. Needs the lock.
func (k *Keys[K]) Add(w *Watcher[K], key K, id uint32) error {
	for e := k.of[key]; e != nil; e = e.next {
		if e.by == w {
			e.ID = id
			w.mark(e)
			return nil
		}
	}
	e := &Entry[K]{Key: key, ID: id, of: k, by: w, next: k.of[key]}
	if err := w.add(e); err != nil {
		return err
	}
	k.of[key] = e
	w.mark(e)
	return nil
}

// Remove ends the watch of a key. Needs the lock.
func (k *Keys[K]) Remove(w *Watcher[K], key K) {
	for e := k.of[key]; e != nil; e = e.next {
		if e.by == w {
			k.Drop(e)
			return
		}
	}
}

// Drop is Remove of an entry. It does nothing if the entry is gone. Needs the lock.
func (k *Keys[K]) Drop(e *Entry[K]) {
	if e.gone {
		return
	}
	e.gone = true
	at := k.of[e.Key]
	switch {
	case at == e && e.next == nil:
		delete(k.of, e.Key)
	case at == e:
		k.of[e.Key] = e.next
	default:
		for at.next != e {
			at = at.next
		}
		at.next = e.next
	}
	e.next = nil
	e.by.remove(e)
	if k.free != nil && k.of[e.Key] == nil {
		k.free(e.Key)
	}
}

// Watcher watches keys. Safe for concurrent use. Make it with NewWatcher, and Close it.
type Watcher[K comparable] struct {
	stats *Stats
	wake  chan struct{}

	mu         sync.Mutex // guards all below; taken under the lock of Keys
	first      *Entry[K]
	head, tail *Entry[K] // that are marked
	keys       int       // with those that are gone and still marked
	closed     bool
}

// NewWatcher returns a watcher without keys.
func NewWatcher[K comparable](stats *Stats) *Watcher[K] {
	stats.Watchers.Add(1)
	return &Watcher[K]{stats: stats, wake: make(chan struct{}, 1)}
}

// Changed receives after a key was marked.
func (w *Watcher[K]) Changed() <-chan struct{} { return w.wake }

// add takes an entry in.
func (w *Watcher[K]) add(e *Entry[K]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return fmt.Errorf("%w: the watch has ended", seq.ErrWatches)
	}
	if w.keys >= MostOfWatcher {
		w.stats.Refused.Add(1)
		return fmt.Errorf("%w: this watch has %d keys, expected less than %d: use several watches", seq.ErrWatches, w.keys, MostOfWatcher)
	}
	if n := w.stats.Keys.Add(1); n > MostOfNode {
		w.stats.Keys.Add(-1)
		w.stats.Refused.Add(1)
		return fmt.Errorf("%w: %d keys are watched at this node, expected less than %d", seq.ErrWatches, n-1, MostOfNode)
	}
	w.keys++
	if e.after = w.first; w.first != nil {
		w.first.before = e
	}
	w.first = e
	return nil
}

// mark queues an entry.
func (w *Watcher[K]) mark(e *Entry[K]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.marked {
		return
	}
	e.marked = true
	if w.tail == nil {
		w.head = e
	} else {
		w.tail.queue = e
	}
	w.tail = e
	if w.head == e {
		w.signal()
	}
}

func (w *Watcher[K]) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// remove takes an entry out. One that is marked stays in the queue, and counts, until it is taken.
func (w *Watcher[K]) remove(e *Entry[K]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.before == nil {
		w.first = e.after
	} else {
		e.before.after = e.after
	}
	if e.after != nil {
		e.after.before = e.before
	}
	e.before, e.after = nil, e // out: after is itself
	if !e.marked {
		w.uncount()
	}
}

func (w *Watcher[K]) uncount() {
	w.keys--
	w.stats.Keys.Add(-1)
}

// Take appends up to n keys that are marked, the longest marked first, and clears their marks. If more are left,
// Changed receives.
func (w *Watcher[K]) Take(into []*Entry[K], n int) []*Entry[K] {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ; n > 0 && w.head != nil; n-- {
		e := w.head
		if w.head = e.queue; w.head == nil {
			w.tail = nil
		}
		e.queue, e.marked = nil, false
		if e.after == e { // removed
			w.uncount()
			continue
		}
		into = append(into, e)
	}
	if w.head != nil {
		w.signal()
	}
	return into
}

// Keys returns the number of keys.
func (w *Watcher[K]) Keys() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.keys
}

// Close ends the watch of all keys. It must not be called under the lock of Keys.
func (w *Watcher[K]) Close() {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return
	}
	w.closed = true
	w.mu.Unlock()
	for {
		w.mu.Lock()
		e := w.first
		w.mu.Unlock()
		if e == nil {
			break
		}
		e.of.lock.Lock()
		e.of.Drop(e)
		e.of.lock.Unlock()
	}
	w.Take(nil, MostOfWatcher)
	w.stats.Watchers.Add(-1)
}
