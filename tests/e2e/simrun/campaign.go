package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/tests/sim"
)

// campaign runs seed after seed until its time is over.
type campaign struct {
	run     runner // of every seed
	exact   func(context.Context) (runner, error)
	out     io.Writer
	kept    []sim.Kept    // run first, all of them
	first   uint64        // of the fresh seeds; they follow one another
	engines []sim.Engine  // of the fresh seeds, in turn
	length  time.Duration // of one run; if zero, the seed's own
	wall    time.Duration // for fresh seeds; zero means no bound
	virtual time.Duration // to be simulated; zero means no bound
	workers int
	all     bool // go on after a failure, which is told at once

	mu     sync.Mutex // guards all below
	next   int        // index of the next seed: first the kept ones
	begin  time.Time
	total  sim.Report
	of     map[sim.Engine]*sim.Report
	broken []sim.Result
	failed error
}

// seed gives the next seed, false when enough have been run. One failure ends it unless
// all are wanted.
func (c *campaign) seed() (next sim.Kept, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.next
	switch {
	case c.failed != nil || len(c.broken) > 0 && !c.all:
		return next, false
	case i < len(c.kept):
	case c.wall > 0 && time.Since(c.begin) >= c.wall,
		c.virtual > 0 && c.total.Virtual >= c.virtual:
		return next, false
	}
	c.next++
	if i < len(c.kept) {
		return c.kept[i], true
	}
	n := i - len(c.kept)
	return sim.Kept{Seed: c.first + uint64(n), Engine: c.engines[n%len(c.engines)]}, true
}

// work runs the campaign; nil if every promise was kept in every run.
func (c *campaign) work(ctx context.Context) error {
	c.begin = time.Now()
	var wg sync.WaitGroup
	for range c.workers {
		wg.Go(func() {
			for ctx.Err() == nil {
				seed, ok := c.seed()
				if !ok {
					return
				}
				c.take(c.once(ctx, seed))
			}
		})
	}
	wg.Wait()
	c.total.Wall = time.Since(c.begin)
	c.sum()
	if c.failed != nil {
		return c.failed
	}
	if len(c.broken) > 0 {
		return c.explain(ctx, c.broken[0])
	}
	return ctx.Err()
}

// sum prints what was run on each engine.
func (c *campaign) sum() {
	for _, e := range engines["all"] {
		if r := c.of[e]; r != nil && r.Runs < c.total.Runs {
			fmt.Fprintf(c.out, "on %s: %v", e, *r)
		}
	}
	fmt.Fprint(c.out, c.total)
}

// runLimit is the time that a run may take, many times what any needs: one that takes
// longer hangs, as with a goroutine that virtual time does not wait for.
const runLimit = 3 * time.Minute

var errHangs = fmt.Errorf("the run has not ended in %v", runLimit)

// once runs a seed.
func (c *campaign) once(ctx context.Context, next sim.Kept) (sim.Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, runLimit, errHangs)
	defer cancel()
	return c.run.run(ctx, sim.Job{Seed: next.Seed, Engine: next.Engine, Length: c.length}, false)
}

func (c *campaign) take(r sim.Result, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		if c.failed == nil {
			c.failed = err
		}
		return
	}
	c.total.Add(r)
	if c.of == nil {
		c.of = map[sim.Engine]*sim.Report{}
	}
	if c.of[r.Engine] == nil {
		c.of[r.Engine] = &sim.Report{}
	}
	c.of[r.Engine].Add(r)
	if len(r.Violations) > 0 {
		c.broken = append(c.broken, r)
		if c.all {
			c.tell(r)
		}
	}
}

// tell prints what a run broke.
func (c *campaign) tell(r sim.Result) {
	fmt.Fprintf(c.out, "\nseed %d on %s breaks a promise:\n", r.Seed, r.Engine)
	for _, v := range r.Violations {
		fmt.Fprintf(c.out, "  %s\n", v)
	}
}

// shrinkTime bounds the search for a shorter schedule.
const shrinkTime = 5 * time.Minute

// explain prints all that is needed to work on a failure.
func (c *campaign) explain(ctx context.Context, r sim.Result) error {
	c.tell(r)
	failure := fmt.Errorf("%w: seed %d on %s: %s", errBroken, r.Seed, r.Engine, r.Violations[0])
	exact, err := c.exact(ctx)
	if err != nil {
		return fmt.Errorf("%w; no exact run of it: %w", failure, err)
	}
	again, err := exact.run(ctx, sim.Job{Seed: r.Seed, Engine: r.Engine, Length: c.length}, false)
	if err != nil || len(again.Violations) == 0 {
		fmt.Fprintf(c.out, "as WebAssembly it breaks none (%v): it takes another order of goroutines; the schedule:\n", err)
		printLines(c.out, r.Faults)
		return failure
	}
	short := shrink(ctx, exact, again, c.length, shrinkTime)
	traced, err := exact.run(ctx, sim.Job{Seed: r.Seed, Engine: r.Engine, Faults: short.Faults, OwnFaults: true, Length: c.length}, true)
	if err != nil {
		return fmt.Errorf("%w; no trace of it: %w", failure, err)
	}
	fmt.Fprintf(c.out, "events, the last of %d:\n", len(traced.Trace))
	printLines(c.out, traced.Trace[max(0, len(traced.Trace)-traceTail):])
	fmt.Fprintf(c.out, "schedule, %d of %d faults:\n", len(short.Faults), len(again.Faults))
	printLines(c.out, short.Faults)
	fmt.Fprintf(c.out, "again: cd tests/e2e && go run ./simrun -engine %s -seed %d -length %v -trace\n", r.Engine, r.Seed, c.length)
	fmt.Fprintf(c.out, "keep it: add the line %v to tests/sim/testdata/seeds.txt\n", sim.Kept{Seed: r.Seed, Engine: r.Engine})
	return failure
}

// traceTail is the number of events that are printed of a failure.
const traceTail = 400

func printLines(out io.Writer, lines []string) {
	for _, line := range lines {
		fmt.Fprintln(out, " ", line)
	}
}
