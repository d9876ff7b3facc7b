package sim

import (
	"cmp"
	"time"
)

// The faults of this file put one allocator where a rule of the protocol is all that is
// left between it and a wrong number.

var strays = map[string]bool{"strand": true, "lag": true, "astray": true, "twin": true}

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

// servers are all hosts but those of callers.
func (w *world) servers() []*host {
	return append(append([]*host{}, w.of(storeHost)...), w.of(allocHost)...)
}

// injectStrand leaves an allocator W-1 stores, from a given one on: too few for a lease.
func injectStrand(w *world, f Fault) {
	h, from, stores := w.host(f.Host), w.host(f.Peer).index, w.of(storeHost)
	var gone []*host
	for i, s := range stores {
		if (i-from+len(stores))%len(stores) >= w.ident.W-1 {
			gone = append(gone, s)
		}
	}
	w.sever(among(h, gone, true, true), f.For)
}

// injectLag has all that the stores say to an allocator come late, while they hear it at
// once; then they hear it no more, and it still hears their last word. What it takes for
// the begin of its lease decides how long it goes on.
func injectLag(w *world, f Fault) {
	h, by := w.host(f.Host), time.Duration(f.Arg*float64(time.Second))
	w.mu.Lock()
	w.lags[h] = by
	w.mu.Unlock()
	w.later(f.For, func() {
		silent := by + 3*w.opts.Lease/2
		w.sever(among(h, w.servers(), true, false), silent)
		w.later(silent, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.lags, h)
		})
	})
}

// injectAstray starts an allocator on a machine for which the address of one store is
// that of others as well: that store answers for them. Those of the others that it still
// reaches are cut off half-way.
func injectAstray(w *world, f Fault) {
	h, at, stores := w.host(f.Host), w.host(f.Peer), w.of(storeHost)
	w.kill(h, 0)
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
	w.astray[h] = wrong
	w.mu.Unlock()
	w.later(50*time.Millisecond, func() { w.startHost(h) })
	w.later(f.For/2, func() { w.sever(among(h, right, true, true), f.For/2) })
	w.later(f.For, func() {
		if w.findWay(h) {
			w.later(50*time.Millisecond, func() { w.startHost(h) })
		}
	})
}

// findWay ends a process that went astray: what it believes of the stores is wrong for
// good. It is started anew by whoever calls; false if it had been before.
func (w *world) findWay(h *host) bool {
	w.mu.Lock()
	_, lost := w.astray[h]
	delete(w.astray, h)
	w.mu.Unlock()
	if lost {
		w.kill(h, 0)
	}
	return lost
}

// injectTwin starts a second process under an allocator's name on another machine, as
// happens when a scheduler takes a machine for dead; the first is cut off from all servers
// meanwhile, and callers reach both.
func injectTwin(w *world, f Fault) {
	h := w.host(f.Host)
	w.mu.Lock()
	t := w.host(h.name + "'")
	if t == nil {
		t = w.newHost(allocHost, h.name+"'", len(w.of(allocHost)))
		t.twinOf = h.name
	}
	t.lost = false
	w.mu.Unlock()
	w.sever(among(h, w.servers(), true, true), f.For)
	w.startAlloc(t)
	w.later(f.For+w.opts.Lease, func() { w.endTwin(t) })
}

// endTwin ends a second process for good.
func (w *world) endTwin(t *host) {
	w.mu.Lock()
	t.lost = true
	w.mu.Unlock()
	w.kill(t, 0)
}

// unstray ends all that the faults of this file have left.
func (w *world) unstray() {
	w.mu.Lock()
	clear(w.lags)
	w.mu.Unlock()
	for _, h := range w.of(allocHost) {
		if h.twinOf != "" {
			w.endTwin(h)
		} else {
			w.findWay(h)
		}
	}
}

// node is the name under which an allocator is known.
func (h *host) node() string { return cmp.Or(h.twinOf, h.name) }
