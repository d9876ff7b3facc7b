package sim

import (
	"context"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

func injectKill(w *world, f Fault) {
	h := w.hosts.named(f.Host)
	w.procs.kill(h, 0)
	w.later(f.For, func() { w.procs.start(h) })
}

func injectKillTold(w *world, f Fault) {
	h := w.hosts.named(f.Host)
	w.mu.Lock()
	p, up := h.alloc, h.up
	w.mu.Unlock()
	w.procs.kill(h, 0)
	if up && p != nil {
		w.work.Go(func() { w.procs.endSession(h, p.secret) })
	}
	w.later(f.For, func() { w.procs.start(h) })
}

func injectLeave(w *world, f Fault) {
	h := w.hosts.named(f.Host)
	w.work.Go(func() {
		w.procs.leaveAlloc(h)
		w.later(f.For, func() { w.procs.start(h) })
	})
}

func injectStop(w *world, f Fault) {
	h := w.hosts.named(f.Host)
	w.procs.stopStore(h)
	w.later(f.For, func() { w.procs.start(h) })
}

func injectDrain(w *world, f Fault) {
	w.work.Go(func() { w.faults.drain(f.Host, false) })
	w.later(f.For, func() { w.work.Go(func() { w.faults.drain(f.Host, true) }) })
}

// injectSuspect has an allocator take another one for silent, or all others, whatever they do: it preempts
// what it is the next to have of strict and exact spaces.
func injectSuspect(w *world, f Fault) {
	h := w.hosts.named(f.Host)
	silent := map[string]seq.Session{}
	w.mu.Lock()
	p, up := h.alloc, h.up
	for _, other := range h.w.hosts.of(allocHost) {
		if other.alloc != nil && other.node() != h.node() && (f.Peer == "" || f.Peer == other.name) {
			silent[other.node()] = other.alloc.session
		}
	}
	w.mu.Unlock()
	if !up || p == nil {
		return
	}
	p.node.Suspect(silent)
	w.later(f.For, func() { p.node.Suspect(nil) })
}

func injectMove(w *world, f Fault) {
	w.work.Go(func() {
		w.faults.admin(func(ctx context.Context, c pb.AdminClient) error {
			_, err := c.Move(ctx, &pb.MoveRequest{Section: uint32(f.Arg), Node: f.Host})
			return err
		})
	})
}

func injectPause(w *world, f Fault) {
	h := w.hosts.named(f.Host)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !h.up || h.paused {
		return
	}
	h.pause(f.Verb == "freeze")
	life := h.life
	w.after(f.For, w.locked(func() {
		if h.life == life {
			w.trace.add("%-8s wakes up", h.name)
			h.resume()
		}
	}))
}

func injectCut(w *world, f Fault) {
	if f.Host != f.Peer {
		w.links.sever([]link{{f.Host, f.Peer}}, f.For)
	}
}

// injectPart cuts a host off from all servers, or only its ears, or only its voice.
// Callers still reach it: a zombie that nobody asks does no harm.
func injectPart(w *world, f Fault) {
	var links []link
	for _, h := range w.hosts.everyone() {
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
	w.links.sever(links, f.For)
}

// injectLate has what a host asks to be promised reach a store later than all else that it
// says: it may have gone on under another round by then.
func injectLate(w *world, f Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := link{f.Host, f.Peer}
	w.links.late[l] = time.Duration(f.Arg * float64(time.Second))
	w.after(f.For, w.locked(func() {
		delete(w.links.late, l)
	}))
}

func injectWeather(w *world, f Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.links.weathers++
	b := weather{id: w.links.weathers}
	switch f.Verb {
	case "lossy":
		b.loss = f.Arg
	case "dup":
		b.dup = f.Arg
	case "delay":
		b.slow = time.Duration(f.Arg * float64(time.Second))
	}
	w.links.bad = append(w.links.bad, b)
	w.after(f.For, w.locked(func() {
		for i, x := range w.links.bad {
			if x.id == b.id {
				w.links.bad = append(w.links.bad[:i], w.links.bad[i+1:]...)
				return
			}
		}
	}))
}

func injectRate(w *world, f Fault) { w.hosts.named(f.Host).clock.setRate(f.Arg) }

func injectJump(w *world, f Fault) {
	w.hosts.named(f.Host).clock.jump(time.Duration(f.Arg * float64(time.Second)))
}

func injectDisk(w *world, f Fault) {
	d := w.hosts.named(f.Host).disk
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
	injectOutage(w, Fault{For: f.For})
}

// injectBlackout ends all processes of the Set of a host at one moment.
func injectBlackout(w *world, f Fault) {
	for _, h := range w.hosts.servers() {
		if h.twinOf == "" {
			w.procs.kill(h, 0)
			w.later(f.For, func() { w.procs.start(h) })
		}
	}
}

// injectApart cuts the Set of a host off from the others, and from those who move sections.
func injectApart(w *world, f Fault) {
	var links []link
	for _, h := range w.hosts.everyone() {
		if h.kind != callerHost && h.kind != routerHost && (h.w != w || h.kind == coordinatorHost) {
			for _, own := range w.hosts.servers() {
				links = append(links, link{h.name, own.name}, link{own.name, h.name})
			}
		}
	}
	w.links.sever(links, f.For)
}

// injectStopAll stops the whole cluster in order, allocators first, and starts it again.
func injectStopAll(w *world, f Fault) {
	w.work.Go(func() {
		for _, h := range w.hosts.of(allocHost) {
			w.procs.leaveAlloc(h)
		}
		for _, h := range w.hosts.of(storeHost) {
			w.procs.stopStore(h)
		}
		for _, h := range w.hosts.servers() {
			if h.twinOf == "" {
				w.later(f.For, func() { w.procs.start(h) })
			}
		}
	})
}

// injectLoss takes a store's disk away: it comes back old, empty, or not at all.
func injectLoss(w *world, f Fault) {
	h := w.hosts.named(f.Host)
	w.mu.Lock()
	if h.lost || h.disk.distrusted() || h.forfeit || !w.faults.mayLose(h) {
		w.mu.Unlock()
		return
	}
	h.forfeit = true
	w.mu.Unlock()
	w.faults.loseDisk(h, f)
}
