package storewire

import (
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// ListToProto encodes a member list.
func ListToProto(l quorum.MemberList) *pb.MemberList {
	return &pb.MemberList{Version: l.Version, R: uint32(l.R), W: uint32(l.W), Members: MembersToProto(l.Members), Incarnation: rpc.IncarnationToProto(l.Incarnation)}
}

// ListFromProto decodes a member list; nil is the zero list, which is valid nowhere.
func ListFromProto(l *pb.MemberList) quorum.MemberList {
	return quorum.MemberList{Version: l.GetVersion(), R: int(l.GetR()), W: int(l.GetW()), Members: MembersFromProto(l.GetMembers()),
		Incarnation: rpc.IncarnationFromProto(l.GetIncarnation())}
}

// A message with states of registers brings at most batchStates, and beside the first one no
// more than batchBytes of documents.
const (
	batchStates = 4096
	batchBytes  = 4 << 20
)

// Batch returns how many of the states go into one message. It returns zero if there are none.
func Batch(states []quorum.RegisterState) int {
	n, size := 0, 0
	for n < min(len(states), batchStates) && (n == 0 || size+len(states[n].Payload) <= batchBytes) {
		size += len(states[n].Payload)
		n++
	}
	return n
}

// RecordsToProto encodes states of registers. Payloads are shared, not copied.
func RecordsToProto(states []quorum.RegisterState) []*pb.Record {
	return convert(states, func(s quorum.RegisterState) *pb.Record {
		return &pb.Record{
			Register:      []byte(s.Register),
			PromisedRound: s.Promised.Round, PromisedSession: uint64(s.Promised.Session),
			AcceptedRound: s.Accepted.Round, AcceptedSession: uint64(s.Accepted.Session),
			Max: s.Max, Payload: s.Payload, PayloadMax: s.PayloadMax,
		}
	})
}

// RecordsFromProto decodes states of registers. Payloads are shared, not copied.
func RecordsFromProto(records []*pb.Record) []quorum.RegisterState {
	return convert(records, func(r *pb.Record) quorum.RegisterState {
		st := quorum.RegisterState{
			Register: seq.Register(r.GetRegister()),
			Promised: seq.Epoch{Round: r.GetPromisedRound(), Session: seq.Session(r.GetPromisedSession())},
			Accepted: seq.Epoch{Round: r.GetAcceptedRound(), Session: seq.Session(r.GetAcceptedSession())},
			Max:      r.GetMax(), PayloadMax: r.GetPayloadMax(),
		}
		if p := r.GetPayload(); len(p) > 0 {
			st.Payload = p
		}
		return st
	})
}
