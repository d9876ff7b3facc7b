package sim

import (
	"context"
	"slices"
	"strings"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
)

// faults has faults happen: at their time, or at a point that a host passes.
type faults struct {
	part
	armed  []Fault // each waits for a point
	healed bool    // no fault happens any more
	seesaw bool    // one is played
}

// arm puts a schedule into force, whose times count from now on.
func (fs *faults) arm(faults []Fault) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, f := range faults {
		fs.after(f.At, func() {
			if f.Point == "" {
				fs.inject(f)
				return
			}
			fs.mu.Lock()
			fs.armed = append(fs.armed, f)
			fs.mu.Unlock()
		})
	}
}

// sender in a fault is the allocator that a point was passed for: whose message it was. As
// a peer it is who passed it.
const sender = "@"

// point is called when a host passes a point. by is the host whose message it handles, or nil. Faults that
// waited for the point happen before anything else. Needs w.mu.
func (fs *faults) point(h, by *host, name string) {
	for i := 0; i < len(fs.armed); i++ {
		f := fs.armed[i]
		if f.Point != name || f.Where != "*" && fs.target(f.Where) != h.name {
			continue
		}
		if f.Host == sender {
			if by == nil || by.kind != allocHost {
				continue
			}
			f.Host = by.name
			if f.Peer == sender {
				f.Peer = h.name
			}
		}
		fs.armed = append(fs.armed[:i], fs.armed[i+1:]...)
		i--
		fs.after(0, func() { fs.inject(f) })
	}
}

// awaited says whether a fault waits for a point. Needs w.mu.
func (fs *faults) awaited(name string) bool {
	return slices.ContainsFunc(fs.armed, func(f Fault) bool { return f.Point == name })
}

func (fs *faults) inject(f Fault) {
	fs.mu.Lock()
	if fs.healed {
		fs.mu.Unlock()
		return
	}
	fs.stats.Faults[f.Verb]++
	fs.mu.Unlock()
	if f.Host == sender { // at no point, so of nobody
		return
	}
	f.Host, f.Peer = fs.target(f.Host), fs.target(f.Peer)
	fs.trace.add("FAULT %s", f)
	w := fs.of(f.Host)
	if f.Host == w.tag() {
		f.Host = ""
	}
	verbs[f.Verb](w, f)
}

// of is the cluster of a host, or with that tag; else the first.
func (fs *faults) of(host string) *world {
	if h := fs.w.hosts.named(host); h != nil {
		return h.w
	}
	for _, w := range fs.w.sets {
		if w.tag() == host {
			return w
		}
	}
	return fs.w
}

// target is the store that a fault with this name happens to: if it is no member (any
// more), the member with the same number.
func (fs *faults) target(name string) string {
	if !fs.opts.Care || fs.opts.still || !strings.HasPrefix(name, "s") {
		return name
	}
	w := fs.of(name)
	members := w.list().Members
	if slices.ContainsFunc(members, func(m quorum.Member) bool { return m.Name == name }) {
		return name
	}
	for i := range w.hosts.of(storeHost) {
		if storeName(i)+w.tag() == name {
			return members[i%len(members)].Name
		}
	}
	return name
}

// admin sends a request to any allocator until one does it.
func (fs *faults) admin(ask func(ctx context.Context, c pb.AdminClient) error) {
	from := fs.w.hosts.of(callerHost)[0]
	ctx, cancel := context.WithTimeout(fs.life, 10*time.Second)
	defer cancel()
	for _, h := range fs.w.hosts.of(allocHost) {
		one, done := context.WithTimeout(ctx, 3*time.Second)
		err := ask(one, pb.NewAdminClient(&conn{w: fs.w, from: from, life: from.life, to: h.name}))
		done()
		if err == nil {
			return
		}
	}
}

func (fs *faults) drain(node string, undo bool) {
	fs.admin(func(ctx context.Context, c pb.AdminClient) error {
		_, err := c.Drain(ctx, &pb.DrainRequest{Node: node, Undo: undo})
		return err
	})
}

// loseDisk kills the store of a disk that is forfeit, and changes the disk. The store does not start before
// that is done.
func (fs *faults) loseDisk(h *host, f Fault) {
	changed := make(chan struct{})
	fs.mu.Lock()
	fs.trace.add("%-8s killed", h.name)
	h.halt(false)
	over := h.over
	h.over = changed
	fs.mu.Unlock()
	fs.work.Go(func() {
		if over != nil {
			<-over // the process has let go of the disk
		}
		switch f.Verb {
		case "old":
			if !h.disk.putBack(int(f.Arg)) { // never had another content
				fs.mu.Lock()
				h.forfeit = false
				fs.mu.Unlock()
			}
		case "empty":
			h.disk.format("uuid-new-"+h.name, nil)
		case "torn": // the database does not open: disk.ErrCorrupt
			fs.mu.Lock()
			h.lost = true
			fs.mu.Unlock()
		}
		close(changed)
		fs.later(f.For, func() { fs.w.procs.start(h) })
	})
}

// spared counts the voters of the newest list that live and are to stay, except one. None can be spared
// before all are bound to one another, because the binding needs all (decision 008). Needs w.mu.
func (fs *faults) spared(but *host) (n int, voter bool) {
	unbound := false
	for _, m := range fs.w.list().Voters() {
		h := fs.w.hosts.named(m.Name)
		leaves := false
		for _, o := range fs.w.ops.pending() {
			leaves = leaves || o.host == m.Name
		}
		there := !h.forfeit && h.disk.meta().UUID == m.UUID
		unbound = unbound || there && h.disk.meta().Members.Version == 0
		switch {
		case h == but:
			voter = true
		case there && !leaves:
			n++
		}
	}
	if unbound {
		n = 0
	}
	return n, voter
}

// mayLose says whether what a store has may be lost without more being lost than the
// present list can stand, and the one that a change under way leads to. Needs w.mu.
func (fs *faults) mayLose(h *host) bool {
	if !fs.opts.Care {
		gone := 0
		for _, s := range fs.w.hosts.of(storeHost) {
			if s.forfeit {
				gone++
			}
		}
		if fs.opts.Clone && !fs.healed { // one is to be copied in the end
			gone++
		}
		return gone < fs.w.ident.N-fs.w.ident.W
	}
	n, voter := fs.spared(h)
	need := fs.w.list().W
	for _, o := range fs.w.ops.pending() {
		if o.verb == "grow" {
			need = max(need, (fs.w.list().N()+1)/2+1)
		}
	}
	return !voter || n >= need
}

// mayChange says whether a change that takes that store out (nil: none) can be finished:
// one at a time, and as many stores are left as each of its lists needs. Needs w.mu.
func (fs *faults) mayChange(o *order, gone *host) bool {
	l := fs.w.list()
	_, busy := l.Learner()
	if len(fs.w.ops.pending()) > 0 || busy {
		return false
	}
	n, voter := fs.spared(gone)
	switch o.verb {
	case "grow":
		return l.N() < 5 && n >= max(l.W, (l.N()+1)/2+1)
	case "shrink":
		return voter && l.N() > 3 && n >= max(l.W, (l.N()-1)/2+1)
	}
	return voter && n >= min(l.W, l.N()-1)
}

// findWay ends a process that went astray, because its picture of the stores stays wrong. The caller starts
// it again. findWay returns false if the process was not astray.
func (fs *faults) findWay(h *host) bool {
	fs.mu.Lock()
	_, lost := fs.w.links.astray[h]
	delete(fs.w.links.astray, h)
	fs.mu.Unlock()
	if lost {
		fs.w.procs.kill(h, 0)
	}
	return lost
}

// endTwin ends a second process for good.
func (fs *faults) endTwin(t *host) {
	fs.mu.Lock()
	t.lost = true
	fs.mu.Unlock()
	fs.w.procs.kill(t, 0)
}

// unstray ends what lag, astray and twin have left.
func (fs *faults) unstray() {
	fs.mu.Lock()
	clear(fs.w.links.lags)
	fs.mu.Unlock()
	for _, h := range fs.w.hosts.of(allocHost) {
		if h.twinOf != "" {
			fs.endTwin(h)
		} else {
			fs.findWay(h)
		}
	}
}

// someIDs has a caller ask one allocator, and no other, for IDs.
func (fs *faults) someIDs(h *host) {
	from := fs.w.hosts.of(callerHost)[0]
	ctx, cancel := context.WithTimeout(fs.life, time.Second)
	defer cancel()
	c := &caller{w: fs.w, h: from}
	_ = c.idAt(ctx, &conn{w: fs.w, from: from, life: from.life, to: h.name}, nodeSpace, 3) // it may have none
}
