package sim

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

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
	tag    string // of the cluster that they happen to
	losses int
}

func (d *draw) store() string {
	if d.o.Care { // there are others later
		return storeName(d.rng.IntN(d.o.Stores+2)) + d.tag
	}
	return storeName(d.rng.IntN(d.o.Stores)) + d.tag
}

func (d *draw) operator() string { return fmt.Sprintf("op%d", 1+d.rng.IntN(4)/3) + d.tag }

func (d *draw) mover() string { return fmt.Sprintf("m%d", 1+d.rng.IntN(movers)) }

func (d *draw) alloc() string { return allocName(d.rng.IntN(d.o.Allocs)) + d.tag }

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

// Schedule draws the faults of a run from its seed.
func Schedule(o Options) []Fault {
	var out []Fault
	for set := range max(1, o.Sets) {
		out = append(out, schedule(o, set)...)
		if o.Care {
			out = append(out, careSchedule(o, set)...)
		}
	}
	if o.Sets > 1 {
		out = append(out, setsSchedule(o)...)
	}
	out = append(out, extras(o)...)
	slices.SortStableFunc(out, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	return out
}

// schedule draws the faults of one cluster.
func schedule(o Options, set int) (out []Fault) {
	d := &draw{rng: rand.New(rand.NewPCG(o.Seed, 0xfa17+uint64(set)<<16)), o: o, tag: tagOf(set)}
	choices, points := o.Engine.lists()
	mean := (1 + 4*d.rng.Float64()*d.rng.Float64()) * float64(o.Lease) * float64(max(1, o.Sets))
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
		if f.Host == "" { // it happens to the cluster
			f.Host = d.tag
		}
		// Operators do not work while machines find the wrong stores.
		if (!o.Care || !strays[f.Verb]) && o.Engine.suits(f.Verb) {
			out = append(out, f)
		}
	}
	return out
}

// moments are where nodes take others for silent: in the middle of what moves a section.
var moments = []string{"offer", "offer.ok", "take", "take.ok", "release.ok", "prepare", "prepare.ok", "step", "step.ok", "renew.ok", "commit", "next.ok"}

// suspicions draws which nodes take which others for silent. It has a chance of its own, so that the rest of a
// seed is drawn as without it.
func suspicions(o Options) (out []Fault) {
	if o.still {
		return nil
	}
	d := &draw{rng: rand.New(rand.NewPCG(o.Seed, 0x5117)), o: o}
	for at := o.Calm; ; {
		at += time.Duration(d.rng.ExpFloat64() * float64(o.Lease))
		if at >= o.Length {
			return out
		}
		d.tag = tagOf(d.rng.IntN(max(1, o.Sets)))
		f := Fault{At: at.Round(time.Millisecond), Verb: "suspect", Host: d.alloc(), For: d.span(20e6, 2*o.Lease)}
		if d.rng.IntN(2) == 0 {
			f.Peer = d.alloc()
		}
		if d.rng.IntN(3) > 0 {
			f.Point, f.Where = moments[d.rng.IntN(len(moments))], "*"
		}
		out = append(out, f)
		if o.Beyond { // and clocks lie without bound
			out = append(out, Fault{At: f.At, Verb: "rate", Host: d.server(), Arg: math.Exp2(6*d.rng.Float64() - 3)})
		}
	}
}

// setsSchedule draws what gets in the way of moves between Sets.
func setsSchedule(o Options) (out []Fault) {
	d := &draw{rng: rand.New(rand.NewPCG(o.Seed, 0x5e75)), o: o}
	for at := o.Calm; ; {
		at += time.Duration(d.rng.ExpFloat64() * float64(4*time.Second))
		if at >= o.Length {
			return out
		}
		d.tag = tagOf(d.rng.IntN(o.Sets))
		f := d.pick(inTheWay)
		f.At = at.Round(time.Millisecond)
		if d.rng.IntN(4) > 0 {
			f.Point, f.Where = movePoints[d.rng.IntN(len(movePoints))], "*"
		}
		out = append(out, f)
	}
}

// lists are what is drawn from.
func (e Engine) lists() ([]choice, []point) {
	if e == EtcdEngine {
		return slices.Concat(etcdChoices, choices), slices.Concat(etcdPoints, points)
	}
	return choices, points
}

// suits says whether a fault can happen to the engine.
func (e Engine) suits(verb string) bool {
	if e == EtcdEngine {
		return !slices.Contains(storeVerbs, verb)
	}
	return !slices.Contains(etcdVerbs, verb) && (e == SetsEngine || !slices.Contains(setsVerbs, verb))
}

// careSchedule draws the orders of a run, each with obstacles.
func careSchedule(o Options, set int) []Fault {
	d := &draw{rng: rand.New(rand.NewPCG(o.Seed, 0xca7e+uint64(set)<<16)), o: o, tag: tagOf(set)}
	first := 2 * time.Second
	out := []Fault{{At: o.Calm + d.span(0, first), Verb: "backup"}}
	for at := o.Calm + first; at < o.Length; at += time.Duration(15+d.rng.IntN(50)) * time.Second {
		f := d.pick(orders)
		f.At = at.Round(time.Millisecond)
		out = append(out, f)
		for range d.rng.IntN(5) {
			f := d.pick(obstacles)
			f.At = (at + d.span(0, 40*time.Second)).Round(time.Millisecond)
			if d.rng.IntN(4) > 0 {
				f.Point, f.Where = carePoints[d.rng.IntN(len(carePoints))], "*"
			}
			out = append(out, f)
		}
	}
	for i := range out {
		out[i].Host = cmp.Or(out[i].Host, d.tag)
	}
	return out
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
