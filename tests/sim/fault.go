package sim

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Fault is one entry of a schedule. It happens At, or at the first time that Point is
// passed at Host after At: the faults that find most come right after a promise, an ack,
// a hand-over or a seal.
//
// Its text is
//
//	12.5s [commit@s2] kill a1 for 3s
type Fault struct {
	At    time.Duration
	Point string // empty: at once
	Where string // host of the point; "*" for any
	Verb  string
	Host  string
	Peer  string        // cut, part
	For   time.Duration // how long it lasts
	Arg   float64       // rate, share of loss, seconds of a jump, which copy
}

// String is the text that ParseFault reads.
func (f Fault) String() string {
	var b strings.Builder
	b.WriteString(f.At.String())
	if f.Point != "" {
		fmt.Fprintf(&b, " [%s@%s]", f.Point, f.Where)
	}
	fmt.Fprintf(&b, " %s %s", f.Verb, cmp.Or(f.Host, "-"))
	if f.Peer != "" {
		b.WriteString(" " + f.Peer)
	}
	if f.Arg != 0 {
		b.WriteString(" by " + strconv.FormatFloat(f.Arg, 'g', -1, 64))
	}
	if f.For != 0 {
		b.WriteString(" for " + f.For.String())
	}
	return b.String()
}

// ParseFault reads the text of one fault.
func ParseFault(line string) (Fault, error) {
	var f Fault
	words := strings.Fields(line)
	bad := func(why string) (Fault, error) { return Fault{}, fmt.Errorf("fault %q: %s", line, why) }
	if len(words) < 3 {
		return bad("expected: time [point@host] verb host ...")
	}
	var err error
	if f.At, err = time.ParseDuration(words[0]); err != nil {
		return bad(err.Error())
	}
	words = words[1:]
	if strings.HasPrefix(words[0], "[") {
		point, where, ok := strings.Cut(strings.Trim(words[0], "[]"), "@")
		if !ok || len(words) < 3 {
			return bad("expected [point@host] verb host")
		}
		f.Point, f.Where, words = point, where, words[1:]
	}
	f.Verb, f.Host = words[0], words[1]
	if verbs[f.Verb] == nil {
		return bad("no such verb")
	}
	if f.Host == "-" {
		f.Host = ""
	}
	for words = words[2:]; len(words) > 0; {
		switch {
		case words[0] == "for" && len(words) > 1:
			if f.For, err = time.ParseDuration(words[1]); err != nil {
				return bad(err.Error())
			}
			words = words[2:]
		case words[0] == "by" && len(words) > 1:
			if f.Arg, err = strconv.ParseFloat(words[1], 64); err != nil {
				return bad(err.Error())
			}
			words = words[2:]
		default:
			f.Peer, words = words[0], words[1:]
		}
	}
	return f, nil
}

// ParseSchedule reads one fault a line; empty lines and those that begin with # are
// passed over.
func ParseSchedule(text string) ([]Fault, error) {
	var out []Fault
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		f, err := ParseFault(line)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// choice is one kind of fault with how often it is drawn.
type choice struct {
	weight int
	make   func(d *draw) Fault
}

// pick draws one of the choices.
func (d *draw) pick(from []choice) Fault {
	total := 0
	for _, c := range from {
		total += c.weight
	}
	pick := d.rng.IntN(total)
	i := 0
	for ; pick >= from[i].weight; i++ {
		pick -= from[i].weight
	}
	return from[i].make(d)
}

// draw makes faults from a seed.
type draw struct {
	rng    *rand.Rand
	o      Options
	alone  int // store that may be lost for good, one a run, -1 for none
	losses int
}

func (d *draw) store() string {
	if d.o.Care { // there are others later
		return storeName(d.rng.IntN(d.o.Stores + 2))
	}
	return storeName(d.rng.IntN(d.o.Stores))
}
func (d *draw) operator() string { return fmt.Sprintf("op%d", 1+d.rng.IntN(4)/3) }
func (d *draw) alloc() string    { return allocName(d.rng.IntN(d.o.Allocs)) }
func (d *draw) server() string {
	if d.rng.IntN(2) == 0 {
		return d.store()
	}
	return d.alloc()
}

// span is a length with many short ones and some long ones, in milliseconds.
func (d *draw) span(lo, hi time.Duration) time.Duration {
	x := d.rng.Float64()
	return (lo + time.Duration(x*x*x*float64(hi-lo))).Round(time.Millisecond)
}

var choices = []choice{
	{20, func(d *draw) Fault { return Fault{Verb: "kill", Host: d.alloc(), For: d.span(10e6, 12e9)} }},
	{16, killStore},
	{6, func(d *draw) Fault { return Fault{Verb: "killtold", Host: d.alloc(), For: d.span(10e6, 8e9)} }},
	{10, func(d *draw) Fault { return Fault{Verb: "leave", Host: d.alloc(), For: d.span(10e6, 8e9)} }},
	{5, func(d *draw) Fault { return Fault{Verb: "stop", Host: d.store(), For: d.span(10e6, 5e9)} }},
	{8, func(d *draw) Fault { return Fault{Verb: "drain", Host: d.alloc(), For: d.span(1e9, 20e9)} }},
	{6, func(d *draw) Fault {
		return Fault{Verb: "move", Host: d.alloc(), Arg: float64(d.rng.IntN(d.o.sections()))}
	}},
	{16, func(d *draw) Fault { return Fault{Verb: "pause", Host: d.alloc(), For: d.span(50e6, 15e9)} }},
	{6, func(d *draw) Fault { return Fault{Verb: "pause", Host: d.store(), For: d.span(50e6, 10e9)} }},
	{5, func(d *draw) Fault { return Fault{Verb: "freeze", Host: d.server(), For: d.span(50e6, 10e9)} }},
	{12, func(d *draw) Fault {
		return Fault{Verb: "cut", Host: d.server(), Peer: d.server(), For: d.span(100e6, 20e9)}
	}},
	{8, func(d *draw) Fault { return Fault{Verb: "isolate", Host: d.server(), For: d.span(100e6, 15e9)} }},
	{5, func(d *draw) Fault { return Fault{Verb: "deafen", Host: d.server(), For: d.span(100e6, 15e9)} }},
	{5, func(d *draw) Fault { return Fault{Verb: "mute", Host: d.server(), For: d.span(100e6, 15e9)} }},
	{6, func(d *draw) Fault {
		return Fault{Verb: "lossy", Arg: 0.02 + 0.3*d.rng.Float64(), For: d.span(1e9, 20e9)}
	}},
	{5, func(d *draw) Fault {
		return Fault{Verb: "dup", Arg: 0.05 + 0.4*d.rng.Float64(), For: d.span(1e9, 30e9)}
	}},
	{6, func(d *draw) Fault {
		return Fault{Verb: "delay", Arg: 0.01 + 1.5*d.rng.Float64()*d.rng.Float64(), For: d.span(1e9, 15e9)}
	}},
	{6, func(d *draw) Fault {
		return Fault{Verb: "rate", Host: d.server(), Arg: 1 + d.o.drift()*(2*d.rng.Float64()-1)}
	}},
	{8, (*draw).jump},
	{5, func(d *draw) Fault {
		return Fault{Verb: "rewind", Host: d.alloc(), Arg: 1 + 8*d.rng.Float64(), For: d.span(10e6, 3e9)}
	}},
	{6, func(d *draw) Fault { // while its step is under way, until its lease is over
		return Fault{Verb: "pause", Host: sender, Point: "step", Where: "*", For: d.o.Lease + d.span(10e6, d.o.Lease)}
	}},
	{5, func(d *draw) Fault {
		return Fault{Verb: "slowdisk", Host: d.store(), Arg: 0.05 + 2*d.rng.Float64()*d.rng.Float64(), For: d.span(1e9, 15e9)}
	}},
	{4, func(d *draw) Fault { return Fault{Verb: "full", Host: d.store(), For: d.span(500e6, 15e9)} }},
	{4, func(d *draw) Fault { return Fault{Verb: "eio", Host: d.store()} }},
	{3, func(d *draw) Fault { return Fault{Verb: "enospc", Host: d.store()} }},
	{3, func(d *draw) Fault { return Fault{Verb: "power", For: d.span(10e6, 5e9)} }},
	{2, func(d *draw) Fault { return Fault{Verb: "stopall", For: d.span(10e6, 5e9)} }},
	{6, func(d *draw) Fault {
		return Fault{Verb: "strand", Host: d.alloc(), Peer: d.store(), For: d.o.Lease + d.span(1e9, 15e9)}
	}},
	{6, func(d *draw) Fault {
		return Fault{Verb: "lag", Host: d.alloc(), Arg: d.o.Lease.Seconds() * (0.1 + 0.8*d.rng.Float64()), For: d.o.Lease + d.span(100e6, 5e9)}
	}},
	{4, func(d *draw) Fault {
		return Fault{Verb: "astray", Host: d.alloc(), Peer: d.store(), For: 2*d.o.Lease + d.span(1e9, 10e9)}
	}},
	{4, func(d *draw) Fault {
		return Fault{Verb: "twin", Host: d.alloc(), For: d.span(500e6, 12e9)}
	}},
	{5, (*draw).router},
	{4, (*draw).lose},
}

// jump sets a wall clock by seconds, minutes or hours. After a restore the wall clocks of
// stores bound what worker ids may have been used up to, so these stay right in runs with
// operators.
func (d *draw) jump() Fault {
	f := Fault{Verb: "jump", Host: d.server()}
	if d.o.Care || d.rng.IntN(3) == 0 {
		f.Host = d.alloc()
	}
	if d.rng.IntN(3) == 0 {
		f.Host = fmt.Sprintf("c%d", 1+d.rng.IntN(d.o.Callers))
	}
	most := []float64{10, 10, 10, 1800, 18000}[d.rng.IntN(5)]
	f.Arg = math.Round(most * (2*d.rng.Float64() - 1))
	return f
}

// router has a router away for a while, or cut off from one allocator.
func (d *draw) router() Fault {
	name := fmt.Sprintf("r%d", 1+d.rng.IntN(max(1, d.o.Routers)))
	f := Fault{Verb: []string{"kill", "kill", "pause", "cut"}[d.rng.IntN(4)], Host: name, For: d.span(10e6, 10e9)}
	if f.Verb == "cut" {
		f.Peer = d.alloc()
	}
	if d.o.Routers == 0 {
		f.Host = d.alloc()
	}
	return f
}

func killStore(d *draw) Fault {
	return Fault{Verb: "kill", Host: d.store(), For: d.span(10e6, 10e9)}
}

// lose takes a store away for good. Quorums stay: at most N-W of them.
func (d *draw) lose() Fault {
	if d.losses >= d.o.Stores-d.o.W() {
		return killStore(d)
	}
	d.losses++
	verb := []string{"old", "old", "empty", "torn"}[d.rng.IntN(4)]
	return Fault{Verb: verb, Host: d.store(), Arg: float64(d.rng.IntN(8)), For: d.span(10e6, 5e9)}
}

// points are where faults are aimed, with the hosts that pass them.
var points = []struct {
	name  string
	store bool
}{
	{"prepare.ok", true}, {"prepare.ok", true}, {"prepare", true}, {"step.ok", true}, {"step", true}, {"commit", true}, {"committed", true},
	{"renew.ok", true}, {"release", true}, {"release.ok", true},
	{"stream.ok", false}, {"id.delegate.ok", false}, {"offer", false}, {"offer.ok", false}, {"take", false}, {"take.ok", false}, {"next.ok", false}, {"tag.take.ok", false}, {"id.generate.ok", false},
}

// Schedule draws the faults of a run from its seed.
func Schedule(o Options) []Fault {
	d := &draw{rng: rand.New(rand.NewPCG(o.Seed, 0xfa17)), o: o}
	mean := (1 + 4*d.rng.Float64()*d.rng.Float64()) * float64(o.Lease)
	var out []Fault
	for at := o.Calm; ; {
		at += time.Duration(d.rng.ExpFloat64() * mean)
		if at >= o.Length {
			break
		}
		f := d.pick(choices)
		f.At = at.Round(time.Millisecond)
		if d.rng.IntN(2) == 0 && f.Point == "" {
			p := points[d.rng.IntN(len(points))]
			f.Point, f.Where = p.name, "*"
			// Mostly at the very host that it happens to.
			if h := f.Host; h != "" && strings.HasPrefix(h, "s") == p.store && d.rng.IntN(4) > 0 {
				f.Where = h
			}
		}
		// Operators do not work while machines find the wrong stores.
		if !o.Care || !strays[f.Verb] {
			out = append(out, f)
		}
	}
	if o.Care {
		out = append(out, careSchedule(o)...)
	}
	slices.SortStableFunc(out, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	return out
}

func allocName(i int) string { return fmt.Sprintf("a%d", i+1) }
