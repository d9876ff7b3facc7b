package rpc

import (
	"fmt"
	"sync/atomic"

	"github.com/seqsvr/seqsvr/seq"
)

// CallCost is what one call in work weighs beside its keys, in keys: a goroutine and
// what gRPC keeps for it.
const CallCost = 64

// DefaultMaxInWork is the limit of a daemon that is given none, in keys: 16,000 calls of
// few keys, or a hundred of the largest batches.
const DefaultMaxInWork = 1 << 20

// MinInWork is the least limit of a server of batches, in keys: the largest batch alone
// must fit, or it never will.
const MinInWork = seq.MaxBatch + CallCost

// CheckMaxInWork: seq.ErrBadArgument for a limit of keys in work, other than 0, into which
// the largest batch would never fit.
func CheckMaxInWork(keys int) error {
	if keys != 0 && keys < MinInWork {
		return fmt.Errorf("%w: at most %d keys in work, expected 0 (%d) or at least %d", seq.ErrBadArgument, keys, DefaultMaxInWork, MinInWork)
	}
	return nil
}

// Admission bounds the work that a server has begun and not ended, in keys, so that
// overload ends in refusals and not in memory. It has no queue: a call that is refused
// comes back later, and one that is let in is served. Safe for concurrent use.
type Admission struct {
	bound   atomic.Pointer[bound]
	inWork  atomic.Int64 // <= limit, but for a moment within Enter, and after the limit was lowered
	refused atomic.Uint64
}

// bound is a limit, with what is said beyond it: an overload is no time to make texts.
type bound struct {
	limit   int64
	refusal error
}

// NewAdmission makes one of a limit in keys. A call alone must fit, or it never will:
// MinInWork at least for a server of batches.
func NewAdmission(limit int) *Admission {
	a := &Admission{}
	a.SetLimit(limit)
	return a
}

// SetLimit changes the limit, in keys. No call that is in is sent away: a lower limit holds
// as soon as enough of them have left.
func (a *Admission) SetLimit(limit int) {
	a.bound.Store(&bound{limit: int64(limit), refusal: fmt.Errorf("%w: %d keys are in work", seq.ErrOverloaded, limit)})
}

// Enter begins a call of so many keys; Leave with the same must follow. Otherwise
// seq.ErrOverloaded: retry later.
func (a *Admission) Enter(keys int) error {
	cost := int64(keys + CallCost)
	if b := a.bound.Load(); a.inWork.Add(cost) > b.limit {
		a.inWork.Add(-cost)
		a.refused.Add(1)
		return b.refusal
	}
	return nil
}

// Leave ends a call that Enter let in.
func (a *Admission) Leave(keys int) { a.inWork.Add(-int64(keys + CallCost)) }

// InWork is the weight of the calls in work, in keys.
func (a *Admission) InWork() int64 { return a.inWork.Load() }

// Limit is what InWork may be, in keys.
func (a *Admission) Limit() int64 { return a.bound.Load().limit }

// Refused is how many calls Enter has refused.
func (a *Admission) Refused() uint64 { return a.refused.Load() }
