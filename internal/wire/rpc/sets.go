package rpc

import (
	"fmt"
	"slices"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// SetMapToProto is the map as it travels; nil for one that names no Set.
func SetMapToProto(m sets.Map) *pb.SetMap {
	if len(m.Sets) == 0 {
		return nil
	}
	out := &pb.SetMap{Version: m.Version}
	for _, s := range m.Sets {
		out.Sets = append(out.Sets, SetToProto(s))
	}
	for id, in := range m.In {
		if n := len(out.Runs); n > 0 && out.Runs[n-1].Set == uint32(in) && int(out.Runs[n-1].Sections.First+out.Runs[n-1].Sections.Sections) == id {
			out.Runs[n-1].Sections.Sections++
		} else if in != 0 {
			out.Runs = append(out.Runs, &pb.SetRun{Sections: &pb.SectionRange{First: uint32(id), Sections: 1}, Set: uint32(in)})
		}
	}
	out.Moves = SetMovesToProto(m.Moves)
	return out
}

// SetMapFromProto reads a map as it travels: which Set has which sections, without what brought
// them there. The zero map for nil; seq.ErrBadTable for one that is not sound.
func SetMapFromProto(p *pb.SetMap) (sets.Map, error) {
	m := sets.Map{Version: p.GetVersion()}
	for _, s := range p.GetSets() {
		m.Sets = append(m.Sets, SetFromProto(s))
	}
	for _, run := range p.GetRuns() {
		first, n := run.GetSections().GetFirst(), run.GetSections().GetSections()
		if int(first) < len(m.In) || uint64(first)+uint64(n) > seq.MaxSections || run.GetSet() > sets.MaxSets {
			return m, fmt.Errorf("%w: map of Sets: sections %d and %d more", seq.ErrBadTable, first, n)
		}
		m.In = append(m.In, make([]uint16, int(first)-len(m.In))...)
		m.In = append(m.In, slices.Repeat([]uint16{uint16(run.GetSet())}, int(n))...)
	}
	m.By, m.Ceilings = make([]uint64, len(m.In)), make([]uint64, len(m.In))
	m.Moves = SetMovesFromProto(p.GetMoves())
	return m, m.Validate()
}

// SetMovesToProto are moves between Sets as they travel.
func SetMovesToProto(moves []sets.Move) (out []*pb.SetMove) {
	for _, move := range moves {
		out = append(out, &pb.SetMove{Id: move.ID, From: move.From, To: move.To, Sections: RangesToProto(move.Sections), BegunUnixMs: move.Begun})
	}
	return out
}

// SetMovesFromProto reads moves between Sets as they travel.
func SetMovesFromProto(p []*pb.SetMove) (out []sets.Move) {
	for _, move := range p {
		out = append(out, sets.Move{ID: move.GetId(), From: move.GetFrom(), To: move.GetTo(), Sections: RangesFromProto(move.GetSections()), Begun: move.GetBegunUnixMs()})
	}
	return out
}

// SetToProto is a Set of the map as it travels.
func SetToProto(s sets.Set) *pb.Set {
	return &pb.Set{Name: s.Name, ClusterId: s.Cluster, Addrs: s.Addrs, Incarnation: IncarnationToProto(s.Incarnation)}
}

// SetFromProto is a Set of the map as it came.
func SetFromProto(s *pb.Set) sets.Set {
	return sets.Set{Name: s.GetName(), Cluster: s.GetClusterId(), Addrs: s.GetAddrs(), Incarnation: IncarnationFromProto(s.GetIncarnation())}
}

// RangesToProto is ranges of sections as they travel.
func RangesToProto(ranges []sets.Range) []*pb.SectionRange {
	out := make([]*pb.SectionRange, len(ranges))
	for i, r := range ranges {
		out[i] = &pb.SectionRange{First: uint32(r.First), Sections: r.Sections}
	}
	return out
}

// RangesFromProto is ranges of sections as they came; package sets checks them.
func RangesFromProto(ranges []*pb.SectionRange) []sets.Range {
	out := make([]sets.Range, len(ranges))
	for i, r := range ranges {
		out[i] = sets.Range{First: seq.SectionID(r.GetFirst()), Sections: r.GetSections()}
	}
	return out
}

// SetRecordToProto is a record as it travels.
func SetRecordToProto(r sets.Record) *pb.SetRecordReply {
	out := &pb.SetRecordReply{Set: r.SetName(), Root: r.Root, RootClusterId: r.RootCluster, Rest: placesToProto(r.Rest)}
	for _, run := range r.Runs {
		p := placesToProto(run.Place)
		p.Sections = RangesToProto([]sets.Range{run.Range})[0]
		out.Places = append(out.Places, p)
	}
	return out
}

// SetRecordFromProto is a record as it came.
func SetRecordFromProto(p *pb.SetRecordReply) sets.Record {
	r := sets.Record{Name: p.GetSet(), Root: p.GetRoot(), RootCluster: p.GetRootClusterId(), Rest: placeFromProto(p.GetRest())}
	for _, run := range p.GetPlaces() {
		r.Runs = append(r.Runs, sets.Run{Range: RangesFromProto([]*pb.SectionRange{run.GetSections()})[0], Place: placeFromProto(run)})
	}
	return r
}

// OfSections is what a message has of each section.
func OfSections[T any](in map[uint32]T) map[seq.SectionID]T {
	out := make(map[seq.SectionID]T, len(in))
	for id, v := range in {
		out[seq.SectionID(id)] = v
	}
	return out
}

// BySection is OfSections the other way.
func BySection[T any](in map[seq.SectionID]T) map[uint32]T {
	out := make(map[uint32]T, len(in))
	for id, v := range in {
		out[uint32(id)] = v
	}
	return out
}

func placesToProto(p sets.Place) *pb.SectionPlaces {
	return &pb.SectionPlaces{State: pb.SectionState(p.State) + 1, Move: p.Move, To: p.To, Above: p.Above, Was: p.Was}
}

func placeFromProto(p *pb.SectionPlaces) sets.Place {
	return sets.Place{State: sets.State(max(1, p.GetState()) - 1), Move: p.GetMove(), To: p.GetTo(), Above: p.GetAbove(), Was: p.GetWas()}
}
