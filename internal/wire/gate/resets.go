package gate

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
)

// Opened calls are remembered in steps of markEvery, for longCall.
const (
	marks     = 8
	markEvery = longCall / (marks - 2)
)

// mark is the last call that was open at a time.
type mark struct {
	stream uint32
	at     time.Time
}

// watched is a connection, above TLS, whose cancelled calls are counted.
type watched struct {
	net.Conn
	by     *cancels
	who    any // its peer
	calls  *openCalls
	served atomic.Int64 // calls that were served, up to a bound, and not set against a cancelled one
	in     frames
	out    frames

	mu     sync.Mutex // guards all below: a connection is read beside its writes
	last   uint32     // call
	marks  [marks]mark
	newest int                 // of marks
	open   map[uint32]struct{} // calls; nil once the connection is closed
}

// serves notes a call that was served.
func (w *watched) serves() {
	if w != nil && w.served.Load() < w.by.burst {
		w.served.Add(1)
	}
}

// Read implements net.Conn.
func (w *watched) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if cancelled := w.read(b[:n]); cancelled > 0 && w.cancelled(cancelled) {
		return 0, errCancels
	}
	return n, err
}

// read returns how many calls the bytes cancel that were open for less than longCall.
func (w *watched) read(b []byte) (cancelled int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var now time.Time
	w.in.scan(b, func(f frame) {
		if now.IsZero() && (f.kind == http2.FrameHeaders || f.kind == http2.FrameRSTStream) {
			now = time.Now()
		}
		switch {
		case f.kind == http2.FrameHeaders && f.stream > w.last:
			w.last = f.stream
			w.opens(f.stream)
			if m := &w.marks[w.newest]; now.Sub(m.at) < markEvery {
				m.stream = f.stream
			} else {
				w.newest = (w.newest + 1) % marks
				w.marks[w.newest] = mark{f.stream, now}
			}
		case f.kind == http2.FrameRSTStream:
			w.ends(f.stream)
			if !w.long(f.stream, now) {
				cancelled++
			}
		}
	})
	return cancelled
}

// long reports whether a call has been open for longCall, to the length of a step. Needs mu.
func (w *watched) long(stream uint32, now time.Time) bool {
	for i := range w.marks {
		if m := &w.marks[i]; stream <= m.stream && now.Sub(m.at) >= longCall+markEvery {
			return true
		}
	}
	return false
}

// Write implements net.Conn. A server resets calls that it refuses and those whose deadline has passed,
// which costs it as much; it also does after an answer that came before the end of the request.
func (w *watched) Write(b []byte) (int, error) {
	var cancelled int64
	w.mu.Lock()
	w.out.scan(b, func(f frame) {
		if f.kind == http2.FrameRSTStream || f.kind == http2.FrameHeaders && f.flags&http2.FlagHeadersEndStream != 0 {
			w.ends(f.stream)
		}
		if f.kind == http2.FrameRSTStream && f.code != http2.ErrCodeNo && !w.long(f.stream, time.Now()) {
			cancelled++
		}
	})
	w.mu.Unlock()
	if cancelled > 0 && w.cancelled(cancelled) {
		return 0, errCancels
	}
	return w.Conn.Write(b)
}

// cancelled counts cancelled calls and closes the connection if there are too many.
func (w *watched) cancelled(calls int64) (tooMany bool) {
	calls -= lower(&w.served, calls)
	if calls == 0 || !w.by.count(w.who, calls, time.Now()) {
		return false
	}
	w.by.refused.Note(rpc.RefusedCancelled, w.RemoteAddr().String())
	_ = w.Close() // its reader ends
	return true
}
