package sim

import "time"

// The faults of this file are plays of several acts, each in the order in which a rule of
// the protocol is all that stands between a cluster and a broken promise.

// injectRewind has an allocator's process end, with its session, right after it made IDs,
// and the next one make some on a machine whose wall clock is behind: what keeps it from
// IDs of the one before is the mark of its worker id.
func injectRewind(w *world, f Fault) {
	h := w.hosts.named(f.Host)
	w.work.Go(func() {
		w.faults.someIDs(h)
		h.clock.jump(-time.Duration(f.Arg * float64(time.Second)))
		injectKillTold(w, f)
		for range 10 {
			if !w.sleep(400 * time.Millisecond) {
				return
			}
			w.faults.someIDs(h)
		}
	})
}

// injectAnHour lets an hour and some minutes pass on all wall clocks, as if nobody had
// asked for anything meanwhile.
func injectAnHour(w *world, _ Fault) {
	for _, h := range w.hosts.everyone() {
		h.clock.jump(65 * time.Minute)
	}
}

// injectContest has two sessions want the sections of one: a node stands still for as
// long as its lease, the others are promised its sections by one store alone, and then it
// is awake again and holds them at all other stores. An operator who brings the stores up
// to date dies between two fills, and begins again before the lease has ended.
func injectContest(w *world, f Fault) {
	h := w.hosts.named(f.Host)
	w.mu.Lock()
	if !h.up || h.paused || w.faults.healed {
		w.mu.Unlock()
		return
	}
	h.pause(false)
	life := h.life
	w.faults.armed = append(w.faults.armed, Fault{Point: "acquire", Where: "*", Verb: "lonely", Host: sender, Peer: sender, For: f.For})
	w.mu.Unlock()
	w.later(3*w.opts.Lease/2, w.locked(func() {
		if h.life == life { // nobody wanted its sections
			h.resume()
		}
	}))
}

// injectLonely is the second act of a contest. It leaves every running allocator only one store. Allocators
// that stand still wake up, and have all other stores.
func injectLonely(w *world, f Fault) {
	var links []link
	for _, h := range w.hosts.of(allocHost) {
		w.mu.Lock()
		still := h.paused
		h.resume()
		w.mu.Unlock()
		if still { // nobody tells it that it was outbid, once that is known
			w.faults.arm([]Fault{{Point: "fill.ok", Where: "*", Verb: "isolate", Host: h.name, For: w.opts.Lease}})
		}
		for _, s := range w.hosts.of(storeHost) {
			if still == (s.name == f.Peer) {
				links = append(links, link{h.name, s.name}, link{s.name, h.name})
			}
		}
	}
	w.links.sever(links, f.For)
	w.faults.arm([]Fault{{Point: "fill.ok", Where: "*", Verb: "stumble", Host: "op1" + w.tag(), Arg: 1}})
	gone := f.Peer // the last one to be filled, of those that those awake have
	for _, m := range w.list().Voters() {
		if m.Name != f.Peer {
			gone = m.Name
		}
	}
	w.later(100*time.Millisecond, func() { injectReplace(w, Fault{Host: gone, Arg: replaceAlive}) })
}

// injectStumble kills an operator, who begins again at once, so many times more at its next
// fill.
func injectStumble(w *world, f Fault) {
	injectKill(w, Fault{Host: f.Host, For: 20 * time.Millisecond})
	if f.Arg > 0 {
		w.faults.arm([]Fault{{Point: f.Point, Where: f.Where, Verb: "stumble", Host: f.Host, Arg: f.Arg - 1}})
	}
}

// injectSeesaw writes at five stores, of which two hear nothing, takes two of those out
// that do, and then loses the third: what is left has to know everything.
func injectSeesaw(w *world, f Fault) {
	w.mu.Lock()
	busy := w.faults.seesaw
	w.faults.seesaw = true
	w.mu.Unlock()
	if busy {
		return
	}
	w.work.Go(func() {
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.faults.seesaw = false
		}()
		for w.list().N() < 5 {
			if !w.ops.ordered(&order{verb: "grow"}) {
				return
			}
		}
		voters := w.list().Voters()
		deaf := []string{voters[3].Name, voters[4].Name}
		var links []link
		for _, a := range w.hosts.of(allocHost) {
			for _, s := range deaf {
				links = append(links, link{a.name, s})
			}
		}
		w.links.sever(links, f.For)
		if !w.sleep(f.For / 2) {
			return
		}
		for _, m := range voters[:2] {
			if !w.ops.ordered(&order{verb: "shrink", host: m.Name}) {
				return
			}
		}
		last := w.hosts.named(voters[2].Name)
		for _, a := range w.hosts.of(allocHost) {
			w.procs.kill(a, 0)
			w.later(time.Second, func() { w.procs.start(a) })
		}
		w.mu.Lock()
		lose := !w.faults.healed && !last.forfeit && !last.lost && w.faults.mayLose(last)
		last.forfeit = last.forfeit || lose
		w.mu.Unlock()
		if lose {
			w.faults.loseDisk(last, Fault{Verb: "torn"})
		}
	})
}
