package sim

import (
	"context"
	"maps"
	"slices"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// verbs are what a fault can do. They run in the loop, without world.mu.
var verbs map[string]func(w *world, f Fault)

func init() {
	verbs = map[string]func(w *world, f Fault){
		"kill": injectKill, "killtold": injectKillTold, "leave": injectLeave, "stop": injectStop,
		"drain": injectDrain, "move": injectMove,
		"pause": injectPause, "freeze": injectPause,
		"cut": injectCut, "isolate": injectPart, "deafen": injectPart, "mute": injectPart,
		"lossy": injectWeather, "dup": injectWeather, "delay": injectWeather,
		"rate": injectRate, "jump": injectJump,
		"slowdisk": injectDisk, "full": injectDisk, "eio": injectDisk, "enospc": injectDisk,
		"power": injectPower, "stopall": injectStopAll,
		"strand": injectStrand, "lag": injectLag, "late": injectLate, "astray": injectAstray, "twin": injectTwin,
		"old": injectLoss, "empty": injectLoss, "torn": injectLoss,
	}
	maps.Copy(verbs, careVerbs)
	maps.Copy(verbs, plays)
	verbs["lonely"], verbs["stumble"] = injectLonely, injectStumble // parts of contest
}

// armedFault waits for a point.
type armedFault struct {
	f    Fault
	done bool
}

// arm puts a schedule into force.
func (w *world) arm(faults []Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range faults {
		w.after(f.At-w.now(), func() {
			if f.Point == "" {
				w.inject(f)
				return
			}
			w.mu.Lock()
			w.armed = append(w.armed, &armedFault{f: f})
			w.mu.Unlock()
		})
	}
}

// sender in a fault is the allocator that a point was passed for: whose message it was. As
// a peer it is who passed it.
const sender = "@"

// point is passed by a host, for the one whose message it is, or nil: faults that waited
// for it happen before anything else. Needs w.mu.
func (w *world) point(h, by *host, name string) {
	for i := 0; i < len(w.armed); i++ {
		a := w.armed[i]
		if a.f.Point != name || a.f.Where != "*" && w.target(a.f.Where) != h.name {
			continue
		}
		if a.f.Host == sender {
			if by == nil || by.kind != allocHost {
				continue
			}
			a.f.Host = by.name
			if a.f.Peer == sender {
				a.f.Peer = h.name
			}
		}
		w.armed = append(w.armed[:i], w.armed[i+1:]...)
		i--
		w.after(0, func() { w.inject(a.f) })
	}
}

// awaited says whether a fault waits for a point. Needs w.mu.
func (w *world) awaited(name string) bool {
	return slices.ContainsFunc(w.armed, func(a *armedFault) bool { return a.f.Point == name })
}

func (w *world) inject(f Fault) {
	w.mu.Lock()
	if w.healed {
		w.mu.Unlock()
		return
	}
	w.stats.Faults[f.Verb]++
	w.mu.Unlock()
	if f.Host == sender { // at no point, so of nobody
		return
	}
	f.Host, f.Peer = w.target(f.Host), w.target(f.Peer)
	w.trace.add("FAULT %s", f)
	verbs[f.Verb](w, f)
}

// start brings a host back, whatever it is.
func (w *world) startHost(h *host) {
	switch h.kind {
	case storeHost:
		w.startStore(h)
	case allocHost:
		w.startAlloc(h)
	case operatorHost:
		w.startOperator(h)
	case routerHost:
		w.startRouter(h)
	}
}

func (w *world) later(d time.Duration, do func()) { w.schedule(max(d, time.Millisecond), do) }

func injectKill(w *world, f Fault) {
	h := w.host(f.Host)
	w.kill(h, 0)
	w.later(f.For, func() { w.startHost(h) })
}

func injectKillTold(w *world, f Fault) {
	h := w.host(f.Host)
	w.mu.Lock()
	p, up := h.alloc, h.up
	w.mu.Unlock()
	w.kill(h, 0)
	if up && p != nil {
		w.work.Go(func() { w.endSession(h, p.secret) })
	}
	w.later(f.For, func() { w.startHost(h) })
}

func injectLeave(w *world, f Fault) {
	h := w.host(f.Host)
	w.work.Go(func() {
		w.leaveAlloc(h)
		w.later(f.For, func() { w.startHost(h) })
	})
}

func injectStop(w *world, f Fault) {
	h := w.host(f.Host)
	w.stopStore(h)
	w.later(f.For, func() { w.startHost(h) })
}

// operator sends a request to any allocator until one does it.
func (w *world) operator(ask func(ctx context.Context, c pb.AdminClient) error) {
	from := w.of(callerHost)[0]
	ctx, cancel := context.WithTimeout(w.life, 10*time.Second)
	defer cancel()
	for _, h := range w.of(allocHost) {
		one, done := context.WithTimeout(ctx, 3*time.Second)
		err := ask(one, pb.NewAdminClient(&conn{w: w, from: from, life: from.life, to: h.name}))
		done()
		if err == nil {
			return
		}
	}
}

func injectDrain(w *world, f Fault) {
	w.work.Go(func() { w.drain(f.Host, false) })
	w.later(f.For, func() { w.work.Go(func() { w.drain(f.Host, true) }) })
}

func (w *world) drain(node string, undo bool) {
	w.operator(func(ctx context.Context, c pb.AdminClient) error {
		_, err := c.Drain(ctx, &pb.DrainRequest{Node: node, Undo: undo})
		return err
	})
}

func injectMove(w *world, f Fault) {
	w.work.Go(func() {
		w.operator(func(ctx context.Context, c pb.AdminClient) error {
			_, err := c.Move(ctx, &pb.MoveRequest{Section: uint32(f.Arg), Node: f.Host})
			return err
		})
	})
}

func injectPause(w *world, f Fault) {
	h := w.host(f.Host)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !h.up || h.paused {
		return
	}
	h.pause(f.Verb == "freeze")
	life := h.life
	w.after(f.For, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if h.life == life {
			w.trace.add("%-8s wakes up", h.name)
			h.resume()
		}
	})
}

// sever cuts directions for a while.
func (w *world) sever(links []link, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.healed {
		return
	}
	for _, l := range links {
		w.cuts[l]++
	}
	w.after(d, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, l := range links {
			if w.cuts[l]--; w.cuts[l] <= 0 {
				delete(w.cuts, l)
			}
		}
	})
}

func injectCut(w *world, f Fault) {
	if f.Host != f.Peer {
		w.sever([]link{{f.Host, f.Peer}}, f.For)
	}
}

// injectPart cuts a host off from all servers, or only its ears, or only its voice.
// Callers still reach it: a zombie that nobody asks does no harm.
func injectPart(w *world, f Fault) {
	var links []link
	for _, h := range w.hosts {
		if h.name == f.Host || h.kind == callerHost || h.kind == routerHost {
			continue
		}
		if f.Verb != "mute" {
			links = append(links, link{h.name, f.Host})
		}
		if f.Verb != "deafen" {
			links = append(links, link{f.Host, h.name})
		}
	}
	w.sever(links, f.For)
}

// injectLate has what a host asks to be promised reach a store later than all else that it
// says: it may have gone on under another round by then.
func injectLate(w *world, f Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := link{f.Host, f.Peer}
	w.late[l] = time.Duration(f.Arg * float64(time.Second))
	w.after(f.For, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.late, l)
	})
}

func injectWeather(w *world, f Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.weathers++
	b := weather{id: w.weathers}
	switch f.Verb {
	case "lossy":
		b.loss = f.Arg
	case "dup":
		b.dup = f.Arg
	case "delay":
		b.slow = time.Duration(f.Arg * float64(time.Second))
	}
	w.bad = append(w.bad, b)
	w.after(f.For, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for i, x := range w.bad {
			if x.id == b.id {
				w.bad = append(w.bad[:i], w.bad[i+1:]...)
				return
			}
		}
	})
}

func injectRate(w *world, f Fault) { w.host(f.Host).clock.setRate(f.Arg) }

func injectJump(w *world, f Fault) {
	w.host(f.Host).clock.jump(time.Duration(f.Arg * float64(time.Second)))
}

func injectDisk(w *world, f Fault) {
	d := w.host(f.Host).disk
	d.mu.Lock()
	defer d.mu.Unlock()
	undo := func() {}
	switch f.Verb {
	case "slowdisk":
		d.slow = time.Duration(f.Arg * float64(time.Second))
		undo = func() { d.slow = 0 }
	case "full":
		d.full = true
		undo = func() { d.full = false }
	case "eio":
		d.failNext = errIO
	case "enospc":
		d.failNext = errNoSpace
	}
	w.later(f.For, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		undo()
	})
}

// injectPower cuts the power of all stores at one moment.
func injectPower(w *world, f Fault) {
	for _, h := range w.of(storeHost) {
		w.kill(h, 0)
		w.later(f.For, func() { w.startHost(h) })
	}
}

// injectStopAll stops the whole cluster in order, allocators first, and starts it again.
func injectStopAll(w *world, f Fault) {
	w.work.Go(func() {
		for _, h := range w.of(allocHost) {
			w.leaveAlloc(h)
		}
		for _, h := range w.of(storeHost) {
			w.stopStore(h)
		}
		for _, h := range w.servers() {
			if h.twinOf == "" {
				w.later(f.For, func() { w.startHost(h) })
			}
		}
	})
}

// injectLoss takes a store's disk away: it comes back old, empty, or not at all.
func injectLoss(w *world, f Fault) {
	h := w.host(f.Host)
	w.mu.Lock()
	if h.lost || h.disk.distrusted() || h.forfeit || !w.mayLose(h) {
		w.mu.Unlock()
		return
	}
	h.forfeit = true
	w.mu.Unlock()
	w.loseDisk(h, f)
}

// loseDisk kills the store of a disk that is forfeit, and changes the disk. Nobody starts
// the store before that is done.
func (w *world) loseDisk(h *host, f Fault) {
	changed := make(chan struct{})
	w.mu.Lock()
	w.trace.add("%-8s killed", h.name)
	h.halt(false)
	over := h.over
	h.over = changed
	w.mu.Unlock()
	w.work.Go(func() {
		if over != nil {
			<-over // the process has let go of the disk
		}
		switch f.Verb {
		case "old":
			if !h.disk.putBack(int(f.Arg)) { // never had another content
				w.mu.Lock()
				h.forfeit = false
				w.mu.Unlock()
			}
		case "empty":
			h.disk.format("uuid-new-"+h.name, nil)
		case "torn": // the database does not open: disk.ErrCorrupt
			w.mu.Lock()
			h.lost = true
			w.mu.Unlock()
		}
		close(changed)
		w.later(f.For, func() { w.startHost(h) })
	})
}
