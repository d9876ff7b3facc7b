package rpc

import (
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Frames of HTTP/2, as far as they are looked at.
const (
	frameHead    = 9 // bytes
	frameHeaders = 1
	frameReset   = 3
	endStream    = 1  // a flag of headers
	noError      = 0  // the code of a reset by a server that has answered
	preface      = 24 // bytes that a client sends before its first frame
)

// frames finds the frames in what passes a connection in one direction.
type frames struct {
	skip int // bytes that are no head
	head [frameHead + 4]byte
	have int
}

// scan calls seen for each frame whose head has come; of a reset the code belongs to it.
func (f *frames) scan(b []byte, seen func(kind, flags byte, stream, code uint32)) {
	for len(b) > 0 {
		if f.skip > 0 {
			n := min(f.skip, len(b))
			f.skip, b = f.skip-n, b[n:]
			continue
		}
		need := frameHead
		if f.have >= frameHead {
			need = len(f.head) // of a reset
		}
		n := copy(f.head[f.have:need], b)
		f.have, b = f.have+n, b[n:]
		if f.have < need {
			return
		}
		length := int(f.head[0])<<16 | int(f.head[1])<<8 | int(f.head[2])
		kind := f.head[3]
		if kind == frameReset && need == frameHead && length >= 4 {
			continue
		}
		f.skip, f.have = length-(need-frameHead), 0
		seen(kind, f.head[4], binary.BigEndian.Uint32(f.head[5:])&^(1<<31), binary.BigEndian.Uint32(f.head[frameHead:]))
	}
}

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
	w.in.scan(b, func(kind, _ byte, stream, _ uint32) {
		if now.IsZero() && (kind == frameHeaders || kind == frameReset) {
			now = time.Now()
		}
		switch {
		case kind == frameHeaders && stream > w.last:
			w.last = stream
			w.opens(stream)
			if m := &w.marks[w.newest]; now.Sub(m.at) < markEvery {
				m.stream = stream
			} else {
				w.newest = (w.newest + 1) % marks
				w.marks[w.newest] = mark{stream, now}
			}
		case kind == frameReset:
			w.ends(stream)
			if !w.long(stream, now) {
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
	w.out.scan(b, func(kind, flags byte, stream, code uint32) {
		if kind == frameReset || kind == frameHeaders && flags&endStream != 0 {
			w.ends(stream)
		}
		if kind == frameReset && code != noError && !w.long(stream, time.Now()) {
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
	w.by.refused.Note(RefusedCancelled, w.RemoteAddr().String())
	_ = w.Close() // its reader ends
	return true
}
