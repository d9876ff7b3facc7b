package report

import (
	"fmt"
	"math"
	"strings"
)

// The load that the design is asked for, and the size of machine in which the report counts its needs.
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
	fmt.Fprintf(b, "## On paper: 10⁷ requests a second, 4 billion UIDs\n\nComputed, not measured, for machines with %d processors as fast as these, %d %% busy, and %d GB.\n\n",
		machineCores, int(busy*100), machineGB)
	var rows [][]string
	for _, n := range list {
		rows = append(rows, []string{n.way, digits(n.serverCPU), number(n.cores), grouped(n.boxes)})
	}
	table(b, []string{"way of calling", "server µs a number", "processors", "machines"}, rows)
	sections := math.Ceil(wantUIDs / perSection)
	fmt.Fprintf(b, "- **Sections**: %s of %s UIDs each; %.1f MB of records on each StoreSvr.\n", grouped(sections), grouped(perSection), sections*64/1e6)
	if per := bytesPerUID(d.Growth.UIDs); per > 0 {
		gb := per * wantUIDs / 1e9
		fmt.Fprintf(b, "- **Memory**: %s bytes a UID (slope between the two largest points above), so %s GB for all UIDs. Machines: %s, and\n"+
			"  spare ones for those that may fail.\n", digits(per), digits(gb), grouped(math.Ceil(gb/(machineGB*0.75))))
	}
	fmt.Fprintf(b, "- **Store writes**: at most %s steps a second, of %s numbers each", grouped(wantRate/step), grouped(step))
	if d.Machine.FsyncP50 > 0 {
		fmt.Fprintf(b, ". A commit takes thousands of them and two fdatasync, %s here:\n  up to %s commits a second",
			duration(2*d.Machine.FsyncP50), number(1e6/(2*d.Machine.FsyncP50)))
	}
	b.WriteString(". Three StoreSvr carry that.\n")
}
