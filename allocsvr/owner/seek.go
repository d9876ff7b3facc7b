package owner

import (
	"context"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/arbiter"
	"github.com/seqsvr/seqsvr/allocsvr/nodes"
	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/internal/process/tracing"
	"github.com/seqsvr/seqsvr/seq"
)

// heir returns the node that should take the section: its owner by the table, or the
// first standby that is alive once the owner is not, and does not leave.
func (o *Owner) heir(t *arbiter.Table, id seq.SectionID, v nodes.View, now time.Duration) string {
	for k, i := range t.Place(id).Candidates() {
		if i < 0 {
			continue
		}
		node := t.Nodes[i]
		if s, ok := v.Live[node.Name]; ok && (k == 0 || node.Leaving != s.Session) || !ok && o.nodes.Awaited(node.Name, now) {
			return node.Name
		}
	}
	return ""
}

// seek acquires what this node should own: by the table, or in place of the dead.
// Failover never waits for the arbiter, nor for the membership view.
func (o *Owner) seek(ctx context.Context) {
	pause := time.Duration(0)
	for o.seeker.Wait(ctx, pause) {
		pause = o.seekOnce(ctx)
	}
}

// seekOnce returns how long to wait before the next look.
func (o *Owner) seekOnce(ctx context.Context) time.Duration {
	const soonest = 2 * time.Millisecond
	pause := o.lease / 5
	o.moves.Settle()
	t := o.routes.Table()
	if t == nil || o.leaving.Load() {
		return pause
	}
	now := o.clock.Now()
	v := o.nodes.View(now)
	again := o.preempt(ctx, t, v, now)
	if again > 0 {
		pause = min(pause, again)
	}
	if v.Next > 0 {
		pause = min(pause, max(v.Next-now, soonest))
	}
	ids, dead := o.missing(t, v, now)
	if len(ids) == 0 {
		return pause
	}
	if len(dead) > 0 {
		var span tracing.Span
		ctx, span = o.traces.Rare(ctx, "alloc.takeover")
		span.Int("sections", len(dead))
		defer span.End(nil)
	}
	done, _ := o.gain(ctx, ids, nil)
	if len(done.owned) > 0 {
		o.log.Info("sections acquired", "sections", len(done.owned), "with counters", done.kept,
			"of", len(ids), "from the dead", len(dead), "took", (o.clock.Now() - now).Round(time.Microsecond))
		o.inherit(done.owned, dead)
		o.giver.Kick()
		o.arbiter.Look()
	}
	if done.after > 0 {
		pause = min(pause, max(done.after, soonest))
	}
	return pause
}

// missing lists the absent sections whose heir this node is, and of those that are
// another node's the owner: none while this node is not sure that the other is gone.
func (o *Owner) missing(t *arbiter.Table, v nodes.View, now time.Duration) (ids []seq.SectionID, dead map[seq.SectionID]string) {
	dead = make(map[seq.SectionID]string)
	record := o.record.Known()
	for id := range seq.SectionID(min(o.sections.Len(), len(t.Sections))) {
		if o.sections.Section(id).State() != section.Absent || !record.Has(id) || o.heir(t, id, v, now) != o.name {
			continue
		}
		if owner, _ := t.Owner(id); owner.Name != o.name {
			if !v.Sure {
				continue
			}
			dead[id] = owner.Name
		}
		ids = append(ids, id)
	}
	return ids, dead
}

// inherit notes which of the sections were others'.
func (o *Owner) inherit(ids []seq.SectionID, dead map[seq.SectionID]string) {
	from := make(map[string]bool)
	for _, id := range ids {
		if name := dead[id]; name != "" {
			from[name] = true
		}
	}
	if len(from) == 0 {
		return
	}
	o.takeovers.Add(1)
	now := o.clock.Now()
	for name := range from {
		o.nodes.Inherited(name, now)
	}
}
