package quorum

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

// Hold is one register that the session owns under one epoch, as far as its
// leases are concerned.
type Hold struct {
	leases   *Leases
	register seq.Register
	round    uint64

	// attached has bit i while store i is known to keep the register for this
	// epoch. Written under Leases.mu; 0 for ever once over is set.
	attached atomic.Uint64
	over     atomic.Bool // written under Leases.mu
	ready    chan struct{}

	told    uint64 // stores that may know of the hold: an attach was sent; guarded by Leases.mu
	refused uint64 // stores that refused the attach since; guarded by Leases.mu
	isReady bool   // ready is closed; guarded by Leases.mu
}

// Attach has the register held under {round, session} at all stores from the next
// renew on, which it asks for at once. Many calls in a row travel in one message.
// The session must have the promise of that epoch, and must have stopped serving under
// any older one before it prepared this: stores detach the old epoch silently when
// they promise the same session a new one. A hold of the same register
// under a lower round ends quietly; the same round gives the same hold. A round at
// or below one that has ended gives a hold that is lost from the start.
func (l *Leases) Attach(reg seq.Register, round uint64) *Hold {
	l.mu.Lock()
	old := l.holds[reg]
	if old != nil && old.round == round {
		l.mu.Unlock()
		return old
	}
	h := &Hold{leases: l, register: reg, round: round, ready: make(chan struct{})}
	if ended, ok := l.ended[reg]; ok && round <= ended || old != nil && round < old.round {
		h.over.Store(true)
		l.mu.Unlock()
		return h
	}
	if old != nil {
		l.end(old)
	}
	l.holds[reg] = h
	for _, s := range l.now.Load().stores {
		s.pending[h] = struct{}{}
	}
	l.mu.Unlock()
	l.Kick()
	return h
}

// end detaches a hold for good. The stores that may know of it are told with the
// next renew. Callers hold l.mu.
func (l *Leases) end(h *Hold) {
	h.over.Store(true)
	l.losses.Add(1)
	mask := h.attached.Swap(0)
	for _, s := range l.now.Load().stores {
		if mask&s.bit() != 0 {
			s.attached--
		}
		delete(s.pending, h)
		delete(s.refused, h)
		if h.told&s.bit() != 0 {
			s.drops[LeaseItem{Register: h.register, Round: h.round}] = struct{}{}
		}
	}
	l.ended[h.register] = max(l.ended[h.register], h.round)
	if l.holds[h.register] == h {
		delete(l.holds, h.register)
	}
}

// Until returns the time when the lease on the register ends, on the Clock of the leases. The holder may
// serve while Now() < Until(). It is the W-th largest send time among the stores where the register is
// attached, plus Term. It is 0 if there are fewer than W such stores. Ask it for each batch, after the last
// request of the batch has arrived, and keep the answer no longer than Losses allows. It takes no lock and
// allocates nothing.
func (h *Hold) Until() time.Duration {
	l := h.leases
	c := l.now.Load()
	n, w := len(c.stores), c.w
	var sent [MaxStores]int64
	// All of sent before attached: a bit that is still set afterwards vouches for
	// a send time that was read before, whatever happened meanwhile. The other
	// way round, a store that lost the register and answered a newer renew in
	// between would lengthen the lease.
	for i := range n {
		sent[i] = l.sent[c.stores[i].index].Load()
	}
	mask := h.attached.Load() & c.mask
	if bits.OnesCount64(mask) < w {
		return 0
	}
	var top [MaxStores]int64 // the largest, in falling order
	k := 0
	for i := range n {
		if mask&c.stores[i].bit() == 0 {
			continue
		}
		j := k
		for ; j > 0 && top[j-1] < sent[i]; j-- {
			top[j] = top[j-1]
		}
		top[j] = sent[i]
		k++
	}
	return max(0, time.Duration(top[w-1])+l.term)
}

// Drop gives the register up: Until is 0 from here on. The stores learn of it with the next renews.
// Group.Release tells them at once. The caller must have stopped serving the register. Drop is safe to
// repeat.
func (h *Hold) Drop() {
	h.leases.mu.Lock()
	defer h.leases.mu.Unlock()
	if !h.over.Load() {
		h.leases.end(h)
	}
}

// Ready is closed once the register has been attached at W stores. It is never
// closed if the hold is lost before.
func (h *Hold) Ready() <-chan struct{} { return h.ready }

// Register returns the register that is held.
func (h *Hold) Register() seq.Register { return h.register }

// Round returns the round of the epoch under which the register is held.
func (h *Hold) Round() uint64 { return h.round }

// Lost reports whether the hold is over, lost or dropped. A hold whose lease has only run out is not lost.
func (h *Hold) Lost() bool { return h.over.Load() }
