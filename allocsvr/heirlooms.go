package allocsvr

import (
	"sync"

	"github.com/seqsvr/seqsvr/seq"
)

// heirlooms are sealed counters that this node may go on from when it acquires
// the section: offered by a peer, parked by the process before it, or its own
// after a hand-over that failed. Whether they may be used is decided by the epoch
// alone (Alloc.start), so keeping one too long is harmless. One a section at most.
type heirlooms struct {
	mu sync.Mutex // guards by
	by map[seq.SectionID]sealedSection
}

// keep stores counters, in place of others of the section with a lower epoch, or that know of
// fewer attempts after the same one.
func (h *heirlooms) keep(sections ...sealedSection) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.by == nil {
		h.by = make(map[seq.SectionID]sealedSection)
	}
	for _, s := range sections {
		old, ok := h.by[s.id]
		if !ok || old.epoch.Less(s.epoch) || old.epoch == s.epoch && len(old.also) < len(s.also) {
			h.by[s.id] = s
		}
	}
}

// take removes the counters of a section: they are used now or never.
func (h *heirlooms) take(id seq.SectionID) (sealedSection, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, ok := h.by[id]
	delete(h.by, id)
	return s, ok
}

// all lists what is kept.
func (h *heirlooms) all() []sealedSection {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]sealedSection, 0, len(h.by))
	for _, s := range h.by {
		out = append(out, s)
	}
	return out
}
