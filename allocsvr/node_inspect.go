package allocsvr

import (
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

// SectionView is one section as a node has it at one moment, for those who check the
// invariants from outside.
//
//	Base <= High <= Confirmed
type SectionView struct {
	Section seq.SectionID
	// Owned: under Epoch numbers may be handed out, while the lease holds; otherwise
	// the section is sealed under it and none ever is again.
	Owned     bool
	Epoch     seq.Epoch
	Base      uint64        // what every UID without a counter stands at
	High      uint64        // highest counter
	Confirmed uint64        // W stores have it (I5)
	Until     time.Duration // end of the lease on the node's clock, 0 for none
}

// Sections lists the sections that the node owns or has sealed.
func (n *Node) Sections() []SectionView {
	var out []SectionView
	for _, c := range n.alloc.cells {
		c.mu.Lock()
		if c.state == owned || c.state == sealed {
			v := SectionView{Section: c.id, Owned: c.state == owned, Epoch: c.epoch,
				Base: c.table.Base(), High: c.table.High(), Confirmed: c.confirmed}
			if c.hold != nil {
				v.Until = c.hold.Until()
			}
			out = append(out, v)
		}
		c.mu.Unlock()
	}
	return out
}

// Counts are the takeovers, hand-overs and steps of the node since its start.
func (n *Node) Counts() (takeovers, handoffs, steps uint64) {
	s := &n.alloc.stats
	return s.takeovers.Load(), s.handoffs.Load(), s.steps.Load()
}
