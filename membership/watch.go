//go:build !wasip1

package membership

import "sync"

// watchQueue is how many events an observer may lag behind before they are dropped.
const watchQueue = 4096

// watcher hands events to one observer, in order, on a goroutine of its own.
type watcher struct {
	fn   func(Event)
	wake chan struct{} // holds at most one token: the queue is not empty
	quit chan struct{} // closed by stop
	once sync.Once     // closes quit

	mu    sync.Mutex // guards queue
	queue []Event
}

func newWatcher(fn func(Event)) *watcher {
	return &watcher{fn: fn, wake: make(chan struct{}, 1), quit: make(chan struct{})}
}

// push never blocks: memberlist calls it under its own lock.
func (w *watcher) push(ev Event) {
	w.mu.Lock()
	if len(w.queue) >= watchQueue {
		w.queue = []Event{{Kind: EventLagged, At: ev.At}}
	}
	w.queue = append(w.queue, ev)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *watcher) stop() { w.once.Do(func() { close(w.quit) }) }

func (w *watcher) run() {
	for {
		select {
		case <-w.quit:
			return
		case <-w.wake:
		}
		w.mu.Lock()
		batch := w.queue
		w.queue = nil
		w.mu.Unlock()
		for _, ev := range batch {
			select {
			case <-w.quit:
				return
			default:
			}
			w.fn(ev)
		}
	}
}
