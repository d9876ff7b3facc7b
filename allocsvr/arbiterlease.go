package allocsvr

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/tenure"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// arbiterLease is the lease by which one node at a time is the arbiter: that of a register
// like a section's, whose value has no meaning.
type arbiterLease struct {
	holder *tenure.Holder
	log    *slog.Logger

	mu    sync.Mutex // guards epoch and hold
	epoch seq.Epoch  // zero: not ours
	hold  tenure.Hold
}

// held says whether nobody else can be the arbiter by now.
func (l *arbiterLease) held(now time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hold != nil && now < l.hold.Until()
}

// owned says whether the lease was acquired and not lost, even if it has lapsed for now.
func (l *arbiterLease) owned() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.epoch.IsZero()
}

// drop forgets the lease if it is still under the epoch.
func (l *arbiterLease) drop(epoch seq.Epoch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.epoch == epoch {
		l.clear()
	}
}

// clear makes the lease not ours. Needs l.mu.
func (l *arbiterLease) clear() {
	if l.hold != nil {
		l.hold.Drop()
	}
	l.hold, l.epoch = nil, seq.Epoch{}
}

// acquire tries to become the arbiter. after is how long the lease of the present one lasts,
// 0 if unknown.
func (l *arbiterLease) acquire(ctx context.Context) (ok bool, after time.Duration) {
	bid := &arbiterBid{l: l}
	for _, g := range tenure.Acquire(ctx, l.holder, []*arbiterBid{bid}) {
		ok = l.keep(g.Epoch, g.Hold)
	}
	return ok, bid.after
}

// keep takes the hold in, unless the epoch was lost meanwhile.
func (l *arbiterLease) keep(epoch seq.Epoch, hold tenure.Hold) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.epoch != epoch {
		hold.Drop()
		return false
	}
	l.hold = hold
	return true
}

// release gives the lease up, so that another node is the arbiter at once.
func (l *arbiterLease) release(ctx context.Context) {
	l.mu.Lock()
	epoch := l.epoch
	l.clear()
	l.mu.Unlock()
	if epoch.IsZero() {
		return
	}
	if err := l.holder.Release(ctx, []quorum.LeaseItem{{Register: seq.SeatRegister, Round: epoch.Round}}, 0); err != nil {
		l.log.Debug("arbiter's lease not released", "error", err)
	}
}

// arbiterBid is the tenure.Bid for the arbiter's register.
type arbiterBid struct {
	l     *arbiterLease
	after time.Duration
}

// Register implements tenure.Bid.
func (b *arbiterBid) Register() seq.Register { return seq.SeatRegister }

// Free implements tenure.Bid.
func (b *arbiterBid) Free(quorum.Outcome) bool { return true }

// Begin implements tenure.Bid.
func (b *arbiterBid) Begin(_ seq.Epoch, found quorum.Outcome) (ceiling uint64, ok bool) {
	return found.Max + 1, true
}

// Confirmed implements tenure.Bid.
func (b *arbiterBid) Confirmed(epoch seq.Epoch) bool {
	b.l.mu.Lock()
	defer b.l.mu.Unlock()
	b.l.clear()
	b.l.epoch = epoch
	return true
}

// Failed implements tenure.Bid.
func (b *arbiterBid) Failed(at tenure.Stage, out quorum.Outcome) {
	if at != tenure.Confirming {
		b.after = out.Remaining
	}
}
