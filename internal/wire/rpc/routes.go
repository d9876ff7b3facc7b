package rpc

import (
	"fmt"
	"math"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// RoutesToProto is the table as it travels; nil for nil.
func RoutesToProto(t *seq.RouteTable) *pb.RouteTable {
	if t == nil {
		return nil
	}
	out := &pb.RouteTable{
		Version:  t.Version,
		Nodes:    make([]*pb.Node, len(t.Nodes)),
		Owner:    make([]int32, len(t.Sections)),
		Standby:  make([]int32, len(t.Sections)),
		Standby2: make([]int32, len(t.Sections)),
		Frozen:   t.Frozen,
	}
	for i, n := range t.Nodes {
		out.Nodes[i] = &pb.Node{Name: n.Name, Addr: n.Addr, Session: uint64(n.Session), Weight: n.Weight, Drained: n.Drained, Leaving: uint64(n.Leaving), Zone: n.Zone}
	}
	for i, p := range t.Sections {
		out.Owner[i], out.Standby[i], out.Standby2[i] = int32(p.Owner), int32(p.Standby), int32(p.Standby2)
	}
	if len(t.Pins) > 0 {
		out.Pins = make(map[uint32]string, len(t.Pins))
		for id, name := range t.Pins {
			out.Pins[uint32(id)] = name
		}
	}
	return out
}

// RoutesFromProto reads a table and validates it against the mapping. It is nil for
// nil; seq.ErrBadTable for one that is not sound.
func RoutesFromProto(t *pb.RouteTable, m seq.Mapping) (*seq.RouteTable, error) {
	if t == nil {
		return nil, nil
	}
	n := len(t.GetOwner())
	if len(t.GetStandby()) != n || len(t.GetStandby2()) != n {
		return nil, fmt.Errorf("%w: %d owners, %d standbys, %d second standbys", seq.ErrBadTable, n, len(t.GetStandby()), len(t.GetStandby2()))
	}
	out := &seq.RouteTable{
		Version:  t.GetVersion(),
		Nodes:    make([]seq.Node, len(t.GetNodes())),
		Sections: make([]seq.Placement, n),
		Frozen:   t.GetFrozen(),
	}
	for i, node := range t.GetNodes() {
		out.Nodes[i] = seq.Node{
			Name: node.GetName(), Addr: node.GetAddr(), Session: seq.Session(node.GetSession()),
			Weight: node.GetWeight(), Drained: node.GetDrained(), Leaving: seq.Session(node.GetLeaving()), Zone: node.GetZone(),
		}
	}
	for i := range out.Sections {
		for _, v := range []int32{t.GetOwner()[i], t.GetStandby()[i], t.GetStandby2()[i]} {
			if v < seq.NoNode || v > math.MaxInt16 {
				return nil, fmt.Errorf("%w: section %d points to node %d of %d", seq.ErrBadTable, i, v, len(out.Nodes))
			}
		}
		out.Sections[i] = seq.Placement{Owner: int16(t.GetOwner()[i]), Standby: int16(t.GetStandby()[i]), Standby2: int16(t.GetStandby2()[i])}
	}
	if len(t.GetPins()) > 0 {
		out.Pins = make(map[seq.SectionID]string, len(t.GetPins()))
		for id, name := range t.GetPins() {
			out.Pins[seq.SectionID(id)] = name
		}
	}
	if err := out.Validate(m); err != nil {
		return nil, fmt.Errorf("routes version %d: %w", out.Version, err)
	}
	return out, nil
}

// MappingToProto is the mapping as it travels.
func MappingToProto(m seq.Mapping) *pb.Mapping {
	out := &pb.Mapping{Spaces: make([]*pb.Space, len(m.Spaces))}
	for i := range m.Spaces {
		out.Spaces[i] = SpaceToProto(&m.Spaces[i])
	}
	return out
}

// IncarnationToProto encodes an incarnation. It returns nil for one that is not known.
func IncarnationToProto(in seq.Incarnation) *pb.Incarnation {
	if !in.Known() {
		return nil
	}
	out := &pb.Incarnation{Cluster: in.Cluster[:], Era: uint64(in.Era)}
	if !in.Binding.IsZero() {
		out.Binding = in.Binding[:]
	}
	return out
}

// IncarnationFromProto decodes an incarnation. Without a cluster of 16 bytes it is not known.
func IncarnationFromProto(in *pb.Incarnation) seq.Incarnation {
	cluster := seq.ClusterIDOf(in.GetCluster())
	if cluster.IsZero() {
		return seq.Incarnation{}
	}
	return seq.Incarnation{Cluster: cluster, Era: seq.Era(in.GetEra()), Binding: seq.ClusterIDOf(in.GetBinding())}
}

// SpaceToProto is a space as it travels.
func SpaceToProto(s *seq.Space) *pb.Space {
	return &pb.Space{Name: s.Name, First: uint32(s.First), Sections: s.Sections, Step: s.Step, MaxStep: s.MaxStep, MaxJump: s.MaxJump,
		Mode: string(s.Mode), KeyHash: string(s.KeyHash), WindowMs: uint64(s.Window.Milliseconds()), TicketsMs: uint64(s.Tickets.Milliseconds()), Added: s.Added}
}

// SpaceFromProto reads a space and checks nothing.
func SpaceFromProto(s *pb.Space) seq.Space {
	return seq.Space{Name: s.GetName(), First: seq.SectionID(s.GetFirst()), Sections: s.GetSections(), Step: s.GetStep(), MaxStep: s.GetMaxStep(), MaxJump: s.GetMaxJump(),
		Mode: seq.Mode(s.GetMode()), KeyHash: seq.KeyHash(s.GetKeyHash()), Added: s.GetAdded(),
		Window: millis(s.GetWindowMs()), Tickets: millis(s.GetTicketsMs())}
}

func millis(n uint64) time.Duration {
	return time.Duration(min(n, math.MaxInt64/uint64(time.Millisecond))) * time.Millisecond
}

// MappingFromProto reads a mapping and validates it; seq.ErrBadMapping for one that
// is missing or not sound.
func MappingFromProto(m *pb.Mapping) (seq.Mapping, error) {
	out := seq.Mapping{Spaces: make([]seq.Space, len(m.GetSpaces()))}
	for i, s := range m.GetSpaces() {
		out.Spaces[i] = SpaceFromProto(s)
	}
	if err := out.Validate(); err != nil {
		return seq.Mapping{}, err
	}
	return out, nil
}
