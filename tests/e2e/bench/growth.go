package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/seqsvr/seqsvr/tests/e2e/bench/own"
	"github.com/seqsvr/seqsvr/tests/e2e/bench/report"
)

// growthRuns is the number of measurements at each point of a growth.
const growthRuns = 3

// growing makes the points of one growth.
type growing struct {
	f   *field
	ctx context.Context
	bin string
	n   int // clusters started
}

// growth measures how cost grows, in clusters of their own.
func (f *field) growth(ctx context.Context, bin string) error {
	g := &growing{f: f, ctx: ctx, bin: bin}
	to := &f.data.Growth
	for _, part := range []func(*report.Growth) error{g.callers, g.uids, g.sections, g.stores, g.allocs} {
		if err := part(to); err != nil {
			return fmt.Errorf("growth: %w", err)
		}
	}
	return nil
}

// take adds a point, or notes why it is missing. An error is the end of the run.
func (g *growing) take(to *[]report.Step, what string, size int, step report.Step, err error) error {
	if g.ctx.Err() != nil {
		return g.ctx.Err()
	}
	if err != nil {
		say("growth  %s %d: %v", what, size, err)
		g.f.data.Skipped = append(g.f.data.Skipped, fmt.Sprintf("growth, %d %s: %v", size, what, err))
		return nil
	}
	*to = append(*to, step)
	return nil
}

// with starts a cluster for the time of do, and removes what it left on disk.
func (g *growing) with(size own.Size, do func(c *own.Cluster) error) error {
	g.n++
	dir := filepath.Join(g.f.dir, fmt.Sprintf("growth-%d", g.n))
	c, err := own.Start(g.ctx, g.bin, dir, size)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	defer c.Close()
	return do(c)
}

// point is the middle of some measurements of one size.
func (g *growing) point(c *own.Cluster, what string, size float64, flags ...string) (report.Step, error) {
	var list []report.Step
	for range min(growthRuns, g.f.settings.runs) {
		got, err := c.Bench(g.ctx, min(g.f.settings.duration, 1500*time.Millisecond), flags...)
		if err != nil {
			return report.Step{}, err
		}
		memory, err := c.MemoryMB()
		if err != nil {
			return report.Step{}, err
		}
		list = append(list, report.Step{Size: size, Rate: got.Rate, P50: got.P50, P99: got.P99, ServerCPU: got.ServerCPU, MemoryMB: memory})
	}
	step := report.MiddleStep(list)
	step.ReadyMS = float64(c.Ready.Milliseconds())
	say("growth  %-10s %10.0f  %14.0f/s  p99 %8.0f µs  %6.0f MB  ready in %5.0f ms", what, size, step.Rate, step.P99, step.MemoryMB, step.ReadyMS)
	return step, nil
}

func (g *growing) callers(to *report.Growth) error {
	return g.with(own.Size{Stores: 3, Allocs: 1}, func(c *own.Cluster) error {
		for _, n := range []int{1, 4, 16, 64, 256, 1024, 4096} {
			step, err := g.point(c, "callers", float64(n), own.Flags(n)...)
			if err := g.take(&to.Callers, "callers", n, step, err); err != nil {
				return err
			}
		}
		return nil
	})
}

// filled takes a number of all of the UIDs, or nearly, before the measurement.
func (g *growing) filled(c *own.Cluster, n int) (report.Step, error) {
	uids := []string{"--uids", strconv.Itoa(n)}
	if n >= 100_000 {
		fill := time.Duration(max(n/2_000_000, 1)) * time.Second
		flags := append(uids[:2:2], "--target", "batch", "--batch", "1000", "--callers", "4")
		if _, err := c.Bench(g.ctx, fill, flags...); err != nil {
			return report.Step{}, err
		}
	}
	return g.point(c, "uids", float64(n), own.Flags(512, uids...)...)
}

func (g *growing) uids(to *report.Growth) error {
	return g.with(own.Size{Stores: 3, Allocs: 1}, func(c *own.Cluster) error {
		for _, n := range []int{1, 100, 10_000, 100_000, 1_000_000, 10_000_000} {
			step, err := g.filled(c, n)
			if err := g.take(&to.UIDs, "UIDs", n, step, err); err != nil {
				return err
			}
		}
		return nil
	})
}

// cluster measures one size in a cluster of its own.
func (g *growing) cluster(what string, size float64, of own.Size, raise bool) (step report.Step, err error) {
	err = g.with(of, func(c *own.Cluster) error {
		if step, err = g.point(c, what, size, own.Flags(512)...); err != nil || !raise {
			return err
		}
		took, err := c.Raise(g.ctx)
		step.RaiseUS = float64(took.Nanoseconds()) / 1000
		return err
	})
	return step, err
}

func (g *growing) sections(to *report.Growth) error {
	for _, n := range []uint32{1, 16, 256, 4096, 42_950} {
		step, err := g.cluster("sections", float64(n), own.Size{Stores: 3, Allocs: 1, Sections: n}, false)
		if err := g.take(&to.Sections, "sections", int(n), step, err); err != nil {
			return err
		}
	}
	return nil
}

func (g *growing) stores(to *report.Growth) error {
	for n := 1; n <= 5; n++ {
		step, err := g.cluster("stores", float64(n), own.Size{Stores: n, Allocs: 1}, true)
		if err := g.take(&to.Stores, "stores", n, step, err); err != nil {
			return err
		}
	}
	return nil
}

func (g *growing) allocs(to *report.Growth) error {
	for _, n := range []int{1, 2, 4, 8} {
		step, err := g.cluster("allocs", float64(n), own.Size{Stores: 3, Allocs: n}, false)
		if err := g.take(&to.Allocs, "allocs", n, step, err); err != nil {
			return err
		}
	}
	return nil
}
