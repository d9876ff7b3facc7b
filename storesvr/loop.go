package storesvr

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/internal/tracing"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

// maxGroup bounds how many requests share one transaction.
const maxGroup = 1024

// write is a request that waits for the disk.
type write struct {
	ctx  context.Context
	size int // bytes that it may add to the disk, beyond a few pages
	// apply changes the acceptor, and u where it is not the acceptor's. It runs under
	// mu, in the order of arrival. An error goes to the caller, and nothing was changed.
	apply func(now time.Duration, full bool, u *disk.Update) error
	// committed, if not nil, runs under mu after the commit of what apply did.
	committed func()
	err       error         // of apply; read after done is closed
	done      chan struct{} // closed when the outcome is on disk
}

// submit waits until the write is on disk. Any error but one of apply means that the
// outcome is unknown.
func (r *replica) submit(ctx context.Context, w *write) error {
	w.ctx, w.done = ctx, make(chan struct{})
	select {
	case r.queue <- w:
	case <-ctx.Done():
		return ctx.Err()
	case <-r.failed:
		return r.failure()
	case <-r.quit:
		return seq.ErrShuttingDown
	}
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
		return ctx.Err()
	case <-r.failed:
		return r.failure()
	case <-r.quit:
		return seq.ErrShuttingDown
	}
}

// loop is the only writer. It takes all requests that wait into one transaction, and
// whatever arrives meanwhile into the next: under load the groups grow by themselves,
// and without load nobody waits.
func (r *replica) loop() {
	defer close(r.ended)
	group := make([]*write, 0, maxGroup)
	for {
		group = group[:0]
		select {
		case w := <-r.queue:
			group = append(group, w)
		case <-r.quit:
			return
		}
		for drained := false; !drained && len(group) < maxGroup; {
			select {
			case w := <-r.queue:
				group = append(group, w)
			default:
				drained = true
			}
		}
		if err := r.commit(group); err != nil {
			r.fail(err)
			return
		}
	}
}

// commit applies the group in memory, writes it to disk and then answers all of it. A
// crash before the write is done leaves the disk as it was, and nobody has an answer.
func (r *replica) commit(group []*write) error {
	full := r.full(group)
	if full {
		r.stats.refused.Add(1)
	}
	update, err := r.applyGroup(group, full)
	if err != nil {
		return err
	}
	var commits uint64
	if !update.Empty() {
		begun := time.Now()
		span := r.traceCommit(group, len(update.Changes))
		commits, err = r.disk.Commit(update)
		span.End(err)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrCommit, err)
		}
		r.stats.committed(time.Since(begun), len(group), len(update.Changes))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.acceptor.Committed()
	r.commits = max(r.commits, commits)
	for _, w := range group {
		if w.err == nil && w.committed != nil {
			w.committed()
		}
		close(w.done)
	}
	return nil
}

// traceCommit is the span of a transaction that traced calls wait for: a child of the
// first, that the others are linked to.
func (r *replica) traceCommit(group []*write, registers int) tracing.Span {
	var calls tracing.Calls
	for _, w := range group {
		calls = r.traces.Note(calls, w.ctx)
	}
	_, span := r.traces.Joint(context.Background(), "store.commit", calls)
	span.Int("group", len(group))
	span.Int("registers", registers)
	return span
}

// applyGroup returns an error only if the process must not go on.
func (r *replica) applyGroup(group []*write, full bool) (disk.Update, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var update disk.Update
	now := r.clock.Now()
	for _, w := range group {
		if w.err = w.ctx.Err(); w.err != nil {
			continue // the caller has left
		}
		w.err = w.apply(now, full, &update)
		if errors.Is(w.err, acceptor.ErrInvariant) {
			return disk.Update{}, fmt.Errorf("%w: %w", ErrCommit, w.err)
		}
	}
	update.Changes = r.acceptor.Changes()
	if !update.Empty() {
		update.Remembered = r.unsavedClaims()
	}
	return update, nil
}

// full says whether the disk has too little room for the group: bbolt writes changed
// pages anew before it frees the old ones, and an ENOSPC in the commit ends the process.
func (r *replica) full(group []*write) bool {
	reserve := r.nearFull.Load()
	if reserve == 0 {
		return false
	}
	size := 0
	for _, w := range group {
		size += w.size
	}
	free, err := r.disk.Free()
	if err != nil {
		r.log.Error("cannot tell how full the disk is, refusing writes", "error", err)
		return true
	}
	return free < reserve+2*uint64(size)
}

// fail makes the replica answer nothing any more, not even leases.
func (r *replica) fail(err error) {
	r.mu.Lock()
	r.err = err
	r.mu.Unlock()
	r.log.Error("store stops answering", "error", err)
	close(r.failed)
}

func (r *replica) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}
