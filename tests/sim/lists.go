package sim

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/storeclient"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

// spares are the machines of a run with operators that have no store at first.
const spares = 24

// spare makes a machine on which a store can be made later.
func (w *world) spare(i int) {
	h := w.newHost(storeHost, storeName(i), i)
	h.disk = newDisk(w, h)
	h.blank, h.lost = true, true
}

// fresh takes the next machine that has no store yet; nil if none is left. Needs w.mu.
func (w *world) fresh() *host {
	for _, h := range w.hosts {
		if h.blank {
			h.blank = false
			return h
		}
	}
	return nil
}

// through has clients of a life of a host speak over the simulated network.
func (w *world) through(h *host, life int) grpc.DialOption {
	return storeclient.Through(func(addr string) grpc.ClientConnInterface { return &conn{w: w, from: h, life: life, to: addr} })
}

// list is the newest member list of the present era.
func (w *world) list() quorum.MemberList { return w.check.list(w.check.present()) }

// addresses are what configuration files name: all stores of the present member list.
func (w *world) addresses() []string {
	var out []string
	for _, m := range w.list().Voters() {
		out = append(out, m.Name)
	}
	return out
}

// target is the store that a fault with this name happens to: if it is no member (any
// more), the member with the same number.
func (w *world) target(name string) string {
	if !w.opts.Care || w.opts.still || !strings.HasPrefix(name, "s") {
		return name
	}
	members := w.list().Members
	if slices.ContainsFunc(members, func(m quorum.Member) bool { return m.Name == name }) {
		return name
	}
	for i := range w.of(storeHost) {
		if storeName(i) == name {
			return members[i%len(members)].Name
		}
	}
	return name
}

// groupConfig is how one speaks to the stores of the newest list.
func (w *world) groupConfig() (quorum.Config, []quorum.Member) {
	l := w.list()
	return quorum.Config{Ref: l.Ref(w.ident.Ref.Cluster, w.check.present()), N: l.N(), R: l.R, W: l.W}, l.Voters()
}

// eras is what the checker knows of the member lists. Guarded by checker.mu.
type eras struct {
	now    seq.Era
	lists  map[seq.Era]quorum.MemberList // the newest that any store has
	issued map[seq.Register]uint64       // the highest that was handed out
	past   map[seq.SectionID]uint64      // the highest ceiling of the eras before
	homes  map[string]*host              // by uuid
}

func (c *checker) present() seq.Era {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.eras.now
}

func (c *checker) list(era seq.Era) quorum.MemberList {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.eras.lists[era]
}

// home says on which machine the store with the uuid is.
func (c *checker) home(uuid string, h *host) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.eras.homes[uuid] = h
}

// listed takes in that a store has a member list, which proves that it was decided. One
// version is one list, and it overlaps with the one before.
func (c *checker) listed(h *host, id disk.Identity, m disk.Members) {
	next := quorum.MemberList{Version: m.Version, R: m.R, W: m.W, Members: m.List}
	if m.W == 0 {
		next.R, next.W = id.R, id.W
	}
	c.mu.Lock()
	have := c.eras.lists[id.Era]
	if next.Version > have.Version {
		c.eras.lists[id.Era] = next
	}
	c.mu.Unlock()
	switch {
	case have.Version == 0 || next.Version < have.Version:
	case next.Version == have.Version && !next.Equal(have):
		c.broken("list", "%s has as version %d %v, others have %v", h.name, next.Version, next, have)
	case next.Version > have.Version+1:
		c.broken("list", "%s goes from list %d to %d, which nobody has told of one between", h.name, have.Version, next.Version)
	case next.Version == have.Version+1:
		if err := quorum.Overlap(have, next); err != nil {
			c.broken("list", "version %d does not overlap with %d: %v", next.Version, have.Version, err)
		}
	}
}

// kept checks I5 in every era: of the newest member list, so many voters have had what is
// handed out on their disks that no read quorum of it can miss it.
func (c *checker) kept(h *host, r seq.Register, value uint64) {
	era := h.eraNow()
	c.mu.Lock()
	l := c.eras.lists[era]
	if era == c.eras.now {
		c.eras.issued[r] = max(c.eras.issued[r], value)
	}
	homes := map[string]*host{}
	for _, m := range l.Voters() {
		homes[m.UUID] = c.eras.homes[m.UUID]
	}
	c.mu.Unlock()
	have, need := 0, l.N()-l.R+1
	for uuid, s := range homes {
		if s != nil && s.disk.hadAs(uuid, r) >= value {
			have++
		}
	}
	if have < need {
		c.broken("I5", "%s hands out %d of %s, which is on %d disks of list %d in era %d, %d needed", h.name, value, r, have, l.Version, era, need)
	}
}

// handedOut is a copy of what was handed out in this era and before.
func (c *checker) handedOut() map[seq.Register]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.eras.issued)
}

// newEra begins an era whose stores have that first list, and know these registers. No
// section may start below what was confirmed before (I6); within an era epochs say who
// came first.
func (c *checker) newEra(era seq.Era, list quorum.MemberList, known func(seq.Register) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s, all := range c.epochs {
		for _, rec := range all {
			c.eras.past[s] = max(c.eras.past[s], rec.confirmed)
		}
	}
	maps.DeleteFunc(c.eras.issued, func(r seq.Register, _ uint64) bool { return !known(r) })
	clear(c.epochs)
	clear(c.last)
	c.eras.now, c.eras.lists[era] = era, list
}
