package logs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

var (
	// ErrClosed means that the log was closed before any part of the request was sent. Nothing was taken.
	// Ask the section's next owner.
	ErrClosed = errors.New("log is closed")
	// ErrUnknown means that the log ended while the request was under way. The request may have got its
	// numbers. With an id, repeat the request at the section's next owner.
	ErrUnknown = fmt.Errorf("%w, repeat the request with its id", seq.ErrOutcomeUnknown)
	// errBehind means that more requests wait for the stores than a log keeps.
	errBehind = fmt.Errorf("%w: too many requests wait for the stores", seq.ErrOverloaded)
)

// maxGathered bounds the records that wait for the next batch.
const maxGathered = 1 << 16

// Log is the log of one section under one epoch. Safe for concurrent use.
type Log struct {
	logs   *Logs
	id     seq.SectionID
	epoch  seq.Epoch
	window time.Duration
	opened chan struct{} // closed when owner is there, or never will be
	alone  bool          // the copy must be read by itself; used by Logs.read only

	mu     sync.Mutex   // guards all below
	owner  *exact.Owner // nil until the copy was read
	zero   int64        // the stores' time when the clock showed 0, as computed when the copy was read
	closed bool         // no batch begins any more
	held   uint64       // batches up to that number are at W stores
	flight *flight      // the batch that is under way, or nil
	// gathered is closed when the gathering batch is at W stores, or when it never will be.
	gathered chan struct{}
	waiting  int    // requests that gather
	spilled  uint64 // batches up to that number may be at stores, as part of a whole copy
	behind   bool   // a store stands elsewhere
	bytes    int64  // the bytes last reported to Config.Grow
}

// flight is a batch that was sent, or is about to be.
type flight struct {
	number uint64
	body   []byte        // an exact.Change
	done   chan struct{} // closed when it is at W stores, or the log has ended
	sent   bool          // in a message that has no outcome yet
	why    error         // the last time that it was not won
	over   bool          // the log has ended, and the outcome of the batch is not known
}

// end gives the batch up.
func (f *flight) end() {
	f.over = true
	close(f.done)
}

// Ticket is an answer that may not hold yet.
type Ticket struct {
	exact.Answer
	log *Log
}

// full is Config.Full of the section.
func (g *Log) full() error {
	if g.logs.cfg.Full == nil {
		return nil
	}
	return g.logs.cfg.Full(g.id)
}

// begin makes the owner from the copy that was found. Its first batch must be sent.
func (g *Log) begin(found quorum.Outcome) error {
	zero := found.Time - g.logs.cfg.Clock.Now().Milliseconds()
	s, err := stateOf(found, g.window)
	if err != nil {
		return err
	}
	owner, err := exact.NewOwner(exact.Config{Window: g.window.Milliseconds(), Bound: ahead.Milliseconds(), Full: g.full}, g.epoch, s, g.logs.now(zero, &Instant{}))
	if err != nil {
		return err
	}
	if g.logs.cfg.Began != nil {
		g.logs.cfg.Began(g.id, g.epoch, owner)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.owner == nil && !g.closed {
		g.owner, g.zero = owner, zero
		g.weigh()
		close(g.opened)
	}
	return nil
}

// now returns the section's time. Needs g.mu.
func (g *Log) now(at *Instant) int64 { return g.logs.now(g.zero, at) }

// weigh reports the size of the log to Config.Grow. Needs g.mu.
func (g *Log) weigh() {
	var now int64
	if g.owner != nil && !g.closed {
		now = g.owner.Bytes()
	}
	if now != g.bytes {
		g.logs.cfg.Grow(now - g.bytes)
		g.bytes = now
	}
}

// Opened waits until the log has read its copy, or is closed. It returns an error if ctx ends before.
func (g *Log) Opened(ctx context.Context) error {
	select {
	case <-g.opened:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("section %d: its copy is being read: %w", g.id, context.Cause(ctx))
	}
}

// Reading reports whether the copy of the log is still to be read.
func (g *Log) Reading() bool {
	select {
	case <-g.opened:
		return false
	default:
		return true
	}
}

// ask calls do with the owner, once there is one, and with the time if at is not nil. It returns ErrClosed or the
// error of do.
func (g *Log) ask(ctx context.Context, at *Instant, do func(o *exact.Owner, now int64) (exact.Answer, error)) (Ticket, error) {
	if err := g.Opened(ctx); err != nil {
		return Ticket{}, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		return Ticket{}, ErrClosed
	case g.waiting >= maxGathered:
		return Ticket{}, errBehind
	}
	var now int64
	if at != nil {
		now = g.now(at)
	}
	answer, err := do(g.owner, now)
	if err == nil && answer.Round > g.held {
		g.waiting++
		g.weigh()
		g.logs.wants(ctx, g)
	}
	return Ticket{answer, g}, err
}

// Take takes count numbers of a UID for a request. For a repeated request it returns the request's numbers.
// The requests of a batch have one at. Errors are ErrClosed and the errors of exact.Owner.Take. With
// exact.ErrConflict, which is an *exact.Conflict, the ticket has the numbers of the earlier request.
func (g *Log) Take(ctx context.Context, at *Instant, uid seq.UID, count uint32, id string, sent time.Time) (Ticket, error) {
	return g.ask(ctx, at, func(o *exact.Owner, now int64) (exact.Answer, error) {
		first := int64(0)
		if !sent.IsZero() {
			first = sent.UnixMilli()
		}
		return o.Take(uid, count, id, first, now)
	})
}

// Lookup returns the numbers of a request. If it has none, First is 0.
func (g *Log) Lookup(ctx context.Context, uid seq.UID, id string) (Ticket, error) {
	return g.ask(ctx, nil, func(o *exact.Owner, _ int64) (exact.Answer, error) { return o.Lookup(uid, id), nil })
}

// Current returns the last number of a UID as First. If it has none, First is 0.
func (g *Log) Current(ctx context.Context, uid seq.UID) (Ticket, error) {
	return g.ask(ctx, nil, func(o *exact.Owner, _ int64) (exact.Answer, error) { return o.Current(uid), nil })
}

// Page reads some UIDs and their last numbers, by rising UID, beginning at from. It returns in next the
// least UID after them, or 0 if there is none. No number is below what had been handed out when the call
// began.
func (g *Log) Page(ctx context.Context, from seq.UID, most int) (uids, last []uint64, next uint64, err error) {
	ticket, err := g.Current(ctx, from)
	if err == nil {
		err = ticket.Wait(ctx)
	}
	if err != nil {
		return nil, nil, 0, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	found, after := g.owner.Page(from, most)
	for _, uid := range found {
		uids, last = append(uids, uint64(uid)), append(last, g.owner.Last(uid))
	}
	return uids, last, uint64(after), nil
}

// Size returns the numbers of UIDs and ids in the log, or zeros before its copy was read.
func (g *Log) Size() (uids, ids int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.owner == nil {
		return 0, 0
	}
	return g.owner.Size()
}

// CopyShare returns exact.Owner.CopyShare, or 0 before the copy was read.
func (g *Log) CopyShare() float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.owner == nil {
		return 0
	}
	return g.owner.CopyShare()
}

// Raise lifts a UID to at least a number, unless allowed refuses its last number. It returns the UID's new
// last number as First.
func (g *Log) Raise(ctx context.Context, uid seq.UID, to uint64, allowed func(last uint64) error) (Ticket, error) {
	return g.ask(ctx, &Instant{}, func(o *exact.Owner, now int64) (exact.Answer, error) {
		if err := allowed(o.Last(uid)); err != nil {
			return exact.Answer{}, err
		}
		return o.Raise(uid, to, now)
	})
}

// Wait waits until the answer holds. It returns ErrClosed, ErrUnknown, or the error of ctx. If ctx ends,
// the request may still be carried out.
func (t Ticket) Wait(ctx context.Context) error {
	g := t.log
	g.mu.Lock()
	held, sent, done := g.held, g.flight, g.gathered
	if sent != nil && t.Round <= sent.number {
		done = sent.done
	}
	g.mu.Unlock()
	if t.Round <= held {
		return nil
	}
	select {
	case <-done:
	case <-ctx.Done():
		return fmt.Errorf("section %d: %w: %w: %w", g.id, ErrUnknown, context.Cause(ctx), g.why())
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case t.Round <= g.held:
		return nil
	case g.flight != nil && t.Round <= g.flight.number, t.Round <= g.spilled:
		return fmt.Errorf("section %d: %w", g.id, ErrUnknown)
	}
	return ErrClosed
}

// why returns the reason why the batch under way is not at W stores yet, if it is known.
func (g *Log) why() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.flight != nil && g.flight.why != nil {
		return g.flight.why
	}
	return seq.ErrNoQuorum
}

// Close makes the log begin no further batch. The batch under way may still reach W stores.
func (g *Log) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.end()
}

// end does the work of Close. Needs g.mu.
func (g *Log) end() {
	if g.closed {
		return
	}
	g.closed = true
	if g.owner == nil {
		close(g.opened)
	}
	close(g.gathered)
	g.weigh()
	g.logs.forget(g)
}

func (g *Log) ended() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// idle reports whether there is something to send without a request. It may be the time, if ids expire by
// it, or a whole copy for a store that is behind.
func (g *Log) idle() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.owner == nil || g.flight != nil {
		return false
	}
	passed := g.owner.Pass(g.now(&Instant{}))
	g.weigh()
	if g.behind {
		g.owner.Ask()
	}
	return passed || g.behind
}

// landed says that the batch of batch is in no message any more.
func (g *Log) landed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.flight.sent = false
}

// batch returns the exact.Change that is to be sent now. It returns false if there is none, or if it is in a message
// already: once that has its outcome, what has been gathered follows.
func (g *Log) batch() ([]byte, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.owner == nil {
		return nil, false
	}
	if g.flight == nil {
		if g.closed {
			return nil, false
		}
		b, ok := g.owner.Begin()
		if !ok {
			return nil, false
		}
		change := exact.Change{Batch: b}
		if g.behind {
			change, g.behind = exact.Change{Whole: g.owner.State()}, false
		}
		g.flight = &flight{number: g.owner.Round(), body: change.AppendTo(nil), done: g.gathered}
		g.gathered, g.waiting = make(chan struct{}), 0
	}
	if g.flight.sent || g.flight.over {
		return nil, false
	}
	g.flight.sent = true
	return g.flight.body, true
}

// ending says how a try to send a batch ended.
type ending uint8

const (
	done  ending = iota // nothing is to be sent
	more                // at once
	retry               // after a pause
	lost                // never: the log has ended
)

// concluded handles the outcome of the batch under way.
func (g *Log) concluded(out quorum.Outcome) ending {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.flight
	f.sent = false
	switch {
	case out.State == quorum.Won:
		g.owner.Committed()
		g.held, g.flight, g.behind = f.number, nil, g.behind || out.Elsewhere
		close(f.done)
		if !g.closed && g.waiting > 0 {
			return more
		}
		return done
	case out.State == quorum.Refused && !out.Elsewhere && !errors.Is(out.Err, seq.ErrStoreFull), g.epoch.Less(out.Promised):
		g.end()
		f.end()
		return lost
	case g.closed: // the section has been given up: the batch is not repeated
		f.end()
		return done
	case out.Elsewhere:
		// A whole copy has what gathers as well: more than the batch, and never other records.
		f.body, g.spilled = (&exact.Change{Whole: g.owner.State()}).AppendTo(nil), f.number+1
		return more
	}
	f.why = out.Err
	return retry
}
