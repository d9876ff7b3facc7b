package handover

import (
	"maps"
	"sync"

	"github.com/seqsvr/seqsvr/seq"
)

// Kept are the sealed counters that this node may go on from when it acquires
// the section: its own after a hand-over that failed, parked by the process before it, or
// offered by a peer. Whether they may be used is decided by what the stores say of the
// section's last epoch (attempt.start), so keeping one too long is harmless. One of each
// kind a section at most.
type Kept struct {
	mu      sync.Mutex // guards the fields below
	own     map[seq.SectionID]Sealed
	offered map[seq.SectionID]Sealed
}

// Keep stores counters of this machine, in place of others of the section with a lower
// epoch, or that know of fewer attempts after the same one.
func (k *Kept) Keep(sections ...Sealed) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.own == nil {
		k.own = make(map[seq.SectionID]Sealed)
	}
	for _, s := range sections {
		s.Body = nil
		old, ok := k.own[s.ID]
		if !ok || old.Epoch.Less(s.Epoch) || old.Epoch == s.Epoch && len(old.Also) < len(s.Also) {
			k.own[s.ID] = s
		}
	}
}

// Offer stores counters that came from a peer, in place of any that came before.
func (k *Kept) Offer(sections ...Sealed) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.offered == nil {
		k.offered = make(map[seq.SectionID]Sealed)
	}
	for _, s := range sections {
		s.offered, s.Body = s.Digest(), nil
		k.offered[s.ID] = s
	}
}

// Use removes the counters of a section, which are used now or never, and gives the ones
// that are good; there is tells whether there were any.
func (k *Kept) Use(id seq.SectionID, good func(Sealed) bool) (s Sealed, ok, there bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, of := range []map[seq.SectionID]Sealed{k.own, k.offered} {
		kept, have := of[id]
		if !have {
			continue
		}
		there = true
		if delete(of, id); !ok && good(kept) {
			s, ok = kept, true
		}
	}
	s.offered = 0 // it is this node's own from here on
	return s, ok, there
}

// Forget removes what is of this machine of sections that will never go on from it.
func (k *Kept) Forget(never func(seq.SectionID) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.own, func(id seq.SectionID, _ Sealed) bool { return never(id) })
}

// All lists what is of this machine, to be parked.
func (k *Kept) All() []Sealed {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := make([]Sealed, 0, len(k.own))
	for _, s := range k.own {
		out = append(out, s)
	}
	return out
}
