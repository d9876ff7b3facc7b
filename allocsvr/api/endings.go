package api

import (
	"cmp"
	"slices"

	"github.com/seqsvr/seqsvr/allocsvr/section"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// ownEndings puts the sections near their end that this node owns into a reply, by what it
// knows of their ceilings.
func ownEndings(t *section.Table, reply *pb.StatusReply) {
	regs := map[seq.Register]quorum.Outcome{}
	for _, v := range t.Views() {
		if v.Owned {
			regs[seq.SectionRegister(v.Section)] = quorum.Outcome{Max: v.Confirmed}
		}
	}
	endings(t, regs, reply)
}

// endings puts the sections near their end into a reply, by what the stores have.
func endings(t *section.Table, regs map[seq.Register]quorum.Outcome, reply *pb.StatusReply) {
	for reg, out := range regs {
		id, ok := reg.Section()
		if !ok || int(id) >= t.Len() {
			continue
		}
		c := t.Section(id)
		near, spent := c.Space().Ending(out.Max)
		if !near {
			continue
		}
		reply.SectionsNearEnd++
		if spent {
			reply.SectionsSpent++
		}
		e := &pb.EndingSection{Section: uint32(id), Space: c.Space().Name, Max: out.Max, Spent: spent}
		if v, _ := c.View(); v.Owned {
			e.Owned, e.Base = true, v.Base
		}
		reply.Ending = append(reply.Ending, e)
	}
	slices.SortFunc(reply.Ending, func(a, b *pb.EndingSection) int { return cmp.Compare(a.Section, b.Section) })
	reply.Ending = reply.Ending[:min(len(reply.Ending), section.MostEndings)]
}
