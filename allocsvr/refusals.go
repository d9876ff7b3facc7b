package allocsvr

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// refusals ends a node that the stores refuse. A live node may have its name, its lease may exceed their
// bound, or they may have ended its session.
type refusals struct {
	stop      context.CancelCauseFunc
	clock     quorum.Clock
	needed    int
	connected func() int  // the number of stores at which the session's lease holds
	ended     func() bool // too few stores are left that have not ended the session
	leaving   func() bool // the node ends its session itself
	stale     func()      // called if a store has another member list; may be nil

	mu    sync.Mutex    // guards needed and the fields below
	row   bool          // the name was refused, and no quorum has let the session in since
	since time.Duration // first refusal of the row
	last  time.Duration // newest
}

const (
	// namePatience bounds how long the former life of a node may keep its name. The same stores granted its
	// lease, so the lease is at most MaxLease.
	namePatience = MaxLease + 2*time.Second
	// nameSilence ends a row. Renewals come every MaxLease/5 or faster. If none was refused for so long,
	// none was sent or answered. A refusal before a pause or a partition does not tell which node has the
	// name after it.
	nameSilence = MaxLease / 2
)

// add handles a refusal. The process before this one may still hold the name until its lease runs out, so
// only a name that stays taken is fatal.
func (r *refusals) add(err error) {
	if errors.Is(err, seq.ErrStaleEra) && r.stale != nil {
		r.stale()
	}
	if errors.Is(err, seq.ErrBadLease) {
		r.stop(err)
		return
	}
	if errors.Is(err, seq.ErrSessionEnded) && r.ended() && !r.leaving() {
		r.stop(err)
		return
	}
	if !errors.Is(err, seq.ErrNameTaken) {
		return
	}
	now, connected := r.clock.Now(), r.connected()
	r.mu.Lock()
	defer r.mu.Unlock()
	if connected >= r.needed {
		r.row = false
		return
	}
	if !r.row || now-r.last > nameSilence {
		r.row, r.since = true, now
	}
	r.last = now
	if now-r.since > namePatience {
		r.stop(err)
	}
}
