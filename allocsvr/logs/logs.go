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
	// pause is the pause before a failed message is repeated.
	pause = 20 * time.Millisecond
	// look is the time between two looks at logs without requests. A look finds ids that have expired, and
	// stores that are behind.
	look = time.Second
	// pieces bounds the copies that are read with one message. Together they may be more than a message
	// holds, so a copy that could not be read is read alone the next time.
	pieces = 64
	// mostBytes bounds the records of several sections in one message. It is the size of the largest
	// section.
	mostBytes = exact.MaxCopy
	// messages bounds the messages that are under way at a time, of different sections. A second one leaves only
	// with few requests: many are cheaper together, once the first has its answers.
	messages = 2
	few      = 64
	// ahead bounds how far a first_sent by a caller's clock may be ahead of the owner's clock.
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
	// StoreTime returns the latest time that the clocks of W stores have reached. It returns false if the
	// time is not known. If StoreTime is nil, the time is never known.
	StoreTime func() (time.Time, bool)
	// Began is called when a log has read its copy, before it serves. It must only read the owner.
	Began func(id seq.SectionID, epoch seq.Epoch, o *exact.Owner)
	// Lost is called when a log ends because a store has promised the epoch by, or refuses the records of
	// the log. The section must be given up. Lost is called without locks.
	Lost func(id seq.SectionID, epoch, by seq.Epoch)
	// Grow is called with the change in the bytes kept for UIDs and ids. Full returns an error if a
	// section may keep no more. Both are called with a log locked.
	Grow   func(bytes int64)
	Full   func(id seq.SectionID) error
	Logger *slog.Logger
	Traces *tracing.Tracer // if nil, tracing is off
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

// New makes Logs. They send nothing before Run.
func New(cfg Config) *Logs {
	return &Logs{cfg: cfg, open: map[*Log]struct{}{}, reader: wake.New(), sender: wake.New()}
}

// Run reads and sends until ctx ends.
func (l *Logs) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { l.read(ctx) })
	wg.Go(func() { l.watch(ctx) })
	under := make(chan struct{}, messages)
	for {
		select {
		case <-ctx.Done():
			wg.Wait()
			return
		case <-l.sender.C():
			if len(under) > 0 && l.waiting() > few {
				continue // until that message has its answers
			}
			under <- struct{}{}
			wg.Go(func() {
				l.send(ctx)
				<-under
				if l.waiting() > 0 {
					l.sender.Kick()
				}
			})
		}
	}
}

// Instant is the time at which the requests of a batch are asked. The first of them reads it, because a reading
// costs as much as a request. The zero value is ready to use, by one goroutine.
type Instant struct {
	read  bool
	store int64 // the stores' time in milliseconds since 1970, or 0 if it is not known
	clock int64 // Config.Clock in milliseconds, if store is 0
}

// now returns the time of sections at an instant, in milliseconds since 1970. It follows the clocks of the
// stores, so that W of them accept records whatever the other stores' clocks show. While too few stores report
// their clocks, it adds the time since the copy was read, by a clock that does not jump, to the stores' time at
// that read: zero is the stores' time when that clock shows 0. The node's wall clock plays no part.
func (l *Logs) now(zero int64, at *Instant) int64 {
	if !at.read {
		*at = l.instant()
	}
	if at.store != 0 {
		return at.store
	}
	return zero + at.clock
}

func (l *Logs) instant() Instant {
	if l.cfg.StoreTime != nil {
		if t, known := l.cfg.StoreTime(); known {
			return Instant{read: true, store: t.UnixMilli()}
		}
	}
	return Instant{read: true, clock: l.cfg.Clock.Now().Milliseconds()}
}

// Open begins the log of a section under an epoch that W stores have promised. The log keeps ids for
// window, and serves once its copy was read.
func (l *Logs) Open(id seq.SectionID, epoch seq.Epoch, window time.Duration) *Log {
	g := &Log{logs: l, id: id, epoch: epoch, window: window, opened: make(chan struct{}), gathered: make(chan struct{})}
	l.mu.Lock()
	l.open[g] = struct{}{}
	l.opening = append(l.opening, g)
	l.mu.Unlock()
	l.reader.Kick()
	return g
}

// wants makes the sender send a batch of the log, for the call of ctx.
func (l *Logs) wants(ctx context.Context, g *Log) {
	l.mu.Lock()
	l.due = append(l.due, g)
	l.calls = l.cfg.Traces.Note(l.calls, ctx)
	l.mu.Unlock()
	l.sender.Kick()
}

// waiting returns how many requests wait for a message.
func (l *Logs) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.due)
}

func (l *Logs) forget(g *Log) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, g)
}

// all returns the open logs.
func (l *Logs) all() []*Log {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]*Log, 0, len(l.open))
	for g := range l.open {
		out = append(out, g)
	}
	return out
}

// watch looks at the logs from time to time.
func (l *Logs) watch(ctx context.Context) {
	for wake.Sleep(ctx, look) {
		for _, g := range l.all() {
			if g.idle() {
				l.wants(ctx, g)
			}
		}
	}
}

// send sends the batches that are due, in one message to each store.
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
				g.landed()
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
	var again, ended []*Log
	var by []quorum.Outcome
	for i, out := range outcomes {
		switch g := sent[i]; g.concluded(out) {
		case more:
			l.wants(ctx, g)
		case retry:
			again = append(again, g)
		case lost:
			ended, by = append(ended, g), append(by, out)
		case done:
		}
	}
	l.lose(ended, by)
	l.later(ctx, again, func(g *Log) { l.wants(ctx, g) })
}

// lose tells which logs ended, and by what: all in one line, because a node often loses all of its sections.
func (l *Logs) lose(ended []*Log, by []quorum.Outcome) {
	if len(ended) == 0 {
		return
	}
	l.cfg.Logger.Info("logs of exact sections ended", "sections", len(ended), "first", ended[0].id, "epoch", ended[0].epoch.String(), "error", by[0].Err)
	for i, g := range ended {
		l.cfg.Lost(g.id, g.epoch, by[i].Promised)
	}
}

// later calls do with the logs after a pause.
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

// promise tells the stores the epochs that W of them have promised, so that another store can replace one
// that has failed since.
func (l *Logs) promise(ctx context.Context, logs []*Log) {
	items := make([]quorum.StepItem, len(logs))
	for i, g := range logs {
		items[i] = quorum.StepItem{Register: seq.SectionRegister(g.id), Round: g.epoch.Round}
	}
	l.cfg.Stores.Step(ctx, l.cfg.Session, items)
}

// stateOf returns the state of a section at W stores, which keeps ids for window.
func stateOf(out quorum.Outcome, window time.Duration) (*exact.State, error) {
	if len(out.Payload) == 0 {
		return nil, fmt.Errorf("%w: no copy", exact.ErrBadRecord)
	}
	in := exact.NewReader(out.Payload)
	s := in.State(window.Milliseconds())
	if err := in.Err(); err != nil || in.Left() > 0 {
		return nil, errors.Join(fmt.Errorf("%w: a copy of %d bytes, %d left", exact.ErrBadRecord, len(out.Payload), in.Left()), err)
	}
	return s, nil
}
