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
	return b.String()
}

const intro = `Written by ` + "`make bench`" + `. Servers and load share one machine and are measured in turns, round after round. Figures are
medians of the rounds; ratios are medians of the ratios within a round. ` + "`bench.json`" + ` in bin/ keeps every figure and the
command of every row.`

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
	b.WriteString("## To reach, and reached\n\nA ratio is to Redis `INCR` of random keys with as many callers, without persistence or pipelines unless the row says otherwise. Calls of\n" +
		"many numbers are compared with Redis and 64 callers.\n\n")
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
	list := slices.DeleteFunc(slices.Clone(d.Subjects), func(s Subject) bool { return s.Group != group || len(s.Samples) == 0 })
	base := "to Redis"
	if group == GroupEngines {
		base = "to StoreSvr"
	}
	if group == GroupClients {
		base = "to its Redis client"
	}
	rows := [][]string{{"what", "callers", "rate", "p50", "p99", "server µs", base, "commits/s a store", "an answer survives"}}
	same := true // then the note says what an answer survives
	for _, s := range list {
		same = same && s.Durable == list[0].Durable
		rows = append(rows, d.row(s))
	}
	for i := len(rows[0]) - 1; i > 0; i-- {
		empty := !slices.ContainsFunc(rows[1:], func(row []string) bool { return row[i] != "–" })
		if empty || same && rows[0][i] == "an answer survives" {
			for j := range rows {
				rows[j] = slices.Delete(rows[j], i, i+1)
			}
		}
	}
	table(b, rows[0], rows[1:])
	if note := notes[group]; note != "" {
		b.WriteString(note + "\n\n")
	}
}

// row has a dash where nothing was measured.
func (d Data) row(s Subject) []string {
	m := s.Median()
	unit := s.Unit
	if unit == "" {
		unit = "/s"
	}
	commits := m.Commits
	if s.Group != GroupSteps && s.Group != GroupEngines {
		commits = 0
	}
	ratio := d.ratio(s.ID, s.Baseline)
	return []string{s.Title, or(float64(s.Callers), grouped(float64(s.Callers))), or(m.Rate, fmt.Sprintf("**%s**%s", number(m.Rate), unit)),
		duration(m.P50), duration(m.P99), cpu(m.ServerCPU), or(ratio, number(ratio)+" ×"), or(commits, number(commits)), s.Durable}
}

// cpu is processor time for a number, in µs.
func cpu(us float64) string { return or(us, digits(us)) }
