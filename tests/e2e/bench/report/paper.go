package report

import (
	"fmt"
	"math"
	"strings"
)

// What is asked for on paper, and the machine that is counted in.
const (
	wantRate     = 1e7          // requests a second
	wantUIDs     = 4294967296.0 // 4 billion
	perSection   = 100_000      // UIDs
	step         = 10_000
	machineCores = 4
	machineGB    = 64
	busy         = 0.6 // of a machine's processors, so that two thirds of the machines carry the load of all
)

// need is what one way of calling needs for wantRate.
type need struct {
	way, subject            string
	serverCPU, cores, boxes float64
}

func needs(d Data) []need {
	var out []need
	for _, n := range []need{
		{way: "single `Next`, coalesced by SDKs with 512 callers each", subject: "next/c512"},
		{way: "single `Next`, coalesced by SDKs with 64 callers each", subject: "next/c64"},
		{way: "by way of routers, 512 callers (routers counted in)", subject: "router/c512"},
		{way: "plain unary calls from any language, straight to the owners", subject: "unary/c64"},
		{way: "HTTP/JSON (routers counted in)", subject: "http/c64"},
		{way: "`BatchNext` of 100 UIDs", subject: "batch/100"},
	} {
		s, ok := d.find(n.subject)
		if n.serverCPU = s.Median().ServerCPU; !ok || n.serverCPU == 0 {
			continue
		}
		n.cores = wantRate * n.serverCPU / 1e6
		n.boxes = math.Ceil(n.cores / machineCores / busy)
		out = append(out, n)
	}
	return out
}

// bytesPerUID is the slope of memory between the two largest clusters measured; 0
// where it is not known.
func bytesPerUID(steps []Step) float64 {
	if len(steps) < 2 {
		return 0
	}
	a, z := steps[len(steps)-2], steps[len(steps)-1]
	if z.Size <= a.Size || z.MemoryMB <= a.MemoryMB {
		return 0
	}
	return (z.MemoryMB - a.MemoryMB) * 1e6 / (z.Size - a.Size)
}

func (d Data) paper(b *strings.Builder) {
	list := needs(d)
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, "## On paper: 10⁷ requests a second, 4 billion UIDs\n\nComputed from the figures above, not measured: a machine here has %d processors as fast as these, %d %% busy,\nand %d GB.\n\n",
		machineCores, int(busy*100), machineGB)
	var rows [][]string
	for _, n := range list {
		rows = append(rows, []string{n.way, digits(n.serverCPU), number(n.cores), grouped(n.boxes)})
	}
	table(b, []string{"way of calling", "server µs a number", "processors", "machines"}, rows)
	sections := math.Ceil(wantUIDs / perSection)
	fmt.Fprintf(b, "- **Sections**: %s, of %s UIDs each; their ceilings and epochs are %s of records on each StoreSvr.\n",
		grouped(sections), grouped(perSection), fmt.Sprintf("%.1f MB", sections*64/1e6))
	if per := bytesPerUID(d.Growth.UIDs); per > 0 {
		gb := per * wantUIDs / 1e9
		fmt.Fprintf(b, "- **Memory**: %s bytes a UID (slope between the two largest points above), so %s GB if all 4 billion had been called since their\n"+
			"  AllocSvr started: %s of these machines, and as many spare ones as may fail at a time.\n", digits(per), digits(gb), grouped(math.Ceil(gb/(machineGB*0.75))))
	}
	fmt.Fprintf(b, "- **Store writes**: a section steps at most once for %s numbers, so at most %s section steps a second",
		grouped(step), grouped(wantRate/step))
	if s, ok := d.find("steps/busy"); ok && s.Median().Commits > 0 && s.Median().Rate > 0 {
		m := s.Median()
		fmt.Fprintf(b, ".\n  One AllocSvr at %s numbers/s made %s commits a second on a store; steps of all AllocSvr that meet at a store share its commits", number(m.Rate), number(m.Commits))
	}
	if d.Machine.FsyncP50 > 0 {
		fmt.Fprintf(b, ".\n  A commit is two fdatasync, %s on this disk: one StoreSvr can make %s commits a second, and one of them carries thousands of steps",
			duration(2*d.Machine.FsyncP50), number(1e6/(2*d.Machine.FsyncP50)))
	}
	b.WriteString(".\n  Three StoreSvr carry it; five survive the loss of two.\n\n")
}
