package report

import (
	"fmt"
	"strings"

	"github.com/seqsvr/seqsvr/tests/e2e/bench/chart"
)

// series is one growth with its picture and its table.
type series struct {
	name, title, what string
	steps             []Step
	draw              []curve
	columns           []column
}

type curve struct {
	name string
	get  func(Step) float64
}

type column struct {
	head string
	text func(Step) string
}

var (
	rate   = curve{"numbers a second", func(s Step) float64 { return s.Rate }}
	half   = curve{"p50, µs", func(s Step) float64 { return s.P50 }}
	most   = curve{"p99, µs", func(s Step) float64 { return s.P99 }}
	memory = curve{"memory, MB", func(s Step) float64 { return s.MemoryMB }}
	ready  = curve{"start to ready, ms", func(s Step) float64 { return s.ReadyMS }}
	raise  = curve{"Raise p50, µs", func(s Step) float64 { return s.RaiseUS }}

	rateColumn   = column{"rate", func(s Step) string { return or(s.Rate, number(s.Rate)+"/s") }}
	halfColumn   = column{"p50", func(s Step) string { return duration(s.P50) }}
	mostColumn   = column{"p99", func(s Step) string { return duration(s.P99) }}
	cpuColumn    = column{"server µs", func(s Step) string { return cpu(s.ServerCPU) }}
	memoryColumn = column{"memory", func(s Step) string { return or(s.MemoryMB, digits(s.MemoryMB)+" MB") }}
	readyColumn  = column{"start to ready", func(s Step) string { return duration(s.ReadyMS * 1000) }}
	raiseColumn  = column{"Raise p50", func(s Step) string { return duration(s.RaiseUS) }}
)

func (d Data) series() []series {
	return []series{
		{"callers", "Callers", "Calls of the SDK in flight at once.",
			d.Growth.Callers, []curve{rate, half, most}, []column{rateColumn, halfColumn, mostColumn, cpuColumn}},
		{"uids", "UIDs", "Consecutive UIDs, most of them called before, 512 callers. Memory is resident, of the AllocSvr.",
			d.Growth.UIDs, []curve{rate, most, memory}, []column{rateColumn, mostColumn, cpuColumn, memoryColumn}},
		{"sections", "Sections", "512 callers, a cluster of its own for each point, as in the next two tables. Memory is of all AllocSvr.",
			d.Growth.Sections, []curve{rate, most, ready}, []column{rateColumn, memoryColumn, readyColumn}},
		{"stores", "StoreSvr", "512 callers. Numbers wait for no store; a `Raise` waits for the disks of W of them.",
			d.Growth.Stores, []curve{rate, most, raise}, []column{rateColumn, mostColumn, raiseColumn}},
		{"allocs", "AllocSvr", "512 callers. All share the same processors here, so more of them add no rate.",
			d.Growth.Allocs, []curve{rate, most, memory}, []column{rateColumn, mostColumn, memoryColumn}},
	}
}

// Charts are the pictures by file name.
func (d Data) Charts() (map[string]string, error) {
	out := map[string]string{}
	for _, s := range d.series() {
		if len(s.steps) == 0 {
			continue
		}
		c := chart.Chart{Title: "1 to " + grouped(s.steps[len(s.steps)-1].Size) + " " + s.title, XTitle: s.title, YTitle: "in the unit of the legend"}
		for _, curve := range s.draw {
			line := chart.Series{Name: curve.name}
			for _, step := range s.steps {
				line.Points = append(line.Points, chart.Point{X: step.Size, Y: curve.get(step)})
			}
			c.Series = append(c.Series, line)
		}
		svg, err := c.SVG()
		if err != nil {
			return nil, err
		}
		out[s.name+".svg"] = svg
	}
	return out, nil
}

func (d Data) growth(b *strings.Builder) {
	first := true
	for _, s := range d.series() {
		if len(s.steps) == 0 {
			continue
		}
		if first {
			b.WriteString("## How cost grows\n\n")
			first = false
		}
		fmt.Fprintf(b, "### %s\n\n%s\n\n![%s](benchmarks/%s.svg)\n\n", s.title, s.what, s.title, s.name)
		header := []string{s.title}
		for _, c := range s.columns {
			header = append(header, c.head)
		}
		var rows [][]string
		for _, step := range s.steps {
			row := []string{grouped(step.Size)}
			for _, c := range s.columns {
				row = append(row, c.text(step))
			}
			rows = append(rows, row)
		}
		table(b, header, rows)
	}
}
