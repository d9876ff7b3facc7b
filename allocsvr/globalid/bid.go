package globalid

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
	s        *Service
	register seq.Register
	// suits says whether a worker id with that mark may be used by now.
	suits func(mark) bool
	// begin gives the first mark above the floor, which is the highest of W promises: whatever
	// any holder before had confirmed, W stores have it, and one of those is among these.
	begin func(floor mark) (first mark, err error)
	// confirmed is told that W stores have the first mark, and says whether the id is leased.
	confirmed func(round uint64, first mark) (leased bool)

	first mark
	err   error
}

// bid gets a worker id, which it claims meanwhile; the hold is nil if none was asked for.
// errTaken: its mark does not suit, or no longer, or this node has it. seq.ErrWorkersKept:
// nor would that of any other suit.
func (s *Service) bid(ctx context.Context, b *bid) (hold tenure.Hold, err error) {
	if err := b.register.Validate(); err != nil {
		return nil, err
	}
	if !s.claim(b.register) {
		return nil, fmt.Errorf("%s: %w: at this node", b.register, errTaken)
	}
	defer s.unclaim(b.register)
	for _, g := range tenure.Acquire(ctx, s.cfg.Holder, []*bid{b}) {
		hold = g.Hold
	}
	return hold, b.err
}

// claim keeps a worker id for one attempt of this node, until unclaim; false if there is
// one already, or the node holds it. Two attempts under the one session could otherwise
// get the same epoch, and both of them its window.
func (s *Service) claim(reg seq.Register) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[reg] != nil || s.claimed[reg] {
		return false
	}
	s.claimed[reg] = true
	return true
}

func (s *Service) unclaim(reg seq.Register) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.claimed, reg)
}

// Register implements tenure.Bid.
func (b *bid) Register() seq.Register { return b.register }

// Free implements tenure.Bid.
func (b *bid) Free(found quorum.Outcome) bool {
	if b.suits(mark(found.Max)) {
		return true
	}
	if b.err = kept(mark(found.Floor), 0, b.s.now()); found.Max > found.Floor {
		b.err = fmt.Errorf("%s: %w: its mark is %s", b.register, errTaken, mark(found.Max).time())
	}
	return false
}

// Begin implements tenure.Bid. The mark may have risen since the look.
func (b *bid) Begin(_ seq.Epoch, found quorum.Outcome) (ceiling uint64, ok bool) {
	if !b.Free(found) {
		return 0, false
	}
	b.first, b.err = b.begin(mark(found.Max))
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
