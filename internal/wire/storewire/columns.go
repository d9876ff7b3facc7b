package storewire

import (
	"fmt"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// A takeover moves thousands of sections in one message. As columns of fixed numbers
// they cost a store and its caller a tenth of what a message an item does. Requests on
// anything but sections, and replies with a payload or a text, go item by item.

// columnsFrom is the least number of items that a message sends as columns.
const columnsFrom = 2

// column gives what travels of n values: all, one if they are equal, none if they are 0.
func column(n int, value func(i int) uint64) []uint64 {
	first := value(0)
	same := 1
	for same < n && value(same) == first {
		same++
	}
	switch {
	case same == n && first == 0:
		return nil
	case same == n:
		return []uint64{first}
	}
	out := make([]uint64, n)
	for i := range out {
		out[i] = value(i)
	}
	return out
}

// cells reads a column of n values back.
type cells struct{ values []uint64 }

func (c cells) at(i int) uint64 {
	switch len(c.values) {
	case 0:
		return 0
	case 1:
		return c.values[0]
	}
	return c.values[i]
}

// read checks that a column is one of n values.
func read(what string, values []uint64, n int) (cells, error) {
	if len(values) > 1 && len(values) != n {
		return cells{}, fmt.Errorf("%w: %d %s for %d items", seq.ErrBadBatch, len(values), what, n)
	}
	return cells{values}, nil
}

// sections gives the columns of n items, nil unless all are sections.
func sections(n int, register func(i int) seq.Register) *pb.SectionColumns {
	if n < columnsFrom {
		return nil
	}
	out := &pb.SectionColumns{Sections: make([]uint32, n)}
	for i := range n {
		id, ok := register(i).Section()
		if !ok {
			return nil
		}
		out.Sections[i] = uint32(id)
	}
	return out
}

// sectionItems reads items back: n of them, made by item from section, round and max.
func sectionItems[T any](c *pb.SectionColumns, item func(r seq.Register, round, max uint64) T) ([]T, error) {
	n := len(c.GetSections())
	rounds, err := read("rounds", c.GetRounds(), n)
	if err != nil {
		return nil, err
	}
	maxes, err := read("maxes", c.GetMaxes(), n)
	if err != nil {
		return nil, err
	}
	out := make([]T, n)
	for i, id := range c.GetSections() {
		out[i] = item(seq.SectionRegister(seq.SectionID(id)), rounds.at(i), maxes.at(i))
	}
	return out, nil
}

func leaseColumns(items []quorum.LeaseItem) *pb.SectionColumns {
	c := sections(len(items), func(i int) seq.Register { return items[i].Register })
	if c != nil {
		c.Rounds = column(len(items), func(i int) uint64 { return items[i].Round })
		c.Seals = column(len(items), func(i int) uint64 { return items[i].Seal })
	}
	return c
}

// leaseItems reads what leaseColumns wrote, or else the items.
func leaseItems(c *pb.SectionColumns, items []*pb.LeaseItem) ([]quorum.LeaseItem, error) {
	if c == nil {
		return leasesFromProto(items), nil
	}
	out, err := sectionItems(c, func(r seq.Register, round, _ uint64) quorum.LeaseItem {
		return quorum.LeaseItem{Register: r, Round: round}
	})
	if err != nil {
		return nil, err
	}
	seals, err := read("seals", c.GetSeals(), len(out))
	if err != nil {
		return nil, err
	}
	for i := range out {
		out[i].Seal = seals.at(i)
	}
	return out, nil
}

// resultColumns is nil if the results do not fit.
func resultColumns(results []quorum.Result) *pb.ResultColumns {
	n := len(results)
	if n < columnsFrom {
		return nil
	}
	out := &pb.ResultColumns{Verdicts: make([]byte, n)}
	for i := range results {
		r := &results[i]
		if r.Register != "" || len(r.Payload) > 0 || r.Index > 0 || r.Time != 0 || r.Message != "" {
			return nil
		}
		out.Verdicts[i] = byte(r.Verdict)
	}
	out.PromisedRounds = column(n, func(i int) uint64 { return results[i].Promised.Round })
	out.PromisedSessions = column(n, func(i int) uint64 { return uint64(results[i].Promised.Session) })
	out.AcceptedRounds = column(n, func(i int) uint64 { return results[i].Accepted.Round })
	out.AcceptedSessions = column(n, func(i int) uint64 { return uint64(results[i].Accepted.Session) })
	out.Maxes = column(n, func(i int) uint64 { return results[i].Max })
	out.Floors = column(n, func(i int) uint64 { return results[i].Floor })
	out.Holders = column(n, func(i int) uint64 { return uint64(results[i].Holder) })
	out.RemainingUs = column(n, func(i int) uint64 { return micros(results[i].Remaining) })
	out.Seals = column(n, func(i int) uint64 { return results[i].Seal })
	return out
}

func resultsFromColumns(c *pb.ResultColumns) ([]quorum.Result, error) {
	n := len(c.GetVerdicts())
	var by [9]cells
	for k, values := range [...][]uint64{c.GetPromisedRounds(), c.GetPromisedSessions(), c.GetAcceptedRounds(),
		c.GetAcceptedSessions(), c.GetMaxes(), c.GetHolders(), c.GetRemainingUs(), c.GetFloors(), c.GetSeals()} {
		var err error
		if by[k], err = read("values of one result column", values, n); err != nil {
			return nil, err
		}
	}
	out := make([]quorum.Result, n)
	for i, v := range c.GetVerdicts() {
		r := &out[i]
		r.Verdict = verdict(pb.Verdict(v))
		r.Promised = seq.Epoch{Round: by[0].at(i), Session: seq.Session(by[1].at(i))}
		r.Accepted = seq.Epoch{Round: by[2].at(i), Session: seq.Session(by[3].at(i))}
		r.Floor = by[7].at(i)
		r.Max, r.Holder, r.Remaining = by[4].at(i), seq.Session(by[5].at(i)), duration(by[6].at(i))
		r.Seal = by[8].at(i)
	}
	return out, nil
}
