package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/seq"
)

// sections checks who owns a section, and from where on (I4, I6, I7).
type sections struct {
	w *world

	mu       sync.Mutex // guards all below
	sessions map[seq.Session]string
	epochs   map[seq.SectionID]map[seq.Epoch]*ownership
	last     map[seq.Session][]*ownership // by section: what each session was last seen to own
	past     map[seq.SectionID]uint64     // the highest ceiling of the eras before
}

// ownership is one epoch of a section in which a node owned it.
type ownership struct {
	epoch           seq.Epoch
	base            uint64
	high, confirmed uint64
	owned           bool // as it was last seen
}

// claim is a node that would serve a section now.
type claim struct {
	host *host
	view *section.View
}

// inspect checks I6 over all nodes of each cluster, and I7 over the nodes of all clusters: no two nodes
// serve one section, of whatever Set.
func (c *checker) inspect() {
	leased := make([]claim, c.w.whole.Sections())
	for _, w := range c.w.sets {
		if !c.places.joined.Load() { // each is alone
			clear(leased)
		}
		w.check.sections.inspect(leased)
	}
}

// inspect looks at the nodes of one cluster; leased are the claims that were found before.
func (s *sections) inspect(leased []claim) {
	era := s.w.check.eras.present()
	for _, h := range s.w.hosts.of(allocHost) {
		s.w.mu.Lock()
		p, up := h.alloc, h.up
		s.w.mu.Unlock()
		if !up || p == nil {
			continue
		}
		now := h.clock.real()
		views := p.node.Sections()
		if p.era == era { // whoever is left of an era before may only still hand out, which I5, I7 and M judge
			s.seen(h, p.session, views)
		}
		for i := range views {
			v := &views[i]
			if !v.Owned || now >= v.Until || s.leaseless(v.Section) {
				continue
			}
			if other := leased[v.Section]; other.host != nil && !s.w.opts.Beyond {
				s.w.check.broken("I7", "section %d is leased to %s under %s and to %s under %s", v.Section,
					other.host.name, other.view.Epoch, h.name, v.Epoch)
			}
			leased[v.Section] = claim{h, v}
			if p.era == era {
				s.w.check.places.serves(h, v.Section)
			}
		}
	}
}

// leaseless says whether the section is of a strict or exact space, whose leases keep no preemption out. Its
// answers are judged instead: by M, X1 and X2, and by kept.
func (s *sections) leaseless(id seq.SectionID) bool {
	space, err := s.w.whole.SpaceOf(id)
	return err == nil && space.Mode.Leaseless()
}

// seen takes in what a session owns: at most one epoch of a section, and none of those
// that it owned before and does not list any more.
func (s *sections) seen(h *host, session seq.Session, views []section.View) {
	s.mu.Lock()
	last := s.last[session]
	if last == nil {
		last = make([]*ownership, s.w.whole.Sections())
		s.last[session] = last
	}
	for i, rec := range last {
		if rec != nil && !slices.ContainsFunc(views, func(v section.View) bool { return int(v.Section) == i && v.Epoch == rec.epoch }) {
			rec.owned, last[i] = false, nil
		}
	}
	why, at := "", 0
	for i := range views {
		if text := s.own(last, &views[i]); text != "" {
			why, at = text, i
		}
	}
	s.mu.Unlock()
	if why != "" {
		s.w.check.broken("I6", "section %d at %s under %s: %s", views[at].Section, h.name, views[at].Epoch, why)
	}
}

// own keeps the owned epochs of a section and checks I6 between neighbours, if anything
// has changed; over more than one step it follows by induction. Needs s.mu.
func (s *sections) own(last []*ownership, v *section.View) (why string) {
	if v.High > v.Confirmed || v.Base > v.High {
		why = fmt.Sprintf("base %d, high %d, confirmed %d", v.Base, v.High, v.Confirmed)
	}
	rec := last[v.Section]
	if rec != nil && rec.confirmed == v.Confirmed && rec.owned == v.Owned {
		rec.high = v.High
		return why
	}
	all := s.epochs[v.Section]
	if all == nil {
		all = map[seq.Epoch]*ownership{}
		s.epochs[v.Section] = all
	}
	if rec = all[v.Epoch]; rec == nil {
		rec = &ownership{epoch: v.Epoch, base: v.Base, high: v.High}
		all[v.Epoch] = rec
	}
	last[v.Section] = rec
	first := rec.high
	rec.high, rec.confirmed, rec.owned = v.High, v.Confirmed, v.Owned
	// Between Sets counters travel, with a base of their own.
	if past := s.past[v.Section]; v.Base < past && len(s.w.sets) == 1 {
		why = cmp.Or(why, fmt.Sprintf("base %d, an era before has confirmed %d", v.Base, past))
	}
	return cmp.Or(why, s.neighbours(all, rec, first))
}

// neighbours says what is wrong between an epoch and those next to it; high is what the
// section stood at when the epoch was first seen.
func (s *sections) neighbours(all map[seq.Epoch]*ownership, rec *ownership, high uint64) string {
	sorted := slices.SortedFunc(maps.Keys(all), seq.Epoch.Compare)
	at := slices.Index(sorted, rec.epoch)
	if at > 0 {
		if why := succeeds(all[sorted[at-1]], rec, high); why != "" {
			return why
		}
	}
	if at+1 < len(sorted) {
		next := all[sorted[at+1]]
		return succeeds(rec, next, next.high)
	}
	return ""
}

// succeeds checks that nothing of before can be handed out again: after starts above
// all that was confirmed, or goes on from where before was sealed.
func succeeds(before, after *ownership, high uint64) string {
	switch {
	case after.base >= before.confirmed:
		return ""
	case before.owned:
		return fmt.Sprintf("%s starts at %d and %s, which confirmed %d, is not sealed", after.epoch, after.base, before.epoch, before.confirmed)
	case high < before.high:
		return fmt.Sprintf("%s goes on from %d and %s stood at %d", after.epoch, high, before.epoch, before.high)
	}
	return ""
}

// ended forgets that a process owned anything: it will not hand out a number again.
func (s *sections) ended(h *host, session seq.Session) { s.seen(h, session, nil) }

// started checks I4: no session is ever used twice, so that an epoch has one proposer.
func (s *sections) started(h *host, p *allocProc) {
	s.mu.Lock()
	before, twice := s.sessions[p.session]
	s.sessions[p.session] = h.name
	s.mu.Unlock()
	if twice {
		s.w.check.broken("I4", "session %s of %s was %s's", p.session, h.name, before)
	}
}

// newEra begins an era: no section may start below what was confirmed before (I6); within
// an era epochs say who came first.
func (s *sections) newEra() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, all := range s.epochs {
		for _, rec := range all {
			s.past[id] = max(s.past[id], rec.confirmed)
		}
	}
	clear(s.epochs)
	clear(s.last)
}
