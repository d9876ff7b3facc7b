package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/tests/e2e/bench/own"
	"github.com/seqsvr/seqsvr/tests/e2e/bench/peers"
	"github.com/seqsvr/seqsvr/tests/e2e/bench/report"
)

// subject is one thing to measure.
type subject struct {
	report.Subject
	measure func(ctx context.Context, d time.Duration) (report.Sample, error)
}

// namespace has a layout of 2^20 IDs a millisecond. Twitter's layout has 4,096, and the benchmark would
// measure only that limit.
const (
	namespace       = "bench"
	namespaceLayout = "time:39,worker:4,sequence:20;unit=1ms;epoch=1704067200000"
)

func redisID(persistence string, pipeline, callers int) string {
	return fmt.Sprintf("redis/%s/p%d/c%d", persistence, pipeline, callers)
}

// ownSubjects are the paths of this tree.
func ownSubjects(c *own.Cluster) []subject {
	const disks = "2 of 3 stores' disks"
	var out []subject
	add := func(group, id, title, durable string, callers, base int, flags ...string) {
		all := own.Flags(callers, flags...)
		s := report.Subject{ID: id, Group: group, Title: title, Callers: callers, Durable: durable, Command: own.Command(all...)}
		if base > 0 {
			s.Baseline = redisID("none", 1, base)
		}
		out = append(out, subject{s, func(ctx context.Context, d time.Duration) (report.Sample, error) { return c.Bench(ctx, d, all...) }})
	}
	path := func(id, title string, callers, base int, flags ...string) {
		add(report.GroupOwn, id, title, disks, callers, base, flags...)
	}
	path("next/c64", "`Next`", 64, 64)
	path("next/c512", "`Next`", 512, 512)
	path("next/c4096", "`Next`", 4096, 4096)
	path("batch/100", "`NextBatch` of 100 UIDs", 16, 64, "--target", "batch", "--batch", "100")
	path("batch/1000", "`NextBatch` of 1,000 UIDs", 16, 64, "--target", "batch", "--batch", "1000")
	path("unary/c64", "plain unary `Next`", 64, 64, "--target", "unary")
	path("router/c512", "`Next` by a router", 512, 512, "--target", "router")
	path("http/c64", "HTTP/JSON `next`", 64, 64, "--target", "http")
	path("snowflake/1000", "snowflake, 1,000 a call", 16, 64, "--target", "snowflake", "--batch", "1000", "--namespace", namespace)
	path("snowflake/twitter", "the same, Twitter's layout", 16, 64, "--target", "snowflake", "--batch", "1000")
	path("segment/1", "segment, one tag", 64, 64, "--target", "segment")
	path("segment/1000", "segment, one tag, 1,000 a call", 64, 64, "--target", "segment", "--batch", "1000")

	for _, callers := range []int{64, 512} {
		path(fmt.Sprintf("strict/c%d", callers), "`Next` of a strict space", callers, callers, "--space", own.StrictSpace)
	}
	for _, callers := range []int{64, 512} {
		path(fmt.Sprintf("tickets/c%d", callers), "`Open` and `Done`", callers, callers, "--target", "ticket", "--space", own.TicketSpace)
	}
	for _, callers := range []int{1, 64, 512} {
		path(fmt.Sprintf("exact/c%d", callers), "`Next` of an exact space, with ids", callers, 0, "--space", own.ExactSpace)
		out[len(out)-1].Baseline = redisID("always", 1, callers)
	}

	million := slices.Clip([]string{"--target", "batch", "--batch", "100", "--scatter", "--rate", "1e6"})
	steps := func(id, title string, callers int, flags ...string) {
		add(report.GroupSteps, id, title, disks, callers, 0, flags...)
	}
	steps("steps/uniform", "1 million numbers/s, random UIDs", 64, million...)
	steps("steps/zipf", "the same, Zipf", 64, append(million, "--dist", "zipf")...)
	steps("steps/busy", "1 million numbers/s, 100 busy UIDs", 64, append(million, "--uids", "100")...)
	steps("steps/c64", "`Next`, 100 busy UIDs", 64, "--scatter", "--uids", "100")
	steps("steps/c512", "the same", 512, "--scatter", "--uids", "100")
	return out
}

// engineSubjects are one path over StoreSvr and over etcd. All are compared with the first of the
// clusters.
func engineSubjects(name, durable, base string, c *own.Cluster) []subject {
	var out []subject
	add := func(id, title string, callers int, command string, measure func(ctx context.Context, d time.Duration) (report.Sample, error)) {
		s := report.Subject{ID: "engine/" + id + "/" + name, Group: report.GroupEngines, Title: title + ", " + durable, Callers: callers, Command: command}
		if base != name {
			s.Baseline = "engine/" + id + "/" + base
		}
		out = append(out, subject{s, measure})
	}
	path := func(id, title string, callers int, flags ...string) {
		all := own.Flags(callers, flags...)
		add(id, title, callers, own.Command(all...), func(ctx context.Context, d time.Duration) (report.Sample, error) { return c.Bench(ctx, d, all...) })
	}
	path("c64", "`Next`", 64)
	path("c512", "`Next`", 512)
	path("steps", "1 million numbers/s, 100 busy UIDs", 64, "--target", "batch", "--batch", "100", "--scatter", "--rate", "1e6", "--uids", "100")
	lasts := func(id, title string, measure func(context.Context) (time.Duration, error)) {
		add(id, title, 0, "", func(ctx context.Context, _ time.Duration) (report.Sample, error) {
			took, err := measure(ctx)
			return report.Sample{P50: float64(took.Microseconds())}, err
		})
	}
	lasts("first", "a started AllocSvr, until an SDK has its first number", func(ctx context.Context) (time.Duration, error) {
		first, _, err := c.Restart(ctx)
		return first, err
	})
	lasts("start", "the same, until each of 4,096 sections has given one", func(ctx context.Context) (time.Duration, error) {
		_, all, err := c.Restart(ctx)
		return all, err
	})
	lasts("takeover", "PREPARE and STEP of 1,366 sections", func(ctx context.Context) (time.Duration, error) { return c.Takeover(ctx, 1366) })
	return out
}

// emptySubjects are what gRPC reaches by itself, to be seen beside unary/c64.
func emptySubjects(e *own.Empty) []subject {
	all := own.Flags(64, "--target", "unary")
	s := report.Subject{ID: "unary/empty/c64", Group: report.GroupOwn, Title: "the same, a handler that does nothing", Callers: 64, Durable: "nothing",
		Baseline: redisID("none", 1, 64), Command: own.Command(all...)}
	return []subject{{s, func(ctx context.Context, d time.Duration) (report.Sample, error) { return e.Bench(ctx, d, all...) }}}
}

// goSubjects are the benchmarks in process.
func goSubjects(g *own.GoBench) []subject {
	perCall := func(id, title, pattern string, group string, read func(m map[string]float64) report.Sample, benchtime func(time.Duration) string) subject {
		s := report.Subject{ID: id, Group: group, Title: title, Command: "go test -run '^$' -bench '" + pattern + "' ./tests/bench"}
		return subject{s, func(ctx context.Context, d time.Duration) (report.Sample, error) {
			m, err := g.Run(ctx, pattern, benchtime(d))
			if err != nil {
				return report.Sample{}, err
			}
			return read(m), nil
		}}
	}
	timed := func(d time.Duration) string { return d.String() }
	take := func(m map[string]float64) report.Sample {
		return report.Sample{Rate: m["numbers/s"], P50: m["ns/op"] / 1000}
	}
	out := []subject{
		perCall("inside/1", "`Take` of one number", "Inside/uids=1$", report.GroupInside, take, timed),
		perCall("inside/100", "`Take` for 100 UIDs", "Inside/uids=100$", report.GroupInside, take, timed),
		perCall("inside/1000", "`Take` for 1,000 UIDs", "Inside/uids=1000$", report.GroupInside, take, timed),
	}
	takeover := perCall("takeover", "takeover of 14,317 sections", "Takeover/sections=42950$", report.GroupSteps,
		func(m map[string]float64) report.Sample { return report.Sample{P50: m["prepare+step-ms"] * 1000} },
		func(time.Duration) string { return "3x" })
	return append(out, takeover)
}

var survives = map[string]string{"none": "nothing", "everysec": "a crash, but for a second", "always": "one disk"}

func redisSubjects(r *peers.Redis, persistence string) []subject {
	var out []subject
	pipelines := []int{1, 16, 100}
	if persistence != "none" {
		pipelines = []int{1} // a pipeline with persistence is slower than one without
	}
	for _, pipeline := range pipelines {
		for _, callers := range []int{1, 64, 512, 4096} {
			if callers == 4096 && (pipeline > 1 || persistence != "none") || callers == 1 && pipeline > 1 {
				continue // only baselines are wanted with so many, and with one
			}
			title := "INCR, appendfsync " + persistence
			if persistence == "none" {
				title = "INCR, no persistence"
			}
			if pipeline > 1 {
				title += fmt.Sprintf(", pipeline %d", pipeline)
			}
			s := report.Subject{ID: redisID(persistence, pipeline, callers), Group: report.GroupRedis, Title: title, Callers: callers,
				Durable: survives[persistence], Baseline: redisID("none", 1, callers), Command: peers.RedisCommand(callers, pipeline)}
			out = append(out, subject{s, func(ctx context.Context, d time.Duration) (report.Sample, error) {
				return r.Incr(ctx, callers, pipeline, d)
			}})
		}
	}
	return out
}

// frontSubjects are a router as clients of Redis see it, beside Redis with the same pipeline.
func frontSubjects(r *peers.Redis) []subject {
	var out []subject
	for _, it := range []struct{ pipeline, callers int }{{1, 64}, {1, 512}, {16, 64}, {100, 64}} {
		title := "Redis `INCR` by a router"
		if it.pipeline > 1 {
			title += fmt.Sprintf(", pipeline %d", it.pipeline)
		}
		s := report.Subject{ID: fmt.Sprintf("resp/p%d/c%d", it.pipeline, it.callers), Group: report.GroupOwn, Title: title, Callers: it.callers,
			Durable: "2 of 3 stores' disks", Baseline: redisID("none", it.pipeline, it.callers), Command: peers.RedisCommand(it.callers, it.pipeline)}
		out = append(out, subject{s, func(ctx context.Context, d time.Duration) (report.Sample, error) {
			return r.Incr(ctx, it.callers, it.pipeline, d)
		}})
	}
	return out
}

func etcdSubjects(e *peers.Etcd) []subject {
	var out []subject
	for _, callers := range []int{64, 512} {
		s := report.Subject{ID: fmt.Sprintf("etcd/c%d", callers), Group: report.GroupEtcd, Title: "transaction, one member", Callers: callers,
			Durable: "one disk", Baseline: redisID("none", 1, callers)}
		out = append(out, subject{s, func(ctx context.Context, d time.Duration) (report.Sample, error) { return e.Next(ctx, callers, d) }})
	}
	return out
}

func postgresSubjects(p *peers.Postgres) []subject {
	var out []subject
	for _, it := range []struct{ id, title, statement string }{
		{"nextval", "`nextval`", peers.Nextval}, {"update", "`UPDATE … RETURNING`", peers.Update},
	} {
		for _, callers := range []int{64, 512} {
			s := report.Subject{ID: fmt.Sprintf("postgres/%s/c%d", it.id, callers), Group: report.GroupPostgres, Title: it.title, Callers: callers,
				Durable: "one disk", Baseline: redisID("none", 1, callers)}
			out = append(out, subject{s, func(ctx context.Context, d time.Duration) (report.Sample, error) {
				return p.Next(ctx, it.statement, callers, d)
			}})
		}
	}
	return out
}
