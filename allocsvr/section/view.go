package section

import (
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

// View is one section as a node has it at one moment.
//
//	Base <= High <= Confirmed
type View struct {
	Section seq.SectionID
	// Owned: under Epoch numbers may be handed out, while the lease holds; otherwise
	// the section is sealed under it and none ever is again.
	Owned     bool
	Epoch     seq.Epoch
	Base      uint64        // what every UID without a counter stands at; folding raises it
	High      uint64        // highest counter
	Confirmed uint64        // W stores have it (I5)
	Until     time.Duration // end of the lease on the node's clock, 0 for none
}

// Views lists the sections that are owned or sealed.
func (t *Table) Views() []View {
	var out []View
	for c := range t.all() {
		if v, ok := c.View(); ok {
			out = append(out, v)
		}
	}
	return out
}

// View returns the section now; false if it is neither owned nor sealed.
func (c *Section) View() (v View, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != Owned && c.state != Sealed {
		return View{}, false
	}
	v = View{Section: c.id, Owned: c.state == Owned, Epoch: c.epoch,
		Base: c.table.Base(), High: c.table.High(), Confirmed: c.confirmed}
	if c.hold != nil {
		v.Until = c.hold.Until()
	}
	return v, true
}

// Census counts the sections that are served at this moment and the UIDs in memory.
func (t *Table) Census() (serving, uids int) {
	now := t.clock.Now()
	for c := range t.all() {
		c.mu.Lock()
		if c.state == Owned {
			uids += c.uids()
			if c.leased(now) {
				serving++
			}
		}
		c.mu.Unlock()
	}
	return serving, uids
}

// uids returns the number of UIDs that the section has in memory. Needs c.mu.
func (c *Section) uids() int {
	if c.log == nil {
		return c.table.Len()
	}
	uids, _ := c.log.Size()
	return uids
}

// Standing counts the owned sections, and in lapsed the owned sections whose lease has ended. In missing it
// counts sections that this node should own and, as far as it knows, no node owns. In reading it counts owned
// exact sections whose copies are still to be read.
func (t *Table) Standing(mine func(seq.SectionID) bool) (have, lapsed, missing, reading int) {
	now := t.clock.Now()
	for c := range t.all() {
		want := mine(c.id)
		c.mu.Lock()
		switch {
		case c.state == Owned:
			have++
			if !c.leased(now) {
				lapsed++
			}
			if c.log != nil && c.log.Reading() {
				reading++
			}
		case c.state != Sealed && c.successor == "" && want:
			missing++
		}
		c.mu.Unlock()
	}
	return have, lapsed, missing, reading
}

// Totals are counted since the table was made.
type Totals struct{ Numbers, Steps, Lost uint64 }

// Totals of all sections.
func (t *Table) Totals() Totals {
	return Totals{Numbers: t.stats.total(), Steps: t.stats.steps.Load(), Lost: t.stats.nacks.Load()}
}
