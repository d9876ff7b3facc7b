package report

import "fmt"

// target is one line of what is to be reached.
type target struct {
	what    string
	subject string
	base    string  // id of the subject that the ratio compares with; if empty, a figure of its own
	limit   float64 // ratio at least, or figure at most
	figure  func(Sample) float64
	unit    string
}

// redis is the id of a Redis subject without persistence.
func redis(pipeline, callers int) string { return fmt.Sprintf("redis/none/p%d/c%d", pipeline, callers) }

func targets() []target {
	p99 := func(s Sample) float64 { return s.P99 / 1000 }
	ms := func(s Sample) float64 { return s.P50 / 1000 }
	commits := func(s Sample) float64 { return s.Commits }
	return []target{
		{what: "SDK, 64 callers", subject: "next/c64", base: redis(1, 64), limit: 4},
		{what: "SDK, 512 callers", subject: "next/c512", base: redis(1, 512), limit: 12},
		{what: "SDK, 4,096 callers", subject: "next/c4096", base: redis(1, 4096), limit: 14},
		{what: "clients of Redis by a router, 64 connections", subject: "resp/p1/c64", base: redis(1, 64), limit: 0.85},
		{what: "clients of Redis by a router, 512 connections", subject: "resp/p1/c512", base: redis(1, 512), limit: 0.85},
		{what: "the same, 64, both pipelined 16", subject: "resp/p16/c64", base: redis(16, 64), limit: 1},
		{what: "the same, 64, both pipelined 100", subject: "resp/p100/c64", base: redis(100, 64), limit: 2},
		{what: "SDK, 512 callers, to Redis pipelined 16", subject: "next/c512", base: redis(16, 512), limit: 2},
		{what: "SDK, 512 callers, to Redis pipelined 100", subject: "next/c512", base: redis(100, 512), limit: 2},
		{what: "`BatchNext` of 100 UIDs", subject: "batch/100", base: redis(1, 64), limit: 20},
		{what: "`BatchNext` of 1,000 UIDs", subject: "batch/1000", base: redis(1, 64), limit: 80},
		{what: "plain unary `Next`, 64 callers", subject: "unary/c64", base: redis(1, 64), limit: 0.30},
		{what: "by a router, 512 callers", subject: "router/c512", base: redis(1, 512), limit: 5},
		{what: "snowflake, 1,000 a call", subject: "snowflake/1000", base: redis(1, 64), limit: 100},
		{what: "HTTP/JSON `next`, 64 callers", subject: "http/c64", base: redis(1, 64), limit: 0.12},
		{what: "p99, SDK, 64 callers, 100 busy UIDs", subject: "steps/c64", limit: 0.15, figure: p99, unit: "ms"},
		{what: "p99, SDK, 512 callers, 100 busy UIDs", subject: "steps/c512", limit: 0.5, figure: p99, unit: "ms"},
		{what: "takeover of 14,317 sections", subject: "takeover", limit: 80, figure: ms, unit: "ms"},
		{what: "commits at 1 million numbers/s", subject: "steps/uniform", limit: 200, figure: commits, unit: "a second"},
		{what: "the same, 100 busy UIDs", subject: "steps/busy", limit: 200, figure: commits, unit: "a second"},
	}
}

// outcome is a target with what was reached.
type outcome struct {
	target
	reached float64
	known   bool
	pass    bool
}

func (d Data) outcomes() []outcome {
	var out []outcome
	for _, t := range targets() {
		o := outcome{target: t}
		if s, ok := d.find(t.subject); ok && t.figure != nil {
			o.reached, o.known = t.figure(s.Median()), true
			o.pass = o.reached <= t.limit
		}
		if t.figure == nil {
			o.reached = d.ratio(t.subject, t.base)
			o.known, o.pass = o.reached > 0, o.reached >= t.limit
		}
		out = append(out, o)
	}
	return out
}

// verdict in one word.
func (o outcome) verdict() string {
	switch {
	case !o.known:
		return "not measured"
	case o.pass:
		return "**PASS**"
	}
	return "short"
}

func (o outcome) wanted() string {
	if o.figure == nil {
		return fmt.Sprintf("≥ %s ×", number(o.limit))
	}
	return fmt.Sprintf("≤ %s %s", number(o.limit), o.unit)
}

func (o outcome) got() string {
	switch {
	case !o.known:
		return "–"
	case o.figure == nil:
		return number(o.reached) + " ×"
	}
	return number(o.reached) + " " + o.unit
}

// Wanted are the ids that targets are about: subjects and what they are compared with.
func Wanted() []string {
	var out []string
	for _, t := range targets() {
		out = append(out, t.subject)
		if t.base != "" {
			out = append(out, t.base)
		}
	}
	return out
}
