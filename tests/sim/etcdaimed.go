package sim

import "time"

// The faults of this file are plays of several acts, as those in aimed.go, about sessions in etcd.

// injectReprieve has an allocator stand still until another takes it for dead, and wake up in
// that moment, so that its beat is there before the end of its session, which travels for longer.
func injectReprieve(w *world, f Fault) { standStill(w, f, "condemn.out") }

// injectRevive wakes an allocator up while another wants its sections. It makes its session again and
// attaches, before the other is promised anything.
func injectRevive(w *world, f Fault) { standStill(w, f, "prepare.out") }

func standStill(w *world, f Fault, until string) {
	h, by := w.hosts.named(f.Host), time.Duration(f.Arg*float64(time.Second))
	var slow []link
	for _, a := range w.hosts.of(allocHost) {
		for _, s := range w.hosts.of(storeHost) {
			if a != h {
				slow = append(slow, link{a.name, s.name})
			}
		}
	}
	w.mu.Lock()
	if !h.up || h.paused || w.faults.healed {
		w.mu.Unlock()
		return
	}
	h.pause(false)
	life := h.life
	w.mu.Unlock()
	w.later(w.opts.Lease, w.locked(func() { // nothing is asked for before
		w.faults.armed = append(w.faults.armed, Fault{Point: until, Where: "*", Verb: "wake", Host: h.name})
		for _, l := range slow {
			w.links.late[l] = by
		}
	}))
	w.later(2*w.opts.Lease, w.locked(func() {
		for _, l := range slow {
			delete(w.links.late, l)
		}
		if h.life == life { // by then it was not taken for dead
			h.resume()
		}
	}))
}

// injectWake lets a host go on that stands still.
func injectWake(w *world, f Fault) {
	h := w.hosts.named(f.Host)
	w.mu.Lock()
	defer w.mu.Unlock()
	h.resume()
}

// injectStillborn restarts an allocator and kills it while it is making its session. Its parent reports
// that.
func injectStillborn(w *world, f Fault) {
	h := w.hosts.named(f.Host)
	injectKillTold(w, Fault{Host: f.Host, For: 300 * time.Millisecond}) // so that its name is free
	w.mu.Lock()
	for _, s := range w.hosts.of(storeHost) {
		w.links.late[link{h.name, s.name}] = time.Duration(f.Arg * float64(time.Second))
	}
	w.faults.armed = append(w.faults.armed, Fault{Point: "enter.out", Where: h.name, Verb: "killtold", Host: h.name, For: f.For})
	w.mu.Unlock()
	w.later(w.opts.Lease, w.locked(func() {
		for _, s := range w.hosts.of(storeHost) {
			delete(w.links.late, link{h.name, s.name})
		}
	}))
}
