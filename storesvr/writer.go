package storesvr

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/internal/process/tracing"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

// maxGroup bounds how many requests share one transaction.
const maxGroup = 1024

// Database is where a store commits; disk.DB is the one that ships. Commit returns the number of transactions over
// the life of the disk, after everything is fsynced; after an error the outcome is
// unknown and it is not called again. One goroutine commits.
type Database interface {
	Commit(disk.Update) (commits uint64, err error)
	// Copy is the copy of a section of an exact space, nil for any other section. The store
	// changes it ahead of Log, which is as Commit is, of the journal.
	Copy(seq.SectionID) *exact.Copy
	Log([]exact.Entry) (batches, bytes uint64, err error)
	Free() (bytes uint64, err error)
	Close() error
}

// write is a request that waits for the disk.
type write struct {
	ctx   context.Context
	until time.Time // after which it is not begun; zero: as ctx says
	size  int       // bytes that it may add to the disk, beyond a few pages
	// apply changes the acceptor, and u where it is not the acceptor's. It runs under
	// core.mu, in the order of arrival. An error goes to the caller, and nothing was changed.
	apply   func(now time.Duration, full bool, u *disk.Update) error
	results []quorum.Result // of apply, if it has any
	// show, if not nil, runs in the writer's goroutine once all of the group was applied, without
	// core.mu: copies change in no other goroutine. Only if err is nil.
	show func()
	// committed, if not nil, runs under core.mu after the commit of what apply did.
	committed func()
	// answer, if not nil, runs in the writer's goroutine once the outcome is on disk, in place of done. It
	// must not wait.
	answer func()
	err    error         // of apply; read after done is closed
	done   chan struct{} // closed when the outcome is on disk; nil with answer
}

// begins returns an error if the caller does not wait for the write any longer.
func (w *write) begins() error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if !w.until.IsZero() && time.Now().After(w.until) {
		return context.DeadlineExceeded
	}
	return nil
}

// finish tells the caller the outcome.
func (w *write) finish() {
	if w.answer != nil {
		w.answer()
		return
	}
	close(w.done)
}

// writer brings to disk what requests change in memory. All that wait at one moment share
// one transaction.
type writer struct {
	core     *core
	disk     Database
	nearFull atomic.Uint64 // bytes free below which writes are refused; zero means never
	stats    stats
	traces   *tracing.Tracer // of the calls that wait for a commit

	queue  chan *write
	quit   chan struct{} // closed by close
	failed chan struct{} // closed once core.err is set
	ended  chan struct{} // closed when the loop has ended
	once   sync.Once     // close
}

// newWriter takes the database over and starts the loop.
func newWriter(cfg Config, db Database, c *core) *writer {
	w := &writer{
		core: c, disk: db, stats: newStats(), traces: cfg.Traces,
		queue: make(chan *write, maxGroup), quit: make(chan struct{}),
		failed: make(chan struct{}), ended: make(chan struct{}),
	}
	w.nearFull.Store(cfg.NearFull)
	go w.loop()
	return w
}

// close ends the loop after the commit in flight, and closes the database. Requests
// that wait end with seq.ErrShuttingDown, their outcome unknown to the caller. The
// server must have stopped: no lease is granted any more.
func (w *writer) close() error {
	var err error
	w.once.Do(func() {
		close(w.quit)
		<-w.ended
		if last := w.core.last(); !last.Empty() || last.Remembered != nil {
			if _, err = w.disk.Commit(last); err != nil {
				err = fmt.Errorf("record that nothing is leased: %w", err)
			}
		}
		err = errors.Join(err, w.disk.Close())
	})
	return err
}

// submit waits until the write is on disk. Any error but one of apply means that the
// outcome is unknown.
func (w *writer) submit(ctx context.Context, one *write) error {
	one.done = make(chan struct{})
	if err := w.enqueue(ctx, one); err != nil {
		return err
	}
	select {
	case <-one.done:
		return one.err
	case <-ctx.Done():
		return ctx.Err()
	case <-w.failed:
		return w.core.failure()
	case <-w.quit:
		return seq.ErrShuttingDown
	}
}

// enqueue hands over a write. An error means that it was not taken.
func (w *writer) enqueue(ctx context.Context, one *write) error {
	one.ctx = ctx
	select {
	case w.queue <- one:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-w.failed:
		return w.core.failure()
	case <-w.quit:
		return seq.ErrShuttingDown
	}
}

// loop is the only writer. It takes all requests that wait into one transaction, and
// whatever arrives meanwhile into the next: under load the groups grow by themselves,
// and without load no request waits.
func (w *writer) loop() {
	defer close(w.ended)
	group := make([]*write, 0, maxGroup)
	for {
		group = group[:0]
		select {
		case one := <-w.queue:
			group = append(group, one)
		case <-w.quit:
			return
		}
		for drained := false; !drained && len(group) < maxGroup; {
			select {
			case one := <-w.queue:
				group = append(group, one)
			default:
				drained = true
			}
		}
		if err := w.commit(group); err != nil {
			w.core.fail(err)
			w.core.log.Error("store stops answering", "error", err)
			close(w.failed)
			return
		}
	}
}

// commit applies the group in memory, writes it to disk and then answers all of it. A
// crash before the write is done leaves the disk as it was, and no caller has an answer.
//
// The database is first: a crash before the journal leaves promises without the records that
// came with them, where the other order could leave records of an epoch that was not promised.
func (w *writer) commit(group []*write) error {
	full := w.full(group)
	if full {
		w.stats.refused.Add(1)
	}
	update, entries, err := w.core.apply(group, full)
	if err != nil {
		return err
	}
	for _, one := range group {
		if one.err == nil && one.show != nil {
			one.show()
		}
	}
	var commits, batches uint64
	if !update.Empty() || update.Remembered != nil || len(entries) > 0 {
		begun := time.Now()
		span := w.traceCommit(group, len(update.Changes))
		commits, batches, err = w.write(update, entries)
		span.End(err)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrCommit, err)
		}
		w.stats.committed(time.Since(begun), len(group), len(update.Changes))
	}
	w.core.committed(group, commits, batches)
	for _, one := range group {
		one.finish()
	}
	return nil
}

// write makes durable what a group changed; 0 for what had nothing to write.
func (w *writer) write(update disk.Update, entries []exact.Entry) (commits, batches uint64, err error) {
	if !update.Empty() || update.Remembered != nil {
		if commits, err = w.disk.Commit(update); err != nil {
			return 0, 0, err
		}
	}
	if len(entries) > 0 {
		begun := time.Now()
		var bytes uint64
		if batches, bytes, err = w.disk.Log(entries); err != nil {
			return 0, 0, err
		}
		w.stats.logged(time.Since(begun), bytes)
	}
	return commits, batches, nil
}

// traceCommit is the span of a transaction that traced calls wait for: a child of the
// first, that the others are linked to.
func (w *writer) traceCommit(group []*write, registers int) tracing.Span {
	var calls tracing.Calls
	for _, one := range group {
		calls = w.traces.Note(calls, one.ctx)
	}
	_, span := w.traces.Joint(context.Background(), "store.commit", calls)
	span.Int("group", len(group))
	span.Int("registers", registers)
	return span
}

// full reports whether the disk has too little room for the group. bbolt writes changed pages
// before it frees the old ones, and an ENOSPC in the commit ends the process.
func (w *writer) full(group []*write) bool {
	reserve := w.nearFull.Load()
	if reserve == 0 {
		return false
	}
	size := 0
	for _, one := range group {
		size += one.size
	}
	free, err := w.disk.Free()
	if err != nil {
		w.core.log.Error("cannot tell how full the disk is, refusing writes", "error", err)
		return true
	}
	return free < reserve+2*uint64(size)
}
