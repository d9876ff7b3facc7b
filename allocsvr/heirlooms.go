package allocsvr

import (
	"sync"

	"github.com/seqsvr/seqsvr/seq"
)

// heirlooms are sealed counters that this node may go on from when it acquires
// the section: its own after a hand-over that failed, parked by the process before it, or
// offered by a peer. Whether they may be used is decided by what the stores say of the
// section's last epoch (Alloc.start), so keeping one too long is harmless. One of each
// kind a section at most.
type heirlooms struct {
	mu      sync.Mutex // guards the fields below
	own     map[seq.SectionID]sealedSection
	offered map[seq.SectionID]sealedSection
}

// keep stores counters of this machine, in place of others with a lower epoch.
func (h *heirlooms) keep(sections ...sealedSection) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.own == nil {
		h.own = make(map[seq.SectionID]sealedSection)
	}
	for _, s := range sections {
		s.body = nil
		if old, ok := h.own[s.id]; !ok || old.epoch.Less(s.epoch) {
			h.own[s.id] = s
		}
	}
}

// offer stores counters that came from a peer, in place of any that came before.
func (h *heirlooms) offer(sections ...sealedSection) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.offered == nil {
		h.offered = make(map[seq.SectionID]sealedSection)
	}
	for _, s := range sections {
		s.offered, s.body = s.digest(), nil
		h.offered[s.id] = s
	}
}

// take removes the counters of a section, which are used now or never, and gives the ones
// that are good; there is tells whether there were any.
func (h *heirlooms) take(id seq.SectionID, good func(sealedSection) bool) (s sealedSection, ok, there bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, of := range []map[seq.SectionID]sealedSection{h.own, h.offered} {
		kept, have := of[id]
		if !have {
			continue
		}
		there = true
		if delete(of, id); !ok && good(kept) {
			s, ok = kept, true
		}
	}
	return s, ok, there
}

// all lists what is of this machine, to be parked.
func (h *heirlooms) all() []sealedSection {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]sealedSection, 0, len(h.own))
	for _, s := range h.own {
		out = append(out, s)
	}
	return out
}
