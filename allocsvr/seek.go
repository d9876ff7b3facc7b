package allocsvr

import (
	"context"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/arbiter"
	"github.com/seqsvr/seqsvr/internal/tracing"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// liveness remembers which nodes were ever seen alive by this process, and how steadily.
type liveness struct {
	mu       sync.Mutex // guards names, addrs and flapping
	names    map[string]bool
	addrs    map[string]string // of those that were alive at the last look
	flapping flapping
}

// addr is where the node is if it was alive at the last look, "" if it has died:
// nobody should be sent there. Of one that was not seen yet, the table knows best.
func (l *liveness) addr(node seq.Node) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.names[node.Name] {
		return node.Addr
	}
	return l.addrs[node.Name]
}

// patience is how long after its own start a node waits for table owners that it
// has not seen yet: in a cluster that starts again, they may hold parked counters.
func (a *Alloc) patience() time.Duration { return max(3*time.Second, 2*a.lease) }

// view is who is alive, by the leases that the stores keep.
type view struct {
	live map[string]quorum.SessionView // by node name, self included
	next time.Duration                 // when the first of them may be free, 0 for never
	// sure says that enough stores have told of them within half a lease for the others'
	// absence to mean something.
	sure bool
}

// view reads the sessions. A node counts as alive while its session's lease runs.
func (a *Alloc) view(now time.Duration) view {
	v := view{live: map[string]quorum.SessionView{
		a.name: {Session: a.session, Name: a.name, Addr: a.addr},
	}}
	a.seen.mu.Lock()
	defer a.seen.mu.Unlock()
	all := a.leases.Sessions()
	v.sure = a.fresh(all, now)
	a.seen.flapping.observe(all, v.sure, now)
	for _, s := range all {
		if s.Session == a.session || s.Dead || s.FreeAt <= now {
			continue
		}
		a.latest(v.live, s)
		a.seen.names[s.Name] = true
		if v.next == 0 || s.FreeAt < v.next {
			v.next = s.FreeAt
		}
	}
	a.seen.addrs = make(map[string]string, len(v.live))
	for name, s := range v.live {
		a.seen.addrs[name] = s.Addr
	}
	return v
}

// fresh says whether N-W+1 stores have renewed this node's own session within half a
// lease: the W-th smallest of its ends is that late. Every W stores have one of those
// among them, so what the W-th smallest of another's ends says is no older.
func (a *Alloc) fresh(all []quorum.SessionView, now time.Duration) bool {
	for _, s := range all {
		if s.Session == a.session {
			return !s.Dead && s.FreeAt >= now+a.lease/2
		}
	}
	return false
}

// present is like view, but counts a node as alive until the stores have said that
// its session is gone. A node whose own renewals are late sees all others' leases run
// out; it may then look at the stores, but must not take anybody for lost.
func (a *Alloc) present() map[string]quorum.SessionView {
	live := map[string]quorum.SessionView{a.name: {Session: a.session, Name: a.name, Addr: a.addr}}
	for _, s := range a.leases.Sessions() {
		if s.Session != a.session && !s.Dead {
			a.latest(live, s)
		}
	}
	return live
}

// latest puts a session in place of one of the same name that was renewed less lately:
// a node that has just restarted has two for as long as its former one is not known to
// have ended, which by a store that has restarted as well takes a lease.
func (a *Alloc) latest(live map[string]quorum.SessionView, s quorum.SessionView) {
	if s.Name == a.name {
		return
	}
	if other, ok := live[s.Name]; !ok || other.FreeAt < s.FreeAt {
		live[s.Name] = s
	}
}

// awaited says that a node of the table was not seen yet and may still come, or is late
// once more and is likely to come back.
func (a *Alloc) awaited(name string, now time.Duration) bool {
	if name == a.name {
		return false
	}
	a.seen.mu.Lock()
	defer a.seen.mu.Unlock()
	return !a.seen.names[name] && now < a.started+a.patience() || a.seen.flapping.spared(name, now)
}

// steady says whether a live session may be handed something.
func (a *Alloc) steady(id seq.Session, now time.Duration) bool {
	a.seen.mu.Lock()
	defer a.seen.mu.Unlock()
	return a.seen.flapping.steady(id, now)
}

// heir is the node that should take the section: its owner by the table, or the
// first standby that is alive once the owner is not, and does not leave.
func (a *Alloc) heir(t *arbiter.Table, id seq.SectionID, v view, now time.Duration) string {
	for k, i := range t.Sections[id].Candidates() {
		if i < 0 {
			continue
		}
		node := t.Nodes[i]
		if s, ok := v.live[node.Name]; ok && (k == 0 || node.Leaving != s.Session) || !ok && a.awaited(node.Name, now) {
			return node.Name
		}
	}
	return ""
}

// seek acquires what this node should own: by the table, or in place of the dead.
// Failover never waits for the arbiter, nor for the membership view.
func (a *Alloc) seek(ctx context.Context) {
	pause := time.Duration(0)
	for a.seeker.Wait(ctx, pause) {
		pause = a.seekOnce(ctx)
	}
}

// seekOnce returns how long to wait before the next look.
func (a *Alloc) seekOnce(ctx context.Context) time.Duration {
	const soonest = 2 * time.Millisecond
	pause := a.lease / 5
	t := a.routes.Table()
	if t == nil || a.leaving.Load() {
		return pause
	}
	now := a.clock.Now()
	v := a.view(now)
	if v.next > 0 {
		pause = min(pause, max(v.next-now, soonest))
	}
	ids, dead := a.missing(t, v, now)
	if len(ids) == 0 {
		return pause
	}
	if len(dead) > 0 {
		var span tracing.Span
		ctx, span = a.traces.Rare(ctx, "alloc.takeover")
		span.Int("sections", len(dead))
		defer span.End(nil)
	}
	done, _ := a.gain(ctx, ids)
	if len(done.owned) > 0 {
		a.log.Info("sections acquired", "sections", len(done.owned), "with counters", done.kept,
			"of", len(ids), "from the dead", len(dead), "took", (a.clock.Now() - now).Round(time.Microsecond))
		a.inherit(done.owned, dead)
		a.giver.Kick()
		a.arbiter.Look()
	}
	if done.after > 0 {
		pause = min(pause, max(done.after, soonest))
	}
	return pause
}

// missing lists the absent sections whose heir this node is, and of those that are
// another node's the owner: none while this node is not sure that the other is gone.
func (a *Alloc) missing(t *arbiter.Table, v view, now time.Duration) (ids []seq.SectionID, dead map[seq.SectionID]string) {
	dead = make(map[seq.SectionID]string)
	for _, c := range a.cells {
		if int(c.id) >= len(t.Sections) || a.stateOf(c) != absent || a.heir(t, c.id, v, now) != a.name {
			continue
		}
		if owner, _ := t.Owner(c.id); owner.Name != a.name {
			if !v.sure {
				continue
			}
			dead[c.id] = owner.Name
		}
		ids = append(ids, c.id)
	}
	return ids, dead
}

// inherit notes which of the sections were others'.
func (a *Alloc) inherit(ids []seq.SectionID, dead map[seq.SectionID]string) {
	from := make(map[string]bool)
	for _, id := range ids {
		if name := dead[id]; name != "" {
			from[name] = true
		}
	}
	if len(from) == 0 {
		return
	}
	a.stats.takeovers.Add(1)
	now := a.clock.Now()
	a.seen.mu.Lock()
	defer a.seen.mu.Unlock()
	for name := range from {
		a.seen.flapping.inherit(name, now)
	}
}
