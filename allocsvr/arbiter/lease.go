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

// Lease makes one node at a time the arbiter. It is a lease on a register like a section's, whose value has
// no meaning.
type Lease struct {
	holder *ownership.Holder
	log    *slog.Logger

	mu    sync.Mutex // zero if this node does not own the lease
	epoch seq.Epoch  // zero: not ours
	hold  ownership.Lease
}

// NewLease returns a lease that is not held.
func NewLease(h *ownership.Holder, log *slog.Logger) *Lease { return &Lease{holder: h, log: log} }

// Held reports whether this node is still the arbiter. If so, no other node can be the arbiter at now.
func (l *Lease) Held(now time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hold != nil && now < l.hold.Until()
}

// Owned reports whether the lease was acquired and not lost, even if it has lapsed for now.
func (l *Lease) Owned() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.epoch.IsZero()
}

// Lost is called when a store gave the register to another session. It forgets the lease if the lease still
// has the epoch.
func (l *Lease) Lost(epoch seq.Epoch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.epoch == epoch {
		l.clear()
	}
}

// clear marks the lease as not owned. Needs l.mu.
func (l *Lease) clear() {
	if l.hold != nil {
		l.hold.Drop()
	}
	l.hold, l.epoch = nil, seq.Epoch{}
}

// Acquire tries to become the arbiter. It returns in after how long the present arbiter's lease lasts, or
// zero if that is unknown.
func (l *Lease) Acquire(ctx context.Context) (ok bool, after time.Duration) {
	b := &bid{l: l}
	for _, g := range ownership.Acquire(ctx, l.holder, []*bid{b}) {
		ok = l.keep(g.Epoch, g.Hold)
	}
	return ok, b.after
}

// keep stores the hold, unless the epoch was lost meanwhile.
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

// Release gives up the lease, so that another node can be the arbiter at once.
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
