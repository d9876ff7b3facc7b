package report

import (
	"fmt"
	"slices"
	"strings"
)

// Markdown is the whole report.
func (d Data) Markdown() string {
	var b strings.Builder
	b.WriteString("# Benchmarks\n\n" + intro + "\n\n")
	d.machine(&b)
	d.reached(&b)
	for _, g := range groups(d.Subjects) {
		d.group(&b, g)
	}
	d.growth(&b)
	d.paper(&b)
	d.commands(&b)
	return b.String()
}

const intro = `Written by ` + "`make bench`" + ` and not by hand. It measures this tree and, on the same machine and in the same
run, what else is installed. All servers run at once and are measured in turns, round after round, so that what
disturbs the machine disturbs all alike; figures are medians of the rounds, ratios are medians of the ratios
within a round. Client and server share the machine.`

func (d Data) machine(b *strings.Builder) {
	m := d.Machine
	b.WriteString("## Where\n\n")
	rows := [][]string{
		{"date", m.Date},
		{"processors", fmt.Sprintf("%d × %s", m.Cores, m.CPU)},
		{"memory", fmt.Sprintf("%.0f GB", m.MemoryGB)},
		{"kernel", m.Kernel},
		{"disk", fmt.Sprintf("%s; a write of 4 kB with fdatasync takes %s, p99 %s", m.Disk, duration(m.FsyncP50), duration(m.FsyncP99))},
		{"load average", fmt.Sprintf("%.2f before, %.2f after", m.LoadStart, m.LoadEnd)},
		{"idling", m.Idling},
		{"idle", fmt.Sprintf("all servers together used %.2f processors while nobody called", m.IdleCores)},
		{"versions", strings.Join(m.Versions, "; ")},
		{"command", fmt.Sprintf("`%s`; rounds: %d; a measurement takes %.3g s", m.Command, d.Runs, d.Seconds)},
	}
	b.WriteString("| | |\n|---|---|\n")
	for _, row := range rows {
		fmt.Fprintf(b, "| %s | %s |\n", row[0], row[1])
	}
	b.WriteByte('\n')
	for _, s := range d.Skipped {
		fmt.Fprintf(b, "- not measured: %s\n", s)
	}
	if len(d.Skipped) > 0 {
		b.WriteByte('\n')
	}
}

func (d Data) reached(b *strings.Builder) {
	b.WriteString("## To reach, and reached\n\nA ratio is to Redis `INCR` of random keys without persistence, not pipelined unless said, with as many callers; " +
		"calls of many\nnumbers, which few callers make, are held against Redis with 64.\n\n")
	var rows [][]string
	for _, o := range d.outcomes() {
		rows = append(rows, []string{o.what, o.wanted(), o.got(), o.verdict()})
	}
	table(b, []string{"path", "to reach", "reached", ""}, rows)
}

// groups are the groups of the subjects in order.
func groups(list []Subject) (out []string) {
	for _, s := range list {
		if len(s.Samples) > 0 && !slices.Contains(out, s.Group) {
			out = append(out, s.Group)
		}
	}
	return out
}

func (d Data) group(b *strings.Builder, group string) {
	fmt.Fprintf(b, "## %s\n\n", group)
	var rows [][]string
	var commits bool
	for _, s := range d.Subjects {
		commits = commits || s.Group == group && s.Median().Commits > 0
	}
	for _, s := range d.Subjects {
		if s.Group != group || len(s.Samples) == 0 {
			continue
		}
		m := s.Median()
		low, high := s.Spread()
		unit := s.Unit
		if unit == "" {
			unit = "/s"
		}
		ratio := d.ratio(s.ID, s.Baseline)
		row := []string{s.Title, or(float64(s.Callers), grouped(float64(s.Callers))),
			or(m.Rate, fmt.Sprintf("**%s**%s", number(m.Rate), unit)), or(m.Rate, number(low)+" – "+number(high)),
			duration(m.P50), duration(m.P99), duration(m.P999), cpu(m.ClientCPU), cpu(m.ServerCPU), or(ratio, number(ratio)+" ×"), s.Durable}
		if commits {
			row = slices.Insert(row, 9, or(m.Commits, number(m.Commits)))
		}
		rows = append(rows, row)
	}
	header := []string{"what", "callers", "rate", "least – most", "p50", "p99", "p99.9", "client µs", "server µs", "to Redis", "an answer survives"}
	if commits {
		header = slices.Insert(header, 9, "commits/s a store")
	}
	table(b, header, rows)
	if note := notes[group]; note != "" {
		b.WriteString(note + "\n\n")
	}
}

// cpu is processor time for a number, in µs.
func cpu(us float64) string { return or(us, digits(us)) }

func (d Data) commands(b *strings.Builder) {
	b.WriteString("## Commands\n\nWith `ADDR`, `HTTP` and `PORT` where the servers listen.\n\n```\n")
	seen := map[string]bool{}
	for _, s := range d.Subjects {
		if s.Command == "" || seen[s.Command] || len(s.Samples) == 0 {
			continue
		}
		seen[s.Command] = true
		fmt.Fprintf(b, "%-26s %s\n", s.ID, s.Command)
	}
	b.WriteString("```\n")
}
