// Package audit records, as JSON lines, which snowflake IDs were handed out to which caller.
//
// It guarantees that
//
//   - handing out IDs never waits for a disk. Lines that do not fit into the queue are left
//     out and counted;
//   - the files together take no more than Config says, because the oldest is removed;
//   - a line is in one file, whole, unless the machine stops in the middle of it;
//   - the lines go to the file at the configured path. A file that was moved away or deleted is
//     followed by a new one within a second;
//   - a line that could not be written is counted.
//
// It does not guarantee that every ID is recorded. A killed process loses its queue, and a full disk loses
// the lines that come meanwhile. The audit is for looking up, and no rule rests on it.
//
// What belongs here: the lines and their files. What does not: what is handed out.
package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// Defaults and limits of a Config.
const (
	DefaultBytes = 64 << 20
	DefaultFiles = 8
	MinBytes     = 64 << 10
	MaxFiles     = 1000

	queued     = 8192            // notes that wait to be written
	flushEvery = time.Second     // at most so long a line is in memory only
	flushBytes = 64 << 10        // of lines in memory
	retryAfter = 5 * time.Second // after a file that cannot be written
)

// Config says where the lines go.
type Config struct {
	Path  string // of the newest file; the older files have the suffixes .1, .2 ...
	Bytes int64  // size of one file; zero means DefaultBytes
	Files int    // number beside the newest; zero means DefaultFiles
}

// Validate returns seq.ErrBadArgument for invalid settings. A Config without a Path means no log.
func (c Config) Validate() error {
	switch {
	case c.Bytes != 0 && c.Bytes < MinBytes:
		return fmt.Errorf("%w: ID audit of %d bytes a file, expected 0 or at least %d", seq.ErrBadArgument, c.Bytes, MinBytes)
	case c.Files < 0 || c.Files > MaxFiles:
		return fmt.Errorf("%w: ID audit of %d files, expected 0 to %d", seq.ErrBadArgument, c.Files, MaxFiles)
	}
	return nil
}

// Kind says how the IDs were given out.
type Kind string

// The kinds of lines.
const (
	Issued   Kind = "issued"   // all of the line were handed out
	Lent     Kind = "lent"     // a client makes some of them by itself
	Returned Kind = "returned" // of what was lent, the client made none above last
)

// Note records the IDs of one call. Its batches are IDs of Layout.
type Note struct {
	At         time.Time
	Kind       Kind
	Agent      string // the agent's name for itself; may be empty
	Caller     string // the principal, as far as it is known
	Namespace  string
	Datacenter snowflake.Datacenter
	Worker     snowflake.Worker
	Batches    []snowflake.Batch // of Issued
	First      snowflake.ID      // of the others
	Last       snowflake.ID
}

// line is the JSON of a run of IDs.
type line struct {
	Time       string               `json:"time"`
	Kind       Kind                 `json:"kind"`
	Agent      string               `json:"agent,omitempty"`
	Caller     string               `json:"caller,omitempty"`
	Namespace  string               `json:"namespace"`
	Datacenter snowflake.Datacenter `json:"datacenter"`
	Worker     snowflake.Worker     `json:"worker"`
	First      string               `json:"first"` // inclusive, as Last: JavaScript rounds numbers of this size
	Last       string               `json:"last"`
	Stride     uint64               `json:"stride,omitempty"` // of Issued
	Count      int                  `json:"count,omitempty"`  // of Issued
}

// Log writes the files. A nil Log ignores all notes. Safe for concurrent use.
type Log struct {
	cfg     Config
	log     *slog.Logger
	queue   chan Note
	again   chan struct{} // Reopen
	written atomic.Uint64
	dropped atomic.Uint64

	file *os.File  // used by Run only, like all below; nil while it cannot be written
	held []byte    // lines in memory
	size int64     // of file, without held
	bad  time.Time // when the file failed last
}

// Open makes or continues the newest file, which only its owner may read. Run must run for
// anything to be written.
func Open(cfg Config, log *slog.Logger) (*Log, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Bytes == 0 {
		cfg.Bytes = DefaultBytes
	}
	if cfg.Files == 0 {
		cfg.Files = DefaultFiles
	}
	l := &Log{cfg: cfg, log: log, queue: make(chan Note, queued), again: make(chan struct{}, 1)}
	return l, l.open()
}

// Note takes a note if there is room. It never waits.
func (l *Log) Note(n Note) {
	if l == nil {
		return
	}
	select {
	case l.queue <- n:
	default:
		l.dropped.Add(1)
	}
}

// Reopen makes Run close the file and open its path again. It does not wait.
func (l *Log) Reopen() {
	if l == nil {
		return
	}
	select {
	case l.again <- struct{}{}:
	default: // Run is about to
	}
}

// Counts returns the lines written and the notes and lines left out since the start.
func (l *Log) Counts() (written, dropped uint64) { return l.written.Load(), l.dropped.Load() }

// Run writes until ctx ends, and then what is in the queue.
func (l *Log) Run(ctx context.Context) {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case n := <-l.queue:
			l.write(n)
		case <-tick.C:
			l.flush()
		case <-l.again:
			l.bad = time.Time{}
			l.flush()
			l.shut()
			l.ready()
		case <-ctx.Done():
			for len(l.queue) > 0 {
				l.write(<-l.queue)
			}
			l.flush()
			l.shut()
			return
		}
	}
}

// write takes the lines of a note, or counts it if there is no file.
func (l *Log) write(n Note) {
	if !l.ready() {
		l.dropped.Add(1)
		return
	}
	first := line{Time: n.At.UTC().Format(time.RFC3339Nano), Kind: n.Kind, Agent: n.Agent, Caller: n.Caller,
		Namespace: n.Namespace, Datacenter: n.Datacenter, Worker: n.Worker, First: text(n.First), Last: text(n.Last)}
	if n.Kind != Issued {
		l.put(first)
		return
	}
	for _, b := range n.Batches {
		for r := range b.Runs() {
			one := first
			one.First, one.Last, one.Stride = text(r.First), text(r.Last), uint64(r.Stride)
			one.Count = int((r.Last-r.First)/r.Stride) + 1
			l.put(one)
		}
	}
}

func text(id snowflake.ID) string { return strconv.FormatInt(int64(id), 10) }

// put holds a line until flush.
func (l *Log) put(one line) {
	b, err := json.Marshal(one)
	if err != nil {
		l.dropped.Add(1)
		return
	}
	next := int64(len(b)) + 1
	if len(l.held)+len(b) >= flushBytes || l.size+int64(len(l.held))+next > l.cfg.Bytes {
		l.flush()
	}
	if l.size+next > l.cfg.Bytes {
		l.failed(l.rotate())
	}
	l.held = append(append(l.held, b...), '\n')
}

// flush writes the lines held to the file of that name, or counts them.
func (l *Log) flush() {
	held := l.held
	l.held = held[:0]
	if !l.named() {
		l.shut()
	}
	if len(held) == 0 {
		return
	}
	if !l.ready() {
		l.dropped.Add(count(held))
		return
	}
	n, err := l.file.Write(held)
	whole := held[:bytes.LastIndexByte(held[:n], '\n')+1]
	if l.size >= 0 {
		l.size += int64(len(whole))
		if err != nil && n > len(whole) {
			err = errors.Join(err, l.file.Truncate(l.size)) // else the next line would go on in this one
		}
	}
	l.written.Add(count(whole))
	l.dropped.Add(count(held) - count(whole))
	l.failed(err)
}

func count(lines []byte) uint64 { return uint64(bytes.Count(lines, []byte{'\n'})) }

// named reports whether the open file still has its name. It was moved away or deleted
// otherwise.
func (l *Log) named() bool {
	if l.file == nil {
		return true
	}
	now, err := os.Stat(l.cfg.Path)
	open, openErr := l.file.Stat()
	if err != nil || openErr != nil || !os.SameFile(now, open) {
		return false
	}
	if now.Mode().IsRegular() {
		l.size = now.Size() // also after somebody has cut it
	}
	return true
}

// ready reports whether there is a file, and opens one if it is time to try.
func (l *Log) ready() bool {
	if l.file == nil && time.Since(l.bad) >= retryAfter {
		l.failed(l.open())
	}
	return l.file != nil
}

// rotate gives each file the next number, and begins a new one.
func (l *Log) rotate() error {
	l.shut()
	for k := l.cfg.Files; k > 0; k-- {
		from := l.cfg.Path
		if k > 1 {
			from = l.numbered(k - 1)
		}
		if err := os.Rename(from, l.numbered(k)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return l.open()
}

func (l *Log) numbered(k int) string { return l.cfg.Path + "." + strconv.Itoa(k) }

// open opens the file of that name without waiting, which matters for a pipe.
func (l *Log) open() error {
	f, err := os.OpenFile(l.cfg.Path, os.O_CREATE|os.O_WRONLY|os.O_APPEND|noWait, 0o600)
	if err != nil {
		return fmt.Errorf("ID audit: %w", err)
	}
	at, err := f.Stat()
	if err != nil {
		return errors.Join(fmt.Errorf("ID audit: %w", err), f.Close())
	}
	l.file, l.size = f, noSize
	if at.Mode().IsRegular() {
		l.size = at.Size()
	}
	return nil
}

// noSize is the size of a file that is not rotated, such as a pipe.
const noSize = math.MinInt64 / 2

// failed closes a file that cannot be written, until it is tried again.
func (l *Log) failed(err error) {
	if err == nil {
		return
	}
	l.log.Warn("IDs are handed out and not written down", "file", l.cfg.Path, "error", err, "again in", retryAfter)
	l.bad = time.Now()
	l.shut()
}

func (l *Log) shut() {
	if l.file != nil {
		_ = l.file.Close() // all was written that could be
	}
	l.file = nil
}
