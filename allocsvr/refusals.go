package allocsvr

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// refusals ends a node that the stores do not let in: its name is a live node's, its
// lease is beyond their bound, or its session was ended, so that another has to begin.
type refusals struct {
	stop      context.CancelCauseFunc
	clock     quorum.Clock
	needed    int
	connected func() int  // how many stores have granted the session what still holds
	ended     func() bool // too few stores are left that have not ended the session
	leaving   func() bool // the node ends its session itself
	stale     func()      // told of another member list; nil: nothing is told

	mu    sync.Mutex    // guards needed and the fields below
	row   bool          // the name was refused, and no quorum has let the session in since
	since time.Duration // first refusal of the row
	last  time.Duration // newest
}

const (
	// namePatience is how long the former life of a node may keep its name: its lease
	// was granted by the same stores, so it is at most MaxLease.
	namePatience = MaxLease + 2*time.Second
	// nameSilence ends a row: renewals come every MaxLease/5 or faster, so one that was
	// not refused for so long was not sent, or not answered. A refusal from before a
	// pause or a partition says nothing about which node has the name after it.
	nameSilence = MaxLease / 2
)

// add takes a refusal in. A name may still be held by the process before this
// one, whose lease must run out first; only a name that stays taken is fatal.
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
