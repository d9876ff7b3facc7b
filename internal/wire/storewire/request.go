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

// convert is each of in as to makes it; nil for none.
func convert[In, Out any](in []In, to func(In) Out) []Out {
	if len(in) == 0 {
		return nil
	}
	out := make([]Out, len(in))
	for i, v := range in {
		out[i] = to(v)
	}
	return out
}

// RefToProto encodes a Ref.
func RefToProto(r quorum.Ref) *pb.Ref {
	return &pb.Ref{ClusterId: r.Cluster, Era: uint64(r.Era), MembersVersion: r.Members, MembersHash: r.MembersHash}
}

// RefFromProto decodes a Ref; nil is the zero Ref, which no store takes for its own.
func RefFromProto(r *pb.Ref) quorum.Ref {
	return quorum.Ref{Cluster: r.GetClusterId(), Era: seq.Era(r.GetEra()), Members: r.GetMembersVersion(), MembersHash: r.GetMembersHash()}
}

// SecretFromProto decodes a secret. One of another length is none, which proves nothing.
func SecretFromProto(b []byte) (s seq.Secret) {
	if len(b) == len(s.Seed) {
		copy(s.Seed[:], b)
	}
	return s
}

// SecretOf decodes the secret in a request: by its key alone, or by its node and seed.
func SecretOf(r interface {
	GetSecret() []byte
	GetNode() string
	GetSeed() []byte
}) seq.Secret {
	if r.GetNode() == "" {
		return SecretFromProto(r.GetSecret())
	}
	s := SecretFromProto(r.GetSeed())
	s.Node = r.GetNode()
	return s
}

// SecretToProto encodes the fields of a secret. Its key goes also where the seed does, to
// stores of v0.1.0.
func SecretToProto(s seq.Secret) (key []byte, node string, seed []byte) {
	k := s.Key()
	if s.Node != "" {
		seed = s.Seed[:]
	}
	return k[:], s.Node, seed
}

// MembersToProto encodes a member list.
func MembersToProto(members []quorum.Member) []*pb.StoreMember {
	return convert(members, func(m quorum.Member) *pb.StoreMember {
		return &pb.StoreMember{Uuid: m.UUID, Name: m.Name, Addr: m.Addr, Learner: m.Learner, Zone: m.Zone}
	})
}

// MembersFromProto decodes a member list; nil for an empty one.
func MembersFromProto(members []*pb.StoreMember) []quorum.Member {
	return convert(members, func(m *pb.StoreMember) quorum.Member {
		return quorum.Member{UUID: m.GetUuid(), Name: m.GetName(), Addr: m.GetAddr(), Learner: m.GetLearner(), Zone: m.GetZone()}
	})
}

// ReadToProto encodes a ReadRequest. A prefix travels as text: it must be valid UTF-8.
func ReadToProto(r quorum.ReadRequest) *pb.ReadRequest {
	out := &pb.ReadRequest{Ref: RefToProto(r.Ref), Session: uint64(r.Session), Prefix: r.Prefix, Copies: r.Copies, Preempt: r.Preempt}
	if out.Columns = sections(len(r.Registers), func(i int) seq.Register { return r.Registers[i] }); out.Columns != nil {
		return out
	}
	out.Registers = convert(r.Registers, func(reg seq.Register) []byte { return []byte(reg) })
	return out
}

// ReadFromProto decodes a ReadRequest; seq.ErrBadBatch for one that is not sound.
func ReadFromProto(r *pb.ReadRequest) (out quorum.ReadRequest, err error) {
	out = quorum.ReadRequest{Ref: RefFromProto(r.GetRef()), Session: seq.Session(r.GetSession()), Prefix: r.GetPrefix(), Copies: r.GetCopies(), Preempt: r.GetPreempt()}
	if c := r.GetColumns(); c != nil {
		out.Registers, err = sectionItems(c, func(reg seq.Register, _, _ uint64) seq.Register { return reg })
		return out, err
	}
	out.Registers = convert(r.GetRegisters(), func(reg []byte) seq.Register { return seq.Register(reg) })
	return out, nil
}

// PrepareToProto encodes a PrepareRequest.
func PrepareToProto(r quorum.PrepareRequest) *pb.PrepareRequest {
	out := &pb.PrepareRequest{Ref: RefToProto(r.Ref), Session: uint64(r.Session), Preempt: r.Preempt}
	out.Secret, out.Node, out.Seed = SecretToProto(r.Secret)
	// Sections are never made on demand, so that Create is nothing to them.
	if c := sections(len(r.Items), func(i int) seq.Register { return r.Items[i].Register }); c != nil {
		c.Rounds = column(len(r.Items), func(i int) uint64 { return r.Items[i].Round })
		out.Columns = c
		return out
	}
	out.Items = convert(r.Items, func(it quorum.PrepareItem) *pb.PrepareItem {
		return &pb.PrepareItem{Register: []byte(it.Register), Round: it.Round, Create: it.Create}
	})
	return out
}

// PrepareFromProto decodes a PrepareRequest; seq.ErrBadBatch for one that is not sound.
func PrepareFromProto(r *pb.PrepareRequest) (out quorum.PrepareRequest, err error) {
	out = quorum.PrepareRequest{Ref: RefFromProto(r.GetRef()), Session: seq.Session(r.GetSession()), Secret: SecretOf(r), Preempt: r.GetPreempt()}
	if c := r.GetColumns(); c != nil {
		out.Items, err = sectionItems(c, func(reg seq.Register, round, _ uint64) quorum.PrepareItem {
			return quorum.PrepareItem{Register: reg, Round: round}
		})
		return out, err
	}
	out.Items = convert(r.GetItems(), func(it *pb.PrepareItem) quorum.PrepareItem {
		return quorum.PrepareItem{Register: seq.Register(it.GetRegister()), Round: it.GetRound(), Create: it.GetCreate()}
	})
	return out, nil
}

// StepToProto encodes a StepRequest. Payloads are shared, not copied.
func StepToProto(r quorum.StepRequest) *pb.StepRequest {
	out := &pb.StepRequest{Ref: RefToProto(r.Ref), Session: uint64(r.Session)}
	out.Secret, out.Node, out.Seed = SecretToProto(r.Secret)
	if c := stepColumns(r.Items); c != nil {
		out.Columns = c
		return out
	}
	out.Items = convert(r.Items, func(it quorum.StepItem) *pb.StepItem {
		return &pb.StepItem{Register: []byte(it.Register), Round: it.Round, Max: it.Max, Payload: it.Payload, Log: it.Log}
	})
	return out
}

func stepColumns(items []quorum.StepItem) *pb.SectionColumns {
	for i := range items {
		if len(items[i].Payload) > 0 || len(items[i].Log) > 0 {
			return nil
		}
	}
	c := sections(len(items), func(i int) seq.Register { return items[i].Register })
	if c != nil {
		c.Rounds = column(len(items), func(i int) uint64 { return items[i].Round })
		c.Maxes = column(len(items), func(i int) uint64 { return items[i].Max })
	}
	return c
}

// StepFromProto decodes a StepRequest; seq.ErrBadBatch for one that is not sound.
// Payloads are shared, not copied.
func StepFromProto(r *pb.StepRequest) (out quorum.StepRequest, err error) {
	out = quorum.StepRequest{Ref: RefFromProto(r.GetRef()), Session: seq.Session(r.GetSession()), Secret: SecretOf(r)}
	if c := r.GetColumns(); c != nil {
		out.Items, err = sectionItems(c, func(reg seq.Register, round, max uint64) quorum.StepItem {
			return quorum.StepItem{Register: reg, Round: round, Max: max}
		})
		return out, err
	}
	out.Items = convert(r.GetItems(), func(it *pb.StepItem) quorum.StepItem {
		return quorum.StepItem{Register: seq.Register(it.GetRegister()), Round: it.GetRound(), Max: it.GetMax(), Payload: it.GetPayload(), Log: it.GetLog()}
	})
	return out, nil
}

func leasesToProto(items []quorum.LeaseItem) []*pb.LeaseItem {
	return convert(items, func(it quorum.LeaseItem) *pb.LeaseItem {
		return &pb.LeaseItem{Register: []byte(it.Register), Round: it.Round, Seal: it.Seal}
	})
}

func leasesFromProto(items []*pb.LeaseItem) []quorum.LeaseItem {
	return convert(items, func(it *pb.LeaseItem) quorum.LeaseItem {
		return quorum.LeaseItem{Register: seq.Register(it.GetRegister()), Round: it.GetRound(), Seal: it.GetSeal()}
	})
}

// RenewToProto encodes a RenewRequest. A negative lease becomes 0.
func RenewToProto(r quorum.RenewRequest) *pb.RenewRequest {
	out := &pb.RenewRequest{
		Ref: RefToProto(r.Ref), Session: uint64(r.Session), Name: r.Name, Addr: r.Addr,
		LeaseUs:       micros(r.Lease),
		AttachColumns: leaseColumns(r.Attach), DropColumns: leaseColumns(r.Drop),
		Attached: r.Attached, Number: r.Number, Seen: claimsToProto(r.Seen), Nonce: r.Nonce, Fellows: claimsToProto(r.Fellows),
	}
	out.Secret, out.Node, out.Seed = SecretToProto(r.Secret)
	if out.AttachColumns == nil {
		out.Attach = leasesToProto(r.Attach)
	}
	if out.DropColumns == nil {
		out.Drop = leasesToProto(r.Drop)
	}
	return out
}

// RenewFromProto decodes a RenewRequest; seq.ErrBadBatch for one that is not sound.
func RenewFromProto(r *pb.RenewRequest) (out quorum.RenewRequest, err error) {
	out = quorum.RenewRequest{
		Ref: RefFromProto(r.GetRef()), Session: seq.Session(r.GetSession()), Secret: SecretOf(r), Name: r.GetName(), Addr: r.GetAddr(),
		Lease:    duration(r.GetLeaseUs()),
		Attached: r.GetAttached(), Number: r.GetNumber(), Seen: ClaimsFromProto(r.GetSeen()), Nonce: r.GetNonce(), Fellows: ClaimsFromProto(r.GetFellows()),
	}
	if out.Attach, err = leaseItems(r.GetAttachColumns(), r.GetAttach()); err != nil {
		return out, err
	}
	out.Drop, err = leaseItems(r.GetDropColumns(), r.GetDrop())
	return out, err
}

// ReleaseToProto encodes a ReleaseRequest.
func ReleaseToProto(r quorum.ReleaseRequest) *pb.ReleaseRequest {
	out := &pb.ReleaseRequest{Ref: RefToProto(r.Ref), Session: uint64(r.Session), Columns: leaseColumns(r.Items), All: r.All, To: uint64(r.To)}
	out.Secret, out.Node, out.Seed = SecretToProto(r.Secret)
	if out.Columns == nil {
		out.Items = leasesToProto(r.Items)
	}
	return out
}

// ReleaseFromProto decodes a ReleaseRequest; seq.ErrBadBatch for one that is not sound.
func ReleaseFromProto(r *pb.ReleaseRequest) (out quorum.ReleaseRequest, err error) {
	out = quorum.ReleaseRequest{Ref: RefFromProto(r.GetRef()), Session: seq.Session(r.GetSession()), Secret: SecretOf(r), All: r.GetAll(), To: seq.Session(r.GetTo())}
	out.Items, err = leaseItems(r.GetColumns(), r.GetItems())
	return out, err
}
