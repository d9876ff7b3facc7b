package owner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/arbiter"
	"github.com/seqsvr/seqsvr/allocsvr/nodes"
	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/seq"
)

// preempted is the last preemption of a section by this node.
type preempted struct {
	at   time.Duration
	from seq.Session
}

// Suspect names the nodes that are silent, with their sessions, in place of the nodes named before. The node
// takes over what it is the next to have of them in strict and exact spaces, without waiting for their
// leases, and hands nothing to them. The caller must not change the map afterwards.
func (o *Owner) Suspect(silent map[string]seq.Session) {
	o.silent.Store(&silent)
	o.seeker.Kick()
}

// suspects reports whether the node is silent.
func (o *Owner) suspects(name string) bool {
	silent := o.silent.Load()
	if silent == nil {
		return false
	}
	_, ok := (*silent)[name]
	return ok
}

// Preempted returns the number of sections that were taken over from a node whose lease still ran.
func (o *Owner) Preempted() uint64 { return o.preempted.Load() }

// preemption is one call of preempt.
type preemption struct {
	o      *Owner
	now    time.Duration
	silent map[seq.Session]string
	from   map[seq.SectionID]seq.Session // which session has what is looked at
}

// may says whether a section may be taken from the session that the stores have promised it to. Only a
// silent session is deposed, and the same session not again within a lease: if it came back meanwhile, it
// is late and not gone. If another session has taken the section since and is silent too, it is.
func (p *preemption) may(id seq.SectionID, holder seq.Session) bool {
	if name, silent := p.silent[holder]; !silent || !p.o.suspects(name) {
		return false // it may have been heard since
	}
	if last, ok := p.o.taken[id]; ok && last.from == holder && p.now-last.at < p.o.lease {
		return false
	}
	p.from[id] = holder
	return true
}

// began notes that W stores have promised the section.
func (p *preemption) began(id seq.SectionID) {
	p.o.taken[id] = preempted{at: p.now, from: p.from[id]}
}

// preempt takes over what silent nodes have of strict and exact spaces, and returns the pause before it
// should be tried again, 0 for none. A look comes first: if W stores do not answer it, no store is asked
// for a promise.
func (o *Owner) preempt(ctx context.Context, t *arbiter.Table, v nodes.View, now time.Duration) (again time.Duration) {
	const pause = 20 * time.Millisecond
	named := o.silent.Load()
	if named == nil || len(*named) == 0 {
		return 0
	}
	p := &preemption{o: o, now: now, silent: make(map[seq.Session]string), from: make(map[seq.SectionID]seq.Session)}
	alive := maps.Clone(v.Live)
	for name, session := range *named {
		if s, live := alive[name]; name != o.name && (!live || s.Session == session) {
			delete(alive, name)
			p.silent[session] = name
		}
	}
	ids := o.next(t, nodes.View{Live: alive}, now)
	if len(ids) == 0 {
		return 0
	}
	done, _ := o.gain(ctx, ids, p)
	if len(done.owned) == 0 {
		return pause
	}
	o.preempted.Add(uint64(len(done.owned)))
	from := make(map[string]int)
	for _, id := range done.owned {
		from[p.silent[p.from[id]]]++
	}
	for _, name := range slices.Sorted(maps.Keys(from)) {
		o.log.Warn("sections preempted: their node is silent", "from", name, "sections", from[name], "took", (o.clock.Now() - now).Round(time.Microsecond))
		o.tell(ctx, arbiter.Event{Kind: "preempt", Subject: name, Reason: fmt.Sprintf("silent: %d sections taken over before the end of its lease", from[name])})
	}
	o.giver.Kick()
	if len(done.owned) < len(ids) {
		return pause
	}
	return 0
}

// next lists the absent sections of strict and exact spaces whose heir this node is if only the nodes of v
// live.
func (o *Owner) next(t *arbiter.Table, v nodes.View, now time.Duration) (ids []seq.SectionID) {
	record := o.record.Known()
	for id := range seq.SectionID(min(o.sections.Len(), len(t.Sections))) {
		if c := o.sections.Section(id); c.Space().Mode.Leaseless() && c.State() == section.Absent && record.Has(id) && o.heir(t, id, v, now) == o.name {
			ids = append(ids, id)
		}
	}
	return ids
}

// tell writes an event to the log, beside what this node does next.
func (o *Owner) tell(ctx context.Context, e arbiter.Event) {
	go func() {
		ctx, cancel := context.WithTimeout(ctx, tellWithin)
		defer cancel()
		if err := o.routes.Record(ctx, []arbiter.Event{e}); err != nil {
			o.log.Warn("event not written", "kind", e.Kind, "subject", e.Subject, "error", err)
		}
	}()
}

// tellWithin bounds how long an event may take.
const tellWithin = 3 * time.Second
