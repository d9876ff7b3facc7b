package arbiter

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Lease is that by which one node at a time is the arbiter: that of a register
// like a section's, whose value has no meaning.
type Lease struct {
	holder *ownership.Holder
	log    *slog.Logger

	mu    sync.Mutex // guards epoch and hold
	epoch seq.Epoch  // zero: not ours
	hold  ownership.Lease
}

// NewLease is a lease that is not held.
func NewLease(h *ownership.Holder, log *slog.Logger) *Lease { return &Lease{holder: h, log: log} }

// Held says whether this node is still the arbiter: no other can be one at now.
func (l *Lease) Held(now time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hold != nil && now < l.hold.Until()
}

// Owned says whether the lease was acquired and not lost, even if it has lapsed for now.
func (l *Lease) Owned() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.epoch.IsZero()
}

// Lost tells that a store gave the register to another session: the lease is forgotten if it
// is still under the epoch.
func (l *Lease) Lost(epoch seq.Epoch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.epoch == epoch {
		l.clear()
	}
}

// clear makes the lease not ours. Needs l.mu.
func (l *Lease) clear() {
	if l.hold != nil {
		l.hold.Drop()
	}
	l.hold, l.epoch = nil, seq.Epoch{}
}

// Acquire tries to become the arbiter. after is how long the lease of the present one lasts,
// 0 if unknown.
func (l *Lease) Acquire(ctx context.Context) (ok bool, after time.Duration) {
	b := &bid{l: l}
	for _, g := range ownership.Acquire(ctx, l.holder, []*bid{b}) {
		ok = l.keep(g.Epoch, g.Hold)
	}
	return ok, b.after
}

// keep takes the hold in, unless the epoch was lost meanwhile.
func (l *Lease) keep(epoch seq.Epoch, hold ownership.Lease) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.epoch != epoch {
		hold.Drop()
		return false
	}
	l.hold = hold
	return true
}

// Release gives the lease up, so that another node is the arbiter at once.
func (l *Lease) Release(ctx context.Context) {
	l.mu.Lock()
	epoch := l.epoch
	l.clear()
	l.mu.Unlock()
	if epoch.IsZero() {
		return
	}
	if err := l.holder.Release(ctx, []quorum.LeaseItem{{Register: seq.ArbiterRegister, Round: epoch.Round}}, 0); err != nil {
		l.log.Debug("arbiter's lease not released", "error", err)
	}
}

// bid is the ownership.AcquireHandler for the arbiter's register.
type bid struct {
	l     *Lease
	after time.Duration
}

// Register implements ownership.AcquireHandler.
func (b *bid) Register() seq.Register { return seq.ArbiterRegister }

// Free implements ownership.AcquireHandler.
func (b *bid) Free(quorum.Outcome) bool { return true }

// Begin implements ownership.AcquireHandler.
func (b *bid) Begin(_ seq.Epoch, found quorum.Outcome) (ceiling uint64, ok bool) {
	return found.Max + 1, true
}

// Confirmed implements ownership.AcquireHandler.
func (b *bid) Confirmed(epoch seq.Epoch) bool {
	b.l.mu.Lock()
	defer b.l.mu.Unlock()
	b.l.clear()
	b.l.epoch = epoch
	return true
}

// Failed implements ownership.AcquireHandler.
func (b *bid) Failed(at ownership.Stage, out quorum.Outcome) {
	if at != ownership.Confirming {
		b.after = out.Remaining
	}
}
