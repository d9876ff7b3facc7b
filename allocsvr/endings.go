package allocsvr

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// mostEndings is how many sections near their end are named; all are counted.
const mostEndings = 100

// endings puts the sections near their end into a reply, by what the stores have.
func (a *Alloc) endings(regs map[seq.Register]quorum.Outcome, reply *pb.StatusReply) {
	for reg, out := range regs {
		id, ok := reg.Section()
		if !ok || int(id) >= len(a.cells) {
			continue
		}
		c := a.cells[id]
		near, spent := c.space.Ending(out.Max)
		if !near {
			continue
		}
		reply.SectionsNearEnd++
		if spent {
			reply.SectionsSpent++
		}
		e := &pb.EndingSection{Section: uint32(id), Space: c.space.Name, Max: out.Max, Spent: spent}
		c.mu.Lock()
		if c.state == owned {
			e.Owned, e.Base = true, c.table.Base()
		}
		c.mu.Unlock()
		reply.Ending = append(reply.Ending, e)
	}
	slices.SortFunc(reply.Ending, func(a, b *pb.EndingSection) int { return cmp.Compare(a.Section, b.Section) })
	reply.Ending = reply.Ending[:min(len(reply.Ending), mostEndings)]
}

// sendEndings gives the owned sections near their end.
func (a *Alloc) sendEndings(ch chan<- prometheus.Metric) {
	all, ended := 0, 0
	for _, c := range a.cells {
		c.mu.Lock()
		mine, ceiling := c.state == owned, c.confirmed
		c.mu.Unlock()
		near, spent := c.space.Ending(ceiling)
		if !mine || !near {
			continue
		}
		if all++; spent {
			ended++
		}
		if all <= mostEndings {
			mLeft.Send(ch, float64(uint64(seq.MaxSeq)-min(ceiling, uint64(seq.MaxSeq))), c.space.Name, strconv.Itoa(int(c.id)))
		}
	}
	mNearEnd.Send(ch, float64(all), "near")
	mNearEnd.Send(ch, float64(ended), "spent")
}
