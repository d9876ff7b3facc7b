package sim

import (
	"time"

	"github.com/seqsvr/seqsvr/allocsvr"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// leased checks the rule SERVE: a number is taken under a lease that has not ended. No
// time passes between the taking and the answer, unless the answer waits for the stores, as
// it does in a strict space.
func (c *checker) leased(h *host, space string, uid uint64) {
	s, err := c.w.ident.Mapping.Space(space)
	if err != nil || s.Mode == seq.Strict || s.Mode == seq.UniqueOnly {
		return
	}
	c.w.mu.Lock()
	p, up := h.alloc, h.up
	c.w.mu.Unlock()
	if !up || p == nil {
		return
	}
	id, now := s.SectionOf(seq.UID(uid)), h.clock.Now()
	for _, v := range p.node.Sections() {
		if v.Section == id {
			c.within(h, v, now)
		}
	}
}

// within checks that a section that answers now is leased. One without any lease was lost
// in this moment.
func (c *checker) within(h *host, v allocsvr.SectionView, now time.Duration) {
	if v.Owned && v.Until > 0 && now >= v.Until {
		c.broken("lease", "%s answers with a number of section %d under %s, %v after the end of its lease", h.name, v.Section, v.Epoch, now-v.Until)
	}
}

// saw says by whom a process was told of transactions: the disk, and the version of the
// member list.
type saw struct {
	uuid    string
	members uint64
}

// told takes in what a store told of its disk. A process that takes one store for another
// believes neither. Needs world.mu.
func (h *host) told(req *pb.RenewRequest, reply *pb.RenewReply) {
	if h.w.astray[h] != nil || h.w.opts.Care { // stores are filled anew and restored there
		return
	}
	k := saw{reply.GetStoreUuid(), req.GetRef().GetMembersVersion()}
	h.seen[k] = max(h.seen[k], reply.GetCommits())
}

// tells checks that a session tells a store what it has seen of its disk, by which an old
// disk is found out.
func (c *checker) tells(k *call, req *pb.RenewRequest, reply *pb.RenewReply) {
	told := uint64(0)
	for _, claim := range req.GetSeen() {
		told = max(told, claim.GetCommits())
	}
	if known := k.seen[saw{reply.GetStoreUuid(), req.GetRef().GetMembersVersion()}]; told < known {
		c.broken("D", "%s has seen %d transactions of %s and tells it of %d", k.from.name, known, k.to.name, told)
	}
}
