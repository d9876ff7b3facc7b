package allocsvr

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// refusals ends a process that the stores do not let in: its name is a live
// node's, or its lease is beyond their bound.
type refusals struct {
	cfg    Config
	stop   context.CancelCauseFunc
	needed int
	leases *quorum.Leases

	mu      sync.Mutex // guards waiting
	waiting bool       // for the former holder of the name to go
}

// namePatience is how long the former life of a node may keep its name: its lease
// was granted by the same stores, so it is at most MaxLease.
const namePatience = MaxLease + 2*time.Second

// add takes a refusal in. A name may still be held by the process before this
// one, whose lease must run out first; only a name that stays taken is fatal.
func (r *refusals) add(err error) {
	if errors.Is(err, seq.ErrBadLease) {
		r.stop(err)
		return
	}
	if !errors.Is(err, seq.ErrNameTaken) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting {
		return
	}
	r.waiting = true
	time.AfterFunc(namePatience, func() {
		if r.leases.Connected() < r.needed {
			r.stop(err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.waiting = false
	})
}
