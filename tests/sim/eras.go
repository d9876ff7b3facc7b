package sim

import (
	"maps"
	"sync"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/backup"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

// eras checks the member lists of each life of the cluster, and what it begins with.
type eras struct {
	w *world

	mu     sync.Mutex // guards all below
	now    seq.Era
	lists  map[seq.Era]quorum.MemberList // the newest that any store has
	issued map[seq.Register]uint64       // the highest that was handed out
	used   map[seq.Register]uint64       // likewise, in any era
	homes  map[string]*host              // by uuid
}

func (es *eras) present() seq.Era {
	es.mu.Lock()
	defer es.mu.Unlock()
	return es.now
}

func (es *eras) list(era seq.Era) quorum.MemberList {
	es.mu.Lock()
	defer es.mu.Unlock()
	return es.lists[era]
}

// home says on which machine the store with the uuid is.
func (es *eras) home(uuid string, h *host) {
	es.mu.Lock()
	defer es.mu.Unlock()
	es.homes[uuid] = h
}

// at is the machine of the store with the uuid; nil if there is none.
func (es *eras) at(uuid string) *host {
	es.mu.Lock()
	defer es.mu.Unlock()
	return es.homes[uuid]
}

// listed takes in that a store has a member list, which proves that it was decided unless it is
// pending. One version is one list, and it overlaps with the one before.
func (es *eras) listed(h *host, id disk.Identity, m disk.Members) {
	if m.Pending {
		return
	}
	next := quorum.MemberList{Version: m.Version, R: m.R, W: m.W, Members: m.List}
	if m.W == 0 {
		next.R, next.W = id.R, id.W
	}
	es.mu.Lock()
	have := es.lists[id.Era]
	if next.Version > have.Version {
		es.lists[id.Era] = next
	}
	es.mu.Unlock()
	switch {
	case have.Version == 0 || next.Version < have.Version:
	case next.Version == have.Version && !next.Equal(have):
		es.w.check.broken("list", "%s has as version %d %v, others have %v", h.name, next.Version, next, have)
	case next.Version > have.Version+1:
		es.w.check.broken("list", "%s goes from list %d to %d, which nobody has told of one between", h.name, have.Version, next.Version)
	case next.Version == have.Version+1:
		if err := quorum.Overlap(have, next); err != nil {
			es.w.check.broken("list", "version %d does not overlap with %d: %v", next.Version, have.Version, err)
		}
	}
}

// kept checks I5 in every era: of the newest member list, so many voters have had what is
// handed out on their disks that no read quorum of it can miss it.
func (es *eras) kept(h *host, r seq.Register, value uint64) {
	era := h.eraNow()
	es.mu.Lock()
	l := es.lists[era]
	es.used[r] = max(es.used[r], value)
	if era == es.now {
		es.issued[r] = max(es.issued[r], value)
	}
	homes := map[string]*host{}
	for _, m := range l.Voters() {
		homes[m.UUID] = es.homes[m.UUID]
	}
	es.mu.Unlock()
	have, need := 0, l.N()-l.R+1
	for uuid, s := range homes {
		if s != nil && s.disk.hadAs(uuid, r) >= value {
			have++
		}
	}
	if have < need {
		es.w.check.broken("I5", "%s hands out %d of %s, which is on %d disks of list %d in era %d, %d needed", h.name, value, r, have, l.Version, era, need)
	}
}

// handedOut is a copy of what was handed out in this era and before.
func (es *eras) handedOut() map[seq.Register]uint64 {
	es.mu.Lock()
	defer es.mu.Unlock()
	return maps.Clone(es.issued)
}

// newEra begins an era whose stores have that first list, and know these registers.
func (es *eras) newEra(era seq.Era, list quorum.MemberList, known func(seq.Register) bool) {
	es.w.check.sections.newEra()
	if es.w.set == 0 { // the exact space is there
		es.w.check.onces.newEra()
	}
	es.mu.Lock()
	defer es.mu.Unlock()
	maps.DeleteFunc(es.issued, func(r seq.Register, _ uint64) bool {
		return !known(r) || len(es.w.sets) > 1 && r.Kind() == seq.KindSection // it may have come from another Set since the backup
	})
	es.now, es.lists[era] = era, list
}

// raised checks that a new store begins above all that any store of the eras before ever
// had of what the backup knows (I2 over eras).
func (es *eras) raised(made backup.Content, before seq.Era) {
	for r, st := range made.Registers {
		// A section may have come from another Set since, above what that one had.
		if r.Rules().Restored != seq.Raise || r.Kind() == seq.KindSection && len(es.w.sets) > 1 {
			continue
		}
		for _, h := range es.w.hosts.of(storeHost) {
			if id := h.disk.meta().Identity; id.Era < made.Identity.Era && h.disk.had(r) > st.Max {
				es.w.check.broken("I2", "%s of era %d begins with %s at %d, %s had %d in era %d", made.Identity.Name, made.Identity.Era, r, st.Max, h.name, h.disk.had(r), before)
				return
			}
		}
	}
}

// floored checks that the floors of a restored store are above all that any store of the
// eras before ever had of what is made on demand: of every worker id, and of the tags that
// the backup does not know.
func (es *eras) floored(made *simDisk, floors quorum.Floors) {
	id := made.meta().Identity
	for r, had := range es.marks(id.Era) {
		if r.OnDemand() && had > floors.Of(r) && (r.Rules().Restored != seq.Raise || !made.knows(r)) {
			es.w.check.broken("I2", "%s of era %d has %s at %d at least, and it was at %d before", id.Name, id.Era, r, floors.Of(r), had)
			return
		}
	}
}

// marks returns the highest that a disk of the eras before ever had of each register. If one clock of a
// store is wrong, that store may take a mark that its fellows refuse, and an operator who repairs the stores brings it
// to them. Marks count then as far as IDs were made, or lent.
func (es *eras) marks(before seq.Era) map[seq.Register]uint64 {
	out := map[seq.Register]uint64{}
	for _, h := range es.w.hosts.of(storeHost) {
		if h.disk.meta().Era >= before {
			continue
		}
		for r, had := range h.disk.peaked() {
			out[r] = max(out[r], had)
		}
	}
	if es.w.opts.StoreClock {
		es.mu.Lock()
		defer es.mu.Unlock()
		for r := range out {
			if r.Rules().Holds == seq.Mark {
				out[r] = es.used[r]
			}
		}
	}
	return out
}
