package storewire

import (
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// micros rounds a length of time up to what the wire can say.
func micros(d time.Duration) uint64 {
	return uint64(max(0, d+time.Microsecond-1) / time.Microsecond)
}

// duration is the length of that many microseconds, at most about 292 years.
func duration(us uint64) time.Duration {
	const most = uint64(1<<63-1) / uint64(time.Microsecond)
	return time.Duration(min(us, most)) * time.Microsecond
}

// RefToProto encodes a Ref.
func RefToProto(r quorum.Ref) *pb.Ref {
	return &pb.Ref{ClusterId: r.Cluster, Era: uint64(r.Era), MembersVersion: r.Members, MembersHash: r.MembersHash}
}

// RefFromProto decodes a Ref; nil is the zero Ref, which no store takes for its own.
func RefFromProto(r *pb.Ref) quorum.Ref {
	return quorum.Ref{Cluster: r.GetClusterId(), Era: seq.Era(r.GetEra()), Members: r.GetMembersVersion(), MembersHash: r.GetMembersHash()}
}

// MembersToProto encodes a member list.
func MembersToProto(members []quorum.Member) []*pb.StoreMember {
	out := make([]*pb.StoreMember, len(members))
	for i, m := range members {
		out[i] = &pb.StoreMember{Uuid: m.UUID, Name: m.Name}
	}
	return out
}

// MembersFromProto decodes a member list; nil for an empty one.
func MembersFromProto(members []*pb.StoreMember) []quorum.Member {
	if len(members) == 0 {
		return nil
	}
	out := make([]quorum.Member, len(members))
	for i, m := range members {
		out[i] = quorum.Member{UUID: m.GetUuid(), Name: m.GetName()}
	}
	return out
}

// ReadToProto encodes a ReadRequest. A prefix travels as text: it must be valid UTF-8.
func ReadToProto(r quorum.ReadRequest) *pb.ReadRequest {
	out := &pb.ReadRequest{Ref: RefToProto(r.Ref), Session: uint64(r.Session), Prefix: r.Prefix, Registers: make([][]byte, len(r.Registers))}
	for i, reg := range r.Registers {
		out.Registers[i] = []byte(reg)
	}
	return out
}

// ReadFromProto decodes a ReadRequest.
func ReadFromProto(r *pb.ReadRequest) quorum.ReadRequest {
	out := quorum.ReadRequest{Ref: RefFromProto(r.GetRef()), Session: seq.Session(r.GetSession()), Prefix: r.GetPrefix(), Registers: make([]seq.Register, len(r.GetRegisters()))}
	for i, reg := range r.GetRegisters() {
		out.Registers[i] = seq.Register(reg)
	}
	return out
}

// PrepareToProto encodes a PrepareRequest.
func PrepareToProto(r quorum.PrepareRequest) *pb.PrepareRequest {
	out := &pb.PrepareRequest{Ref: RefToProto(r.Ref), Session: uint64(r.Session), Items: make([]*pb.PrepareItem, len(r.Items))}
	for i, it := range r.Items {
		out.Items[i] = &pb.PrepareItem{Register: []byte(it.Register), Round: it.Round, Create: it.Create}
	}
	return out
}

// PrepareFromProto decodes a PrepareRequest.
func PrepareFromProto(r *pb.PrepareRequest) quorum.PrepareRequest {
	out := quorum.PrepareRequest{Ref: RefFromProto(r.GetRef()), Session: seq.Session(r.GetSession()), Items: make([]quorum.PrepareItem, len(r.GetItems()))}
	for i, it := range r.GetItems() {
		out.Items[i] = quorum.PrepareItem{Register: seq.Register(it.GetRegister()), Round: it.GetRound(), Create: it.GetCreate()}
	}
	return out
}

// StepToProto encodes a StepRequest. Payloads are shared, not copied.
func StepToProto(r quorum.StepRequest) *pb.StepRequest {
	out := &pb.StepRequest{Ref: RefToProto(r.Ref), Session: uint64(r.Session), Items: make([]*pb.StepItem, len(r.Items))}
	for i, it := range r.Items {
		out.Items[i] = &pb.StepItem{Register: []byte(it.Register), Round: it.Round, Max: it.Max, Payload: it.Payload}
	}
	return out
}

// StepFromProto decodes a StepRequest. Payloads are shared, not copied.
func StepFromProto(r *pb.StepRequest) quorum.StepRequest {
	out := quorum.StepRequest{Ref: RefFromProto(r.GetRef()), Session: seq.Session(r.GetSession()), Items: make([]quorum.StepItem, len(r.GetItems()))}
	for i, it := range r.GetItems() {
		out.Items[i] = quorum.StepItem{Register: seq.Register(it.GetRegister()), Round: it.GetRound(), Max: it.GetMax(), Payload: it.GetPayload()}
	}
	return out
}

func leasesToProto(items []quorum.LeaseItem) []*pb.LeaseItem {
	out := make([]*pb.LeaseItem, len(items))
	for i, it := range items {
		out[i] = &pb.LeaseItem{Register: []byte(it.Register), Round: it.Round}
	}
	return out
}

func leasesFromProto(items []*pb.LeaseItem) []quorum.LeaseItem {
	if len(items) == 0 {
		return nil
	}
	out := make([]quorum.LeaseItem, len(items))
	for i, it := range items {
		out[i] = quorum.LeaseItem{Register: seq.Register(it.GetRegister()), Round: it.GetRound()}
	}
	return out
}

// RenewToProto encodes a RenewRequest. A negative lease becomes 0.
func RenewToProto(r quorum.RenewRequest) *pb.RenewRequest {
	return &pb.RenewRequest{
		Ref: RefToProto(r.Ref), Session: uint64(r.Session), Name: r.Name, Addr: r.Addr,
		LeaseUs: micros(r.Lease),
		Attach:  leasesToProto(r.Attach), Drop: leasesToProto(r.Drop),
		Attached: r.Attached, SeenCommits: r.Seen,
	}
}

// RenewFromProto decodes a RenewRequest.
func RenewFromProto(r *pb.RenewRequest) quorum.RenewRequest {
	return quorum.RenewRequest{
		Ref: RefFromProto(r.GetRef()), Session: seq.Session(r.GetSession()), Name: r.GetName(), Addr: r.GetAddr(),
		Lease:  duration(r.GetLeaseUs()),
		Attach: leasesFromProto(r.GetAttach()), Drop: leasesFromProto(r.GetDrop()),
		Attached: r.GetAttached(), Seen: r.GetSeenCommits(),
	}
}

// ReleaseToProto encodes a ReleaseRequest.
func ReleaseToProto(r quorum.ReleaseRequest) *pb.ReleaseRequest {
	return &pb.ReleaseRequest{Ref: RefToProto(r.Ref), Session: uint64(r.Session), Items: leasesToProto(r.Items), All: r.All, To: uint64(r.To)}
}

// ReleaseFromProto decodes a ReleaseRequest.
func ReleaseFromProto(r *pb.ReleaseRequest) quorum.ReleaseRequest {
	return quorum.ReleaseRequest{Ref: RefFromProto(r.GetRef()), Session: seq.Session(r.GetSession()), Items: leasesFromProto(r.GetItems()), All: r.GetAll(), To: seq.Session(r.GetTo())}
}
