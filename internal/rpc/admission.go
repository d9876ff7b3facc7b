package rpc

import (
	"fmt"
	"sync/atomic"

	"github.com/seqsvr/seqsvr/seq"
)

// CallCost is what one call in work weighs beside its keys, in keys: a goroutine and
// what gRPC keeps for it.
const CallCost = 64

// Admission bounds the work that a server has begun and not ended, in keys, so that
// overload ends in refusals and not in memory. It has no queue: whoever is refused
// comes back later, and whoever is let in is served. Safe for concurrent use.
type Admission struct {
	limit   int64
	refused error
	inWork  atomic.Int64 // <= limit, but for a moment within Enter
}

// NewAdmission makes one of a limit in keys. A call alone must fit, or it never will:
// seq.MaxBatch+CallCost at least for a server of batches.
func NewAdmission(limit int) *Admission {
	return &Admission{limit: int64(limit), refused: fmt.Errorf("%w: %d keys are in work", seq.ErrOverloaded, limit)}
}

// Enter begins a call of so many keys; Leave with the same must follow. Otherwise
// seq.ErrOverloaded: retry later.
func (a *Admission) Enter(keys int) error {
	cost := int64(keys + CallCost)
	if a.inWork.Add(cost) > a.limit {
		a.inWork.Add(-cost)
		return a.refused
	}
	return nil
}

// Leave ends a call that Enter let in.
func (a *Admission) Leave(keys int) { a.inWork.Add(-int64(keys + CallCost)) }

// InWork is the weight of the calls in work, in keys.
func (a *Admission) InWork() int64 { return a.inWork.Load() }
