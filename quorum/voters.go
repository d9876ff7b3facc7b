package quorum

import (
	"context"
	"fmt"
	"slices"
)

// maxSlots bounds the stores that leases tell apart at one time: MaxStores, and a few
// more so that a place is not given away at once.
const maxSlots = 16

// leaseVoters holds the stores whose leases count, under one member list. Only the stores' own fields
// change.
//
//	mask has bit i exactly for the stores with index i
type leaseVoters struct {
	ref    Ref
	n, w   int
	stores []*storeLease
	mask   uint64
}

func (c *leaseVoters) add(s *storeLease) {
	c.stores = append(c.stores, s)
	c.mask |= s.bit()
}

// is says whether the named store is this one.
func (s *storeLease) is(named NamedStore) bool {
	if named.UUID != "" && (s.uuid != "" || s.store.UUID != "") {
		return named.UUID == s.uuid || named.UUID == s.store.UUID
	}
	return named.Name == s.store.Name
}

// Reconfigure replaces the member list; the given stores vote in it. If a store stays, its leases for this
// session still count: it admits no other session before they end, whatever its list. The caller must know
// that the list was decided. If Reconfigure returns ErrBadConfig, nothing has changed.
func (l *Leases) Reconfigure(ref Ref, w int, stores []NamedStore) error {
	if err := (Config{N: len(stores), R: len(stores), W: w}).Validate(); err != nil {
		return err
	}
	if err := checkStores(stores, len(stores)); err != nil {
		return err
	}
	l.mu.Lock()
	old := l.now.Load()
	next := &leaseVoters{ref: ref, n: len(stores), w: w}
	var fresh []*storeLease
	for _, named := range stores {
		i := slices.IndexFunc(old.stores, func(s *storeLease) bool { return s.is(named) })
		if i >= 0 {
			next.add(old.stores[i])
			continue
		}
		slot, err := freeSlot(old.mask | next.mask)
		if err != nil {
			l.mu.Unlock()
			return err
		}
		s := newStoreLease(slot, named)
		l.sent[slot].Store(never)
		l.clocks[slot].Store(unheard)
		l.rooms[slot].Store(nil)
		for _, h := range l.holds {
			s.pending[h] = struct{}{}
		}
		next.add(s)
		fresh = append(fresh, s)
	}
	l.losses.Add(1)
	l.now.Store(next)
	for _, s := range old.stores {
		if next.mask&s.bit() == 0 {
			l.retire(s)
		}
	}
	for _, s := range fresh {
		l.startLoop(s)
	}
	l.mu.Unlock()
	l.Kick()
	return nil
}

func freeSlot(taken uint64) (int, error) {
	for i := range maxSlots {
		if taken&(1<<i) == 0 {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%w: more than %d stores at one time", ErrBadConfig, maxSlots)
}

// retire takes a store out of everything. Callers hold l.mu.
func (l *Leases) retire(s *storeLease) {
	s.retired = true
	if s.stop != nil {
		s.stop()
	}
	for _, h := range l.holds {
		l.detach(h, s)
		h.told &^= s.bit()
		h.refused &^= s.bit()
	}
	for _, r := range l.sessions {
		r.at[s.index], r.freeAt[s.index], r.most[s.index] = unseen, 0, 0
	}
}

// startLoop has the store renewed until Run ends or the store is retired. Callers hold
// l.mu.
func (l *Leases) startLoop(s *storeLease) {
	if l.life == nil {
		return
	}
	ctx, stop := context.WithCancel(l.life)
	s.stop = stop
	l.loops.Go(func() {
		defer stop()
		l.renewLoop(ctx, s)
	})
}
