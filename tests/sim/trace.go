package sim

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// trace keeps what happened, for people. It is made into text only after the run: doing
// so earlier would use up randomness and memory of the runtime, and a run that is watched
// would be another one.
type trace struct {
	on    bool
	begin time.Time
	mu    sync.Mutex // guards all below
	kept  []entry
}

// entry is something that happened. Its arguments do not change any more.
type entry struct {
	at     time.Duration
	format string
	args   []any
	record *slog.Record // of a log, by the host in args[0]
	more   []slog.Attr  // of its logger
}

// maxTrace bounds the memory of a trace.
const maxTrace = 600_000

func (t *trace) add(format string, args ...any) {
	if t.on {
		t.keep(entry{format: format, args: args})
	}
}

func (t *trace) keep(e entry) {
	e.at = time.Since(t.begin)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.kept) < maxTrace {
		t.kept = append(t.kept, e)
	}
}

// lines are the last so many entries as text.
func (t *trace) lines(most int) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := t.kept[max(0, len(t.kept)-most):]
	out := make([]string, len(last))
	for i, e := range last {
		out[i] = e.String()
	}
	return out
}

// String is the entry in one line.
func (e entry) String() string {
	head := fmt.Sprintf("%12.6f  ", e.at.Seconds())
	if e.record == nil {
		return head + fmt.Sprintf(e.format, e.args...)
	}
	var b bytes.Buffer
	text := slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}}).WithAttrs(e.more)
	if err := text.Handle(context.Background(), *e.record); err != nil {
		return head + err.Error()
	}
	return head + fmt.Sprintf("%-8s log %s", e.args[0], bytes.TrimSpace(b.Bytes()))
}

// keeper is a slog.Handler that keeps records as they are.
type keeper struct {
	t    *trace
	host string
	more []slog.Attr
}

// Enabled implements slog.Handler.
func (k keeper) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (k keeper) Handle(_ context.Context, r slog.Record) error {
	r = r.Clone()
	k.t.keep(entry{args: []any{k.host}, record: &r, more: k.more})
	return nil
}

// WithAttrs implements slog.Handler.
func (k keeper) WithAttrs(attrs []slog.Attr) slog.Handler {
	k.more = append(k.more[:len(k.more):len(k.more)], attrs...)
	return k
}

// WithGroup implements slog.Handler; nothing here uses groups.
func (k keeper) WithGroup(string) slog.Handler { return k }
