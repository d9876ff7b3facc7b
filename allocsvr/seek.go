package allocsvr

import (
	"context"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/arbiter"
	"github.com/seqsvr/seqsvr/allocsvr/nodes"
	"github.com/seqsvr/seqsvr/internal/tracing"
	"github.com/seqsvr/seqsvr/seq"
)

// heir is the node that should take the section: its owner by the table, or the
// first standby that is alive once the owner is not, and does not leave.
func (a *Alloc) heir(t *arbiter.Table, id seq.SectionID, v nodes.View, now time.Duration) string {
	for k, i := range t.Sections[id].Candidates() {
		if i < 0 {
			continue
		}
		node := t.Nodes[i]
		if s, ok := v.Live[node.Name]; ok && (k == 0 || node.Leaving != s.Session) || !ok && a.nodes.Awaited(node.Name, now) {
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
	v := a.nodes.View(now)
	if v.Next > 0 {
		pause = min(pause, max(v.Next-now, soonest))
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
func (a *Alloc) missing(t *arbiter.Table, v nodes.View, now time.Duration) (ids []seq.SectionID, dead map[seq.SectionID]string) {
	dead = make(map[seq.SectionID]string)
	for _, c := range a.cells {
		if int(c.id) >= len(t.Sections) || a.stateOf(c) != absent || a.heir(t, c.id, v, now) != a.name {
			continue
		}
		if owner, _ := t.Owner(c.id); owner.Name != a.name {
			if !v.Sure {
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
	for name := range from {
		a.nodes.Inherited(name, now)
	}
}
