package workers

import (
	"context"
	"errors"
	"fmt"

	"github.com/seqsvr/seqsvr/allocsvr/tenure"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// bid is one worker id on its way to this node, or to a client of it: its tenure.Bid.
type bid struct {
	w        *Workers
	register seq.Register
	// suits says whether a worker id with that mark may be used by now; era is the floor of a
	// restored era, 0 for none.
	suits func(m, era Mark) bool
	// begin gives the first Mark above the floor, which is the highest of W promises: whatever
	// any holder before had confirmed, W stores have it, and one of those is among these.
	begin func(floor Mark) (first Mark, err error)
	// confirmed is told that W stores have the first Mark, and says whether the id is leased.
	confirmed func(round uint64, first Mark) (leased bool)

	first Mark
	err   error
}

// bid gets a worker id, which it claims meanwhile; the hold is nil if none was asked for.
// errTaken: its mark does not suit, or no longer, or this node has it. seq.ErrWorkersKept:
// nor would that of any other suit.
func (w *Workers) bid(ctx context.Context, b *bid) (hold tenure.Hold, err error) {
	if err := b.register.Validate(); err != nil {
		return nil, err
	}
	// Two attempts under the one session could get the same epoch, and both of them its window.
	w.mu.Lock()
	taken := w.held[b.register] != nil || w.claimed[b.register]
	if !taken {
		w.claimed[b.register] = true
	}
	w.mu.Unlock()
	if taken {
		return nil, fmt.Errorf("%s: %w: at this node", b.register, errTaken)
	}
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.claimed, b.register)
	}()
	for _, g := range tenure.Acquire(ctx, w.cfg.Holder, []*bid{b}) {
		hold = g.Hold
	}
	return hold, b.err
}

// Register implements tenure.Bid.
func (b *bid) Register() seq.Register { return b.register }

// Free implements tenure.Bid.
func (b *bid) Free(found quorum.Outcome) bool {
	if b.suits(Mark(found.Max), Mark(found.Floor)) {
		return true
	}
	if b.err = kept(Mark(found.Floor), 0, b.w.now()); found.Max > found.Floor {
		b.err = fmt.Errorf("%s: %w: its mark is %s", b.register, errTaken, Mark(found.Max).Time())
	}
	return false
}

// Begin implements tenure.Bid. The mark may have risen since the look.
func (b *bid) Begin(_ seq.Epoch, found quorum.Outcome) (ceiling uint64, ok bool) {
	if !b.Free(found) {
		return 0, false
	}
	b.first, b.err = b.begin(Mark(found.Max))
	return uint64(b.first), b.err == nil
}

// Confirmed implements tenure.Bid.
func (b *bid) Confirmed(epoch seq.Epoch) bool { return b.confirmed(epoch.Round, b.first) }

// Failed implements tenure.Bid.
func (b *bid) Failed(at tenure.Stage, out quorum.Outcome) {
	switch {
	case at == tenure.Confirming:
		b.err = stepError(out.Err)
	case at == tenure.Promising && errors.Is(out.Err, quorum.ErrRefused): // it was ended: by Leave, or as one taken for dead
		b.err = fmt.Errorf("%w: %w", seq.ErrNoLease, out.Err)
	default:
		b.err = out.Err
	}
}

// stepError names why a mark was not taken. Stores refuse one that is too far beyond
// their own clocks; nothing else of a worker register can be refused.
func stepError(err error) error {
	if errors.Is(err, quorum.ErrRefused) && !errors.Is(err, quorum.ErrNack) {
		return fmt.Errorf("%w: %w", seq.ErrClockOff, err)
	}
	return err
}
