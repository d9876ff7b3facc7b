package main

import (
	"context"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/tests/sim"
)

// runner simulates one job, with all events in the result if traced.
type runner interface {
	run(ctx context.Context, job sim.Job, traced bool) (sim.Result, error)
}

// shrink looks for a short schedule under which the seed still breaks the same promise:
// it leaves out halves, quarters and so on down to single faults, until nothing more can
// go or the time is over. Each try is a run of its own.
func shrink(ctx context.Context, r runner, failing sim.Result, length, patience time.Duration) sim.Result {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	best := failing
	try := func(faults []string) bool {
		got, err := r.run(ctx, sim.Job{Seed: failing.Seed, Engine: failing.Engine, Faults: faults, OwnFaults: true, Length: length}, false)
		if err != nil || len(got.Violations) == 0 || got.Violations[0].Kind != failing.Violations[0].Kind {
			return false
		}
		best = got
		return true
	}
	for size := max(1, len(best.Faults)/2); ; size = size / 2 {
		for from := 0; from < len(best.Faults) && ctx.Err() == nil; {
			to := min(from+size, len(best.Faults))
			// If the try succeeds, best no longer has the faults that were left out.
			if !try(slices.Delete(slices.Clone(best.Faults), from, to)) {
				from = to
			}
		}
		if size <= 1 || ctx.Err() != nil {
			return best
		}
	}
}
