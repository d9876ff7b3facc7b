package lab

import (
	"context"
	"fmt"

	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/seq"
)

// Account tells the two kinds of gaps apart:
//
//	taken == answered + unheard + skipped
//
// A number is unheard if a node handed it out and no call of the load got it: its answer was
// late or lost, and the SDK took another one. That is the caller's gap, which
// docs/guarantees.md allows. A number is skipped if no node ever handed it out and the
// sequence stands above it: that is the cluster's, and a planned change makes none.
type Account struct {
	Answered uint64 `json:"answered"` // by the history of the load
	Unheard  uint64 `json:"unheard"`
	Skipped  uint64 `json:"skipped"`
	// Lapses: so often sections changed their owner without a hand-over, because a lease had
	// lapsed, as on a starved machine; what is skipped then is as after a crash.
	Lapses uint64 `json:"lapses"`
}

// err is ErrSkipped if the cluster broke its promise.
func (a *Account) err() error {
	if a == nil || a.Skipped == 0 || a.Lapses > 0 {
		return nil
	}
	return fmt.Errorf("%w: %d", ErrSkipped, a.Skipped)
}

// accounts is nil where the count cannot be made: the nodes count the numbers since their
// start, so it takes a cluster that only this load uses and in which no node was restarted. The
// load must have ended.
func (d *drill) accounts(ctx context.Context, sc Scenario) (*Account, error) {
	if d.Own == nil || !sc.Asks || d.onces != nil { // an exact space is held to more
		return nil, nil
	}
	calls := d.load.History.Calls()
	stands, err := d.stands(ctx, calls)
	if err != nil {
		return nil, err
	}
	handed, lapses := uint64(0), uint64(0)
	for _, n := range d.Role(alloc) {
		r, err := d.survey.status(ctx, n.Name, true)
		if err != nil {
			return nil, fmt.Errorf("numbers of %s: %w", n.Name, err)
		}
		handed += r.GetNumbers()
		lapses += r.GetTakeovers() + r.GetNacks()
	}
	a := balance(calls, stands, handed)
	a.Lapses = lapses
	return a, nil
}

// stands is where the sequence of each UID of the load stands, 0 where that is only known
// to be below something.
func (d *drill) stands(ctx context.Context, calls []history.Call) (map[uint64]uint64, error) {
	stands := map[uint64]uint64{}
	var uids []seq.UID
	for _, c := range calls {
		if _, ok := stands[c.UID]; !ok {
			stands[c.UID] = 0
			uids = append(uids, seq.UID(c.UID))
		}
	}
	for len(uids) > 0 {
		part := uids[:min(len(uids), seq.MaxBatch)]
		uids = uids[len(part):]
		values, err := d.load.paths[0].Client.Current(ctx, d.Load.Space, part)
		if err != nil {
			return nil, err
		}
		for i, v := range values {
			if v.Err != nil {
				return nil, v.Err
			}
			if !v.UpperBound {
				stands[uint64(part[i])] = uint64(v.Seq)
			}
		}
	}
	return stands, nil
}

// balance compares what was answered with what the nodes handed out, and both with where
// the sequences stand: at the highest answer at least, also where that is all that is known.
func balance(calls []history.Call, stands map[uint64]uint64, handed uint64) *Account {
	a, taken := &Account{}, uint64(0)
	for _, c := range calls {
		if c.Err == "" {
			a.Answered += c.Last - c.First + 1
			stands[c.UID] = max(stands[c.UID], c.Last)
		}
	}
	for _, n := range stands {
		taken += n
	}
	a.Unheard, a.Skipped = max(handed, a.Answered)-a.Answered, max(taken, handed)-handed
	return a
}
