package survey

import (
	"cmp"
	"fmt"
	"slices"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// Reading is what the AllocSvr keep for the readers of a space.
type Reading struct {
	Space    string  `json:"space"`
	Tickets  uint64  `json:"tickets_open"`
	OldestMS uint64  `json:"oldest_ticket_ms"`      // how long the oldest has been open at its owner
	Expired  float64 `json:"tickets_expired_per_s"` // by their time, in the last minutes
	Keys     uint64  `json:"watched_keys"`          // each counted once a node
}

// reading sums up what the nodes that answered keep, by space in order of name.
func (s *Survey) reading() []Reading {
	out := []Reading{}
	for _, set := range s.Each() {
		for _, reply := range set.Replies {
			read := reply.GetReading()
			for _, one := range read.GetSpaces() {
				at := slices.IndexFunc(out, func(r Reading) bool { return r.Space == one.GetSpace() })
				if at < 0 {
					at, out = len(out), append(out, Reading{Space: one.GetSpace()})
				}
				of := &out[at]
				of.Tickets, of.Keys = of.Tickets+one.GetTickets(), of.Keys+one.GetKeys()
				of.OldestMS, of.Expired = max(of.OldestMS, one.GetOldestMs()), of.Expired+rate(one.GetExpired(), read)
			}
		}
	}
	slices.SortFunc(out, func(a, b Reading) int { return cmp.Compare(a.Space, b.Space) })
	return out
}

// rate returns tickets a second.
func rate(lately uint64, of *pb.Reading) float64 {
	if of.GetLatelyMs() == 0 {
		return 0
	}
	return float64(lately) * 1000 / float64(of.GetLatelyMs())
}

// ticketTrouble is that four fifths of the tickets that a node may have are open, or all.
func ticketTrouble(name string, reply *pb.StatusReply) (t trouble, short bool) {
	open, most := reply.GetReading().GetTickets(), reply.GetReading().GetMostTickets()
	if most == 0 || open <= most/5*4 {
		return t, false
	}
	what := fmt.Sprintf("alloc %s: %d of %d tickets are open", name, open, most)
	if open >= most {
		what += ", others are refused"
	}
	return trouble{ticketsShort, open >= most, what, "seqctl status -o json",
		"for the space; shorter lives, or more AllocSvr (docs/operations.md#seqticketsrunshort)"}, true
}

// manyExpired is the number of tickets that expired in the last minutes from which a note names them. A few do
// wherever a writer dies.
const manyExpired = 10

// ticketNotes tell of nodes more than 1 % of whose tickets are ended by their time.
func (s *Survey) ticketNotes() (out []string) {
	for _, node := range s.Cluster.Table.Nodes {
		read := s.Replies[node.Name].GetReading()
		if n := read.GetExpired(); n >= manyExpired && n > read.GetOpened()/100 {
			out = append(out, fmt.Sprintf("alloc %s: %d of %d tickets expired in the last minutes (docs/operations.md, SeqTicketsExpire)",
				node.Name, n, max(n, read.GetOpened())))
		}
	}
	return out
}
