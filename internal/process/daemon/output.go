package daemon

import (
	"bytes"
	"io"
	"log/slog"
	"sync"
	"time"
)

// Bounds of an Output.
const (
	outputBytes = 1 << 20     // that wait to be written, while as many may be under way
	lastWords   = time.Second // the longest wait of Close
)

// Output writes to a log that may not be read. Write never waits: the lines go into a
// bounded queue, and a goroutine writes them. Lines that find no room in the queue and
// lines that cannot be written are dropped and counted. Safe for concurrent use.
type Output struct {
	to   io.Writer
	wake chan struct{} // of size 1: there is something to do
	done chan struct{} // closed when run has ended

	mu      sync.Mutex // guards all below
	queue   []byte
	closed  bool
	dropped uint64      // lines, since the start
	told    uint64      // of dropped, those that a line of the log speaks of
	note    slogHandler // makes that line; nil before a logger was made
}

// slogHandler returns a handler that writes to w in the format of the log.
type slogHandler func(w io.Writer) slog.Handler

// NewOutput starts the goroutine that writes to w. Close ends it.
func NewOutput(w io.Writer) *Output {
	o := &Output{to: w, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go o.run()
	return o
}

// Write queues the text, which ends with a line, or drops it. The error is always nil.
func (o *Output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || len(o.queue)+len(text) > outputBytes {
		o.dropped += lines(text)
		return len(text), nil
	}
	o.queue = append(o.queue, text...)
	o.kick()
	return len(text), nil
}

// Dropped returns the number of lines that were dropped since the start.
func (o *Output) Dropped() uint64 {
	if o == nil {
		return 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.dropped
}

// Close writes the lines that are queued, for a second at most: a reader that hangs must
// not keep the process from its end. Lines that come later are dropped.
func (o *Output) Close() {
	o.mu.Lock()
	o.closed = true
	o.kick()
	o.mu.Unlock()
	select {
	case <-o.done:
	case <-time.After(lastWords):
	}
}

func (o *Output) kick() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// run writes until Close.
func (o *Output) run() {
	defer close(o.done)
	var batch []byte
	for range o.wake {
		for {
			var closed bool
			o.mu.Lock()
			batch, o.queue = o.queue, batch[:0]
			closed = o.closed
			o.mu.Unlock()
			if len(batch) == 0 && closed {
				return
			}
			if len(batch) == 0 {
				break
			}
			if o.put(batch) {
				o.tell()
			}
		}
	}
}

// put writes whole lines, counts those that could not be written, and reports whether all
// were.
func (o *Output) put(text []byte) bool {
	n, err := o.to.Write(text)
	if err == nil {
		return true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dropped += lines(text[min(max(n, 0), len(text)):])
	return false
}

// tell writes how many lines are missing, where some are that no line has told of yet.
func (o *Output) tell() {
	o.mu.Lock()
	missing, note := o.dropped-o.told, o.note
	o.mu.Unlock()
	if missing == 0 || note == nil {
		return
	}
	var line bytes.Buffer
	slog.New(note(&line)).Warn("lines of this log were dropped, it was not read or could not be written", "lines", missing)
	if _, err := o.to.Write(line.Bytes()); err == nil {
		o.mu.Lock()
		o.told += missing
		o.mu.Unlock()
	}
}

func (o *Output) setNote(note slogHandler) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.note = note
}

// lines returns the number of lines in the text, the last one perhaps without its end.
func lines(text []byte) uint64 {
	n := bytes.Count(text, []byte("\n"))
	if len(text) > 0 && text[len(text)-1] != '\n' {
		n++
	}
	return uint64(n)
}
