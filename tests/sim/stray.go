package sim

import "time"

// The faults of this file put one allocator where a rule of the protocol is all that is
// left between it and a wrong number.

// among are the directions between a host and the hosts of a list.
func among(h *host, with []*host, to, from bool) []link {
	var out []link
	for _, o := range with {
		if o == h {
			continue
		}
		if to {
			out = append(out, link{h.name, o.name})
		}
		if from {
			out = append(out, link{o.name, h.name})
		}
	}
	return out
}

// injectStrand leaves an allocator W-1 stores, from a given one on: too few for a lease.
func injectStrand(w *world, f Fault) {
	h, from, stores := w.hosts.named(f.Host), w.hosts.named(f.Peer).index, w.hosts.of(storeHost)
	var gone []*host
	for i, s := range stores {
		if (i-from+len(stores))%len(stores) >= w.ident.W-1 {
			gone = append(gone, s)
		}
	}
	w.links.sever(among(h, gone, true, true), f.For)
}

// injectLag delays all messages from the stores to an allocator, while they receive its messages at once.
// Then they receive none any more, and it still receives their last answers. The time that it takes for the
// start of its lease decides how long it goes on.
func injectLag(w *world, f Fault) {
	h, by := w.hosts.named(f.Host), time.Duration(f.Arg*float64(time.Second))
	w.mu.Lock()
	w.links.lags[h] = by
	w.mu.Unlock()
	w.later(f.For, func() {
		silent := by + 3*w.opts.Lease/2
		w.links.sever(among(h, w.hosts.servers(), true, false), silent)
		w.later(silent, w.locked(func() {
			delete(w.links.lags, h)
		}))
	})
}

// injectAstray starts an allocator on a machine where the address of one store stands for other stores too:
// that store answers for them. The links to the remaining stores are cut half-way.
func injectAstray(w *world, f Fault) {
	h, at, stores := w.hosts.named(f.Host), w.hosts.named(f.Peer), w.hosts.of(storeHost)
	w.procs.kill(h, 0)
	w.mu.Lock()
	wrong := map[string]string{}
	var right []*host
	for i := 1; i < len(stores); i++ {
		if s := stores[(at.index+i)%len(stores)]; i == 1 || w.chance(0.5) {
			wrong[s.name] = at.name
		} else {
			right = append(right, s)
		}
	}
	w.links.astray[h] = wrong
	w.mu.Unlock()
	w.later(50*time.Millisecond, func() { w.procs.start(h) })
	w.later(f.For/2, func() { w.links.sever(among(h, right, true, true), f.For/2) })
	w.later(f.For, func() {
		if w.faults.findWay(h) {
			w.later(50*time.Millisecond, func() { w.procs.start(h) })
		}
	})
}

// injectTwin starts a second process under an allocator's name on another machine, as
// happens when a scheduler takes a machine for dead; the first is cut off from all servers
// meanwhile, and callers reach both.
func injectTwin(w *world, f Fault) {
	h := w.hosts.named(f.Host)
	w.mu.Lock()
	t := w.hosts.named(h.name + "'")
	if t == nil {
		t = w.hosts.add(allocHost, h.name+"'", len(w.hosts.of(allocHost)))
		t.twinOf = h.name
	}
	t.lost = false
	w.mu.Unlock()
	w.links.sever(among(h, w.hosts.servers(), true, true), f.For)
	w.procs.startAlloc(t)
	w.later(f.For+w.opts.Lease, func() { w.faults.endTwin(t) })
}
