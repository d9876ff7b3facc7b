package logs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/internal/process/tracing"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

const (
	// pause before what was not won is repeated.
	pause = 20 * time.Millisecond
	// look is how often logs without requests are looked at: for ids that have
	// expired, and for stores that are behind.
	look = time.Second
	// pieces is how many copies are read with one message. One that could not be read is read
	// alone the next time: together they may be more than a message holds.
	pieces = 64
	// mostBytes is how much one message brings of several sections: no more than of the largest.
	mostBytes = exact.MaxCopy
	// ahead is by how much a caller's clock may be ahead of the owner's, of first_sent.
	ahead = 10 * time.Second
)

// Stores have the copies of the logs. quorum.Group implements it.
type Stores interface {
	Step(ctx context.Context, session seq.Session, items []quorum.StepItem) []quorum.Outcome
	Copies(ctx context.Context, session seq.Session, regs []seq.Register, rounds []uint64) []quorum.Outcome
}

// Config of Logs.
type Config struct {
	Stores  Stores
	Session seq.Session
	Clock   clock.Clock
	// StoreTime returns the latest time that the clocks of W stores have reached, false while that
	// is not known. If nil, it never is.
	StoreTime func() (time.Time, bool)
	// Lost is told that a log ended since a store promised the epoch by, or would not take
	// what the log had: the section must be given up. It is called without locks.
	Lost func(id seq.SectionID, epoch, by seq.Epoch)
	// Grow is told by how many bytes what is kept of UIDs and ids has changed; Full says why
	// no more may be kept. Both are called with a log locked.
	Grow   func(bytes int64)
	Full   func() error
	Logger *slog.Logger
	Traces *tracing.Tracer // nil: none
}

// Logs are the logs of one node. Safe for concurrent use.
type Logs struct {
	cfg Config

	mu      sync.Mutex // guards all below
	open    map[*Log]struct{}
	opening []*Log
	due     []*Log
	calls   tracing.Calls // traced ones that wait for what is due

	reader *wake.Signal // something is in opening
	sender *wake.Signal // something is in due
}

// New makes Logs; nothing is sent before Run.
func New(cfg Config) *Logs {
	return &Logs{cfg: cfg, open: map[*Log]struct{}{}, reader: wake.New(), sender: wake.New()}
}

// Run reads and sends until ctx ends.
func (l *Logs) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { l.read(ctx) })
	wg.Go(func() { l.watch(ctx) })
	for {
		select {
		case <-ctx.Done():
			wg.Wait()
			return
		case <-l.sender.C():
			l.send(ctx)
		}
	}
}

// now returns the time of sections, milliseconds since 1970. It follows the clocks of the stores,
// so that W of them take records in whatever the others show. While too few stores tell their
// clocks, it is the stores' time when the copy was read, and what has passed since by a clock that
// does not jump: zero is that time when the clock shows 0. The node's wall clock has no part in it.
func (l *Logs) now(zero int64) int64 {
	if l.cfg.StoreTime != nil {
		if t, known := l.cfg.StoreTime(); known {
			return t.UnixMilli()
		}
	}
	return zero + l.cfg.Clock.Now().Milliseconds()
}

// Open begins the log of a section under an epoch that W stores have promised; window is how
// long ids are kept. It serves once its copy was read.
func (l *Logs) Open(id seq.SectionID, epoch seq.Epoch, window time.Duration) *Log {
	g := &Log{logs: l, id: id, epoch: epoch, window: window, opened: make(chan struct{}), gathered: make(chan struct{})}
	l.mu.Lock()
	l.open[g] = struct{}{}
	l.opening = append(l.opening, g)
	l.mu.Unlock()
	l.reader.Kick()
	return g
}

// wants has a batch of the log sent, for the call that ctx belongs to.
func (l *Logs) wants(ctx context.Context, g *Log) {
	l.mu.Lock()
	l.due = append(l.due, g)
	l.calls = l.cfg.Traces.Note(l.calls, ctx)
	l.mu.Unlock()
	l.sender.Kick()
}

func (l *Logs) forget(g *Log) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, g)
}

// all are the logs that are open.
func (l *Logs) all() []*Log {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]*Log, 0, len(l.open))
	for g := range l.open {
		out = append(out, g)
	}
	return out
}

// watch looks at the logs now and then.
func (l *Logs) watch(ctx context.Context) {
	for wake.Sleep(ctx, look) {
		for _, g := range l.all() {
			if g.idle() {
				l.wants(ctx, g)
			}
		}
	}
}

// send sends the batches that are due, all in one message a store.
func (l *Logs) send(ctx context.Context) {
	l.mu.Lock()
	due, calls := l.due, l.calls
	l.due, l.calls = nil, nil
	l.mu.Unlock()
	var sent []*Log
	var items []quorum.StepItem
	size := 0
	seen := make(map[*Log]bool, len(due))
	for _, g := range due {
		if seen[g] {
			continue
		}
		seen[g] = true
		if body, ok := g.batch(); ok {
			if size += len(body); size > mostBytes && len(items) > 0 {
				l.wants(ctx, g) // with the next message
				continue
			}
			sent = append(sent, g)
			items = append(items, quorum.StepItem{Register: seq.SectionRegister(g.id), Round: g.epoch.Round, Log: body})
		}
	}
	if len(items) == 0 {
		return
	}
	ctx, span := l.cfg.Traces.Joint(ctx, "alloc.append", calls)
	span.Int("sections", len(items))
	outcomes := l.cfg.Stores.Step(ctx, l.cfg.Session, items)
	span.End(nil)
	var again []*Log
	for i, out := range outcomes {
		switch g := sent[i]; g.concluded(out) {
		case more:
			l.wants(ctx, g)
		case retry:
			again = append(again, g)
		case lost:
			l.cfg.Logger.Info("log of an exact section ended", "section", g.id, "epoch", g.epoch.String(), "error", out.Err)
			l.cfg.Lost(g.id, g.epoch, out.Promised)
		case done:
		}
	}
	l.later(ctx, again, func(g *Log) { l.wants(ctx, g) })
}

// later does something with logs after a pause.
func (l *Logs) later(ctx context.Context, again []*Log, do func(*Log)) {
	if len(again) == 0 {
		return
	}
	time.AfterFunc(pause, func() {
		for _, g := range again {
			if ctx.Err() == nil {
				do(g)
			}
		}
	})
}

// read reads the copies of logs that are to be opened.
func (l *Logs) read(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.reader.C():
		}
		l.mu.Lock()
		opening := l.opening
		l.opening = nil
		l.mu.Unlock()
		for len(opening) > 0 {
			n := 1
			for n < min(len(opening), pieces) && !opening[0].alone && !opening[n].alone {
				n++
			}
			l.readSome(ctx, opening[:n])
			opening = opening[n:]
		}
	}
}

func (l *Logs) readSome(ctx context.Context, opening []*Log) {
	regs, rounds := make([]seq.Register, len(opening)), make([]uint64, len(opening))
	for i, g := range opening {
		regs[i], rounds[i] = seq.SectionRegister(g.id), g.epoch.Round
	}
	var again []*Log
	for i, out := range l.cfg.Stores.Copies(ctx, l.cfg.Session, regs, rounds) {
		g := opening[i]
		if out.State != quorum.Won {
			if g.epoch.Less(out.Promised) {
				g.Close()
				l.cfg.Lost(g.id, g.epoch, out.Promised)
			} else if !g.ended() {
				g.alone = true
				again = append(again, g)
			}
			continue
		}
		if err := g.begin(out); err != nil {
			l.cfg.Logger.Error("the copy of an exact section cannot be served", "section", g.id, "epoch", g.epoch.String(), "error", err)
			g.Close()
			l.cfg.Lost(g.id, g.epoch, seq.Epoch{})
			continue
		}
		l.wants(ctx, g)
	}
	if len(again) > 0 {
		l.promise(ctx, again)
	}
	l.later(ctx, again, func(g *Log) {
		l.mu.Lock()
		l.opening = append(l.opening, g)
		l.mu.Unlock()
		l.reader.Kick()
	})
}

// promise tells the stores of the epochs that W of them have promised, so that another may
// be read in the place of one that is gone since.
func (l *Logs) promise(ctx context.Context, logs []*Log) {
	items := make([]quorum.StepItem, len(logs))
	for i, g := range logs {
		items[i] = quorum.StepItem{Register: seq.SectionRegister(g.id), Round: g.epoch.Round}
	}
	l.cfg.Stores.Step(ctx, l.cfg.Session, items)
}

// stateOf reads what W stores have of a section.
func stateOf(out quorum.Outcome) (*exact.State, error) {
	if len(out.Payload) == 0 {
		return nil, fmt.Errorf("%w: no copy", exact.ErrBadRecord)
	}
	in := exact.NewReader(out.Payload)
	s := in.State()
	if err := in.Err(); err != nil || in.Left() > 0 {
		return nil, errors.Join(fmt.Errorf("%w: a copy of %d bytes, %d left", exact.ErrBadRecord, len(out.Payload), in.Left()), err)
	}
	return s, nil
}
