package sim

import "math"

// The faults are in this file, and in etcdfaults.go what happens to an etcd: verbs says what each one does, and the lists below how often
// each is drawn. A new fault is a function (inject.go has the plain ones, stray.go and
// aimed.go those with a plan), its verb, and a line in a list, which changes what every seed
// draws.

// verbs are what a fault can do. They run in the loop, without world.mu.
var verbs map[string]func(w *world, f Fault)

func init() { // not in place: a fault may arm others
	verbs = map[string]func(w *world, f Fault){
		"kill": injectKill, "killtold": injectKillTold, "leave": injectLeave, "stop": injectStop,
		"drain": injectDrain, "move": injectMove, "suspect": injectSuspect,
		"pause": injectPause, "freeze": injectPause,
		"cut": injectCut, "isolate": injectPart, "deafen": injectPart, "mute": injectPart,
		"lossy": injectWeather, "dup": injectWeather, "delay": injectWeather,
		"rate": injectRate, "jump": injectJump, "anhour": injectAnHour,
		"slowdisk": injectDisk, "full": injectDisk, "eio": injectDisk, "enospc": injectDisk,
		"power": injectPower, "outage": injectOutage, "stopall": injectStopAll,
		"strand": injectStrand, "lag": injectLag, "late": injectLate, "astray": injectAstray, "twin": injectTwin,
		"old": injectLoss, "empty": injectLoss, "torn": injectLoss,
		"rewind": injectRewind, "seesaw": injectSeesaw,
		"contest": injectContest, "lonely": injectLonely, "stumble": injectStumble, // the latter two are parts of it
		// orders to operators, and what gets in their way
		"replace": injectReplace, "grow": injectResize, "shrink": injectResize,
		"elect": injectElect, "nospace": injectNoSpace, "compact": injectCompact, "sluggish": injectSluggish, "rollback": injectRollback,
		"reprieve": injectReprieve, "revive": injectRevive, "wake": injectWake, "stillborn": injectStillborn,
		"blackout": injectBlackout, "apart": injectApart, // of whole Sets
		"rehash": injectRehash,
		"backup": injectOrder, "abort": injectOrder, "disaster": injectDisaster, "rival": injectRival,
	}
}

// choices are drawn in every run, with these weights.
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
		return Fault{Verb: "late", Host: d.alloc(), Peer: d.store(), Arg: math.Round(1e4*d.o.Lease.Seconds()*d.rng.Float64()) / 1e4, For: d.o.Lease + d.span(1e9, 15e9)}
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

// point is a place that hosts pass: stores, or members of etcd, or allocators.
type point struct {
	name  string
	store bool
}

// points are where faults are aimed, with the hosts that pass them.
var points = []point{
	{"prepare.ok", true}, {"prepare.ok", true}, {"prepare", true}, {"step.ok", true}, {"step", true}, {"commit", true}, {"committed", true},
	{"renew.ok", true}, {"release", true}, {"release.ok", true},
	{"stream.ok", false}, {"id.delegate.ok", false}, {"offer", false}, {"offer.ok", false}, {"take", false}, {"take.ok", false}, {"next.ok", false}, {"tag.take.ok", false}, {"id.generate.ok", false},
}

// orders are drawn with these weights.
var orders = []choice{
	{40, func(d *draw) Fault {
		return Fault{Verb: "replace", Host: d.store(), Arg: float64(d.rng.IntN(replaceKinds)), For: d.span(100e6, 20e9)}
	}},
	{22, func(*draw) Fault { return Fault{Verb: "grow"} }},
	{22, func(d *draw) Fault { return Fault{Verb: "shrink", Host: d.store()} }},
	{22, func(*draw) Fault { return Fault{Verb: "backup"} }},
	{14, func(d *draw) Fault { return Fault{Verb: "disaster", Arg: float64(d.rng.IntN(3))} }},
	{14, func(d *draw) Fault { return Fault{Verb: "seesaw", For: 4*d.o.Lease + d.span(0, 20e9)} }},
	{14, func(d *draw) Fault {
		return Fault{Verb: "contest", Host: d.alloc(), For: d.span(500e6, d.o.Lease)}
	}},
	{6, func(*draw) Fault { return Fault{Verb: "anhour"} }},
}

// obstacles are what gets in the way of an order, beside all other faults.
var obstacles = []choice{
	{30, func(d *draw) Fault { return Fault{Verb: "kill", Host: d.operator(), For: d.span(10e6, 20e9)} }},
	{8, func(d *draw) Fault { return Fault{Verb: "pause", Host: d.operator(), For: d.span(50e6, 15e9)} }},
	{6, func(d *draw) Fault { return Fault{Verb: "isolate", Host: d.operator(), For: d.span(100e6, 15e9)} }},
	{8, func(d *draw) Fault {
		return Fault{Verb: "cut", Host: d.operator(), Peer: d.store(), For: d.span(100e6, 15e9)}
	}},
	{8, func(*draw) Fault { return Fault{Verb: "rival"} }},
	{5, func(*draw) Fault { return Fault{Verb: "abort"} }},
	{16, killStore},
	{10, func(d *draw) Fault { return Fault{Verb: "kill", Host: d.alloc(), For: d.span(10e6, 12e9)} }},
	{8, func(d *draw) Fault { return Fault{Verb: "isolate", Host: d.server(), For: d.span(100e6, 15e9)} }},
	{8, func(d *draw) Fault { return Fault{Verb: "pause", Host: d.server(), For: d.span(50e6, 15e9)} }},
	{5, func(d *draw) Fault {
		return Fault{Verb: "slowdisk", Host: d.store(), Arg: 0.05 + 2*d.rng.Float64(), For: d.span(1e9, 15e9)}
	}},
	{4, func(d *draw) Fault { return Fault{Verb: "torn", Host: d.store(), For: d.span(10e6, 5e9)} }},
	{4, func(d *draw) Fault { return Fault{Verb: "eio", Host: d.store()} }},
	{2, func(d *draw) Fault { return Fault{Verb: "power", For: d.span(10e6, 5e9)} }},
}

// carePoints are where obstacles are aimed: the steps of an operator, and what the stores
// are told.
var carePoints = []string{"op.1", "op.2", "op.3", "op.4", "op.5", "adopt", "adopt.ok", "adopt.ok", "fill", "fill.ok", "fill.ok", "dump", "dump.ok", "bind.ok"}

// inTheWay is what gets in the way of moves between Sets, beside all other faults.
var inTheWay = []choice{
	{30, func(d *draw) Fault { return Fault{Verb: "kill", Host: d.mover(), For: d.span(10e6, 20e9)} }},
	{8, func(d *draw) Fault { return Fault{Verb: "pause", Host: d.mover(), For: d.span(50e6, 20e9)} }},
	{6, func(d *draw) Fault { return Fault{Verb: "isolate", Host: d.mover(), For: d.span(100e6, 15e9)} }},
	{8, func(d *draw) Fault {
		return Fault{Verb: "cut", Host: d.mover(), Peer: d.alloc(), For: d.span(100e6, 15e9)}
	}},
	{8, func(d *draw) Fault {
		return Fault{Verb: "cut", Host: d.alloc(), Peer: d.mover(), For: d.span(100e6, 15e9)}
	}},
	{14, func(d *draw) Fault { return Fault{Verb: "kill", Host: d.alloc(), For: d.span(10e6, 12e9)} }},
	{8, func(d *draw) Fault { return Fault{Verb: "pause", Host: d.alloc(), For: d.span(50e6, 15e9)} }},
	{8, func(d *draw) Fault { return Fault{Verb: "isolate", Host: d.alloc(), For: d.span(100e6, 15e9)} }},
	{4, func(d *draw) Fault { return Fault{Verb: "blackout", Host: d.store(), For: d.span(100e6, 20e9)} }},
	{4, func(d *draw) Fault { return Fault{Verb: "apart", Host: d.store(), For: d.span(100e6, 20e9)} }},
	{3, func(d *draw) Fault { return Fault{Verb: "power", Host: d.store(), For: d.span(10e6, 5e9)} }},
}

// movePoints are where those are aimed: the steps of a coordinator, and what nodes are asked.
var movePoints = []string{"move.seal", "move.stop", "move.open", "move.finish", "move.arrive", "move.refuse", "move.cancel", "move.reopen", "move.abort",
	"set.step", "set.step.ok", "set.stop", "set.stop.ok", "set.open", "set.open.ok", "set.changemap.ok"}

// setsVerbs happen to runs with Sets alone.
var setsVerbs = []string{"blackout", "apart"}

// strays are not drawn in runs with operators, who do not work while machines find the
// wrong stores.
var strays = map[string]bool{"strand": true, "lag": true, "astray": true, "twin": true}
