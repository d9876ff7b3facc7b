package call

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/seqsvr/seqsvr/internal/base/watch"
	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	"github.com/seqsvr/seqsvr/seq"
)

const (
	// watchSpread is the time over which 10,000 keys or more come back after their owner went. Fewer keys come
	// back sooner.
	watchSpread = time.Second
	spreadKeys  = 10_000
	// watchPiece is the largest number of keys that come back together, and watchBytes bounds the string keys of
	// a message.
	watchPiece = 1000
	watchBytes = 512 << 10
	// watchCalls is the largest number of messages of a watch that wait for the present of their keys.
	watchCalls = 64
	// watchPause is the time until a key that no server could watch is asked for again.
	watchPause = time.Second
)

// Update tells of a watched key: its numbers, or why it is not watched.
type Update struct {
	Key               seq.Key
	Last, Mark, Fence uint64
	KnownIn           time.Duration // if not 0, the mark is not known before that time
	Err               error         // the watch asks for the key again, unless Ended
	Ended             bool
}

// Watch tells the newest numbers of its keys. It keeps one stream to each server that owns some of them. Safe for
// concurrent use.
type Watch struct {
	c      *Caller
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	calls  *semaphore.Weighted
	wake   chan struct{} // receives when there are updates
	more   chan struct{} // receives when there is something to do

	mu         sync.Mutex // guards all below
	keys       map[seq.Key]*watchedKey
	names      map[uint32]*watchedKey // as servers name them
	name       uint32                 // the next one
	head, tail *watchedKey            // with updates
	todo       []*watchedKey          // to be asked for
	streams    map[*Server]*watchStream
}

// watchedKey is a key of a Watch. Guarded by its lock.
type watchedKey struct {
	key  seq.Key
	gone bool // removed

	name uint32
	at   *watchStream // that watches it; nil if none does
	ask  *watchAsk    // that waits for its present; nil if it came

	last, mark, fence uint64
	knownIn           time.Duration
	err               error
	ended             bool

	fresh bool // in the queue of updates
	next  *watchedKey
}

// Watch returns a watch without keys.
func (c *Caller) Watch() *Watch {
	w := &Watch{c: c, calls: semaphore.NewWeighted(watchCalls), wake: make(chan struct{}, 1), more: make(chan struct{}, 1),
		keys: map[seq.Key]*watchedKey{}, names: map[uint32]*watchedKey{}, streams: map[*Server]*watchStream{}}
	w.ctx, w.cancel = context.WithCancel(c.ctx)
	c.Go(w.run)
	return w
}

// Close ends the watch.
func (w *Watch) Close() { w.cancel() }

func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// Add watches keys. Next tells the present of each key that was not watched. seq.ErrBadArgument for a key that
// cannot be, seq.ErrWatches for too many: then none is added.
func (w *Watch) Add(keys ...seq.Key) error {
	for i, key := range keys {
		if err := key.Check(); err != nil {
			return fmt.Errorf("watch: key %d: %w", i, err)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.keys) + len(keys); n > watch.MostOfWatcher {
		return fmt.Errorf("watch: %w: %d keys, expected at most %d: use several watches", seq.ErrWatches, n, watch.MostOfWatcher)
	}
	for _, key := range keys {
		if w.keys[key] != nil {
			continue
		}
		k := &watchedKey{key: key}
		w.keys[key] = k
		w.todo = append(w.todo, k)
	}
	signal(w.more)
	return nil
}

// Remove no longer watches keys. Next tells nothing of them any more.
func (w *Watch) Remove(keys ...seq.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var removed []*watchedKey
	for _, key := range keys {
		if k := w.keys[key]; k != nil {
			k.gone = true
			delete(w.keys, key)
			removed = append(removed, k)
		}
	}
	w.forget(removed, nil)
}

// leave says that a key is watched nowhere. If an attempt waits for it, its error is err. Needs w.mu.
func (w *Watch) leave(k *watchedKey, err error) {
	if k.at != nil {
		delete(w.names, k.name)
		k.at.keys--
		k.at = nil
	}
	if k.ask != nil {
		k.ask.answer(k, err)
	}
}

// tell queues an update of a key. Needs w.mu.
func (w *Watch) tell(k *watchedKey) {
	if k.fresh || k.gone && !k.ended {
		return
	}
	k.fresh = true
	if w.tail == nil {
		w.head = k
	} else {
		w.tail.next = k
	}
	w.tail = k
	signal(w.wake)
}

// Next waits for updates, and returns up to n of them. It returns each key with its newest numbers, the key that
// has waited longest first. ErrClosed after Close.
func (w *Watch) Next(ctx context.Context, n int) ([]Update, error) {
	for {
		if w.ctx.Err() != nil {
			return nil, ErrClosed
		}
		if out := w.taken(n); len(out) > 0 {
			return out, nil
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-w.ctx.Done():
		}
	}
}

func (w *Watch) taken(n int) (out []Update) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.head != nil && len(out) < n {
		k := w.head
		if w.head = k.next; w.head == nil {
			w.tail = nil
		}
		k.next, k.fresh = nil, false
		if k.gone && !k.ended {
			continue
		}
		u := Update{Key: k.key, Err: k.err, Ended: k.ended}
		if k.err == nil {
			u.Last, u.Mark, u.Fence, u.KnownIn = k.last, k.mark, k.fence, k.knownIn
		}
		out = append(out, u)
	}
	if w.head != nil {
		signal(w.wake)
	}
	return out
}

// run asks for keys that are watched nowhere.
func (w *Watch) run() {
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-w.more:
		}
		for {
			keys := w.some()
			if len(keys) == 0 {
				break
			}
			if w.calls.Acquire(w.ctx, 1) != nil {
				return
			}
			w.c.Go(func() {
				defer w.calls.Release(1)
				w.subscribe(keys)
			})
		}
	}
}

// some takes keys of one space and kind that fit a message.
func (w *Watch) some() (keys []*watchedKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	bytes, rest := 0, w.todo[:0]
	for i, k := range w.todo {
		if len(keys) == seq.MaxBatch || bytes > watchBytes {
			rest = append(rest, w.todo[i:]...)
			break
		}
		name, named := k.key.Name()
		switch {
		case k.gone || k.at != nil:
		case len(keys) > 0 && (keys[0].key.Space != k.key.Space || isNamed(keys[0].key) != named):
			rest = append(rest, k)
		default:
			keys, bytes = append(keys, k), bytes+len(name)
		}
	}
	clear(w.todo[len(rest):])
	w.todo = rest
	return keys
}

func isNamed(key seq.Key) bool {
	_, named := key.Name()
	return named
}

// later asks for keys again, a piece at a time, each after a random part of the time.
func (w *Watch) later(keys []*watchedKey, within time.Duration) {
	for piece := range slices.Chunk(keys, watchPiece) {
		time.AfterFunc(rand.N(within+time.Millisecond), func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.todo = append(w.todo, piece...)
			signal(w.more)
		})
	}
}

// again asks again for keys whose owner went.
func (w *Watch) again(keys []*watchedKey) { w.later(keys, spreadOf(len(keys))) }

// spreadOf returns the time over which so many keys come back to a new owner.
func spreadOf(keys int) time.Duration {
	return watchSpread * time.Duration(min(keys, spreadKeys)) / spreadKeys
}

// subscribe has the owners watch keys, which are of one space and kind. A key that none watches in time is told
// of, and asked for again, unless no retry cures the error.
func (w *Watch) subscribe(keys []*watchedKey) {
	var names []string
	var batch stream.Keys
	for _, k := range keys {
		if name, ok := k.key.Name(); ok {
			names = append(names, name)
		}
		batch.Places = append(batch.Places, k.key.Place())
	}
	if names != nil {
		batch = stream.KeysOf(names)
	}
	errs, err := w.c.AskOwners(w.ctx, keys[0].key.Space, batch.Places, func(ctx context.Context, a *Attempt) ([]Fault, error) {
		return w.attempt(ctx, a, batch, keys)
	})
	if err == nil && errs == nil || errors.Is(err, ErrClosed) || w.ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var again []*watchedKey
	for i, k := range keys {
		bad := err
		if errs != nil {
			bad = errs[i]
		}
		if bad == nil || k.gone || k.at != nil {
			continue
		}
		k.err = Told(fmt.Sprintf("watch %v", k.key), bad)
		if k.ended = Final(bad); k.ended {
			k.gone = true
			delete(w.keys, k.key)
		} else {
			again = append(again, k)
		}
		w.tell(k)
	}
	w.later(again, watchPause)
}
