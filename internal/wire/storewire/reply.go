package storewire

import (
	"fmt"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// ReplyToProto encodes a Reply. Payloads are shared, not copied.
func ReplyToProto(r quorum.Reply) *pb.ResultsReply {
	out := &pb.ResultsReply{StoreUuid: r.UUID, Columns: resultColumns(r.Results),
		BootCount: r.Claim.Boot, Commits: r.Claim.Commits, Seal: sealToProto(r.Claim.Seal),
		Start: r.Claim.Start, StartSeal: sealToProto(r.Claim.StartSeal)}
	if out.Columns != nil {
		return out
	}
	out.Results = convert(r.Results, func(res quorum.Result) *pb.Result {
		return &pb.Result{
			Register:        []byte(res.Register),
			Verdict:         pb.Verdict(res.Verdict), // the two enumerations are the same
			PromisedRound:   res.Promised.Round,
			PromisedSession: uint64(res.Promised.Session),
			AcceptedRound:   res.Accepted.Round,
			AcceptedSession: uint64(res.Accepted.Session),
			Max:             res.Max,
			Floor:           res.Floor,
			Payload:         res.Payload,
			Holder:          uint64(res.Holder),
			RemainingUs:     micros(res.Remaining),
			Message:         res.Message,
			Seal:            res.Seal,
			Index:           res.Index,
			TimeMs:          res.Time,
		}
	})
	return out
}

// ReplyFromProto decodes a Reply. Payloads are shared, not copied. A verdict that this
// build does not know becomes VerdictNone, which is no consent. seq.ErrBadBatch for a
// reply that is not sound.
func ReplyFromProto(r *pb.ResultsReply) (out quorum.Reply, err error) {
	out.UUID = r.GetStoreUuid()
	out.Claim = quorum.Claim{Boot: r.GetBootCount(), Commits: r.GetCommits(), Seal: sealFromProto(r.GetSeal()),
		Start: r.GetStart(), StartSeal: sealFromProto(r.GetStartSeal())}
	if out.Claim.Commits > 0 {
		out.Claim.Store = out.UUID
	}
	if c := r.GetColumns(); c != nil {
		out.Results, err = resultsFromColumns(c)
		return out, err
	}
	out.Results = convert(r.GetResults(), func(res *pb.Result) quorum.Result {
		return quorum.Result{
			Register:  seq.Register(res.GetRegister()),
			Verdict:   verdict(res.GetVerdict()),
			Promised:  seq.Epoch{Round: res.GetPromisedRound(), Session: seq.Session(res.GetPromisedSession())},
			Accepted:  seq.Epoch{Round: res.GetAcceptedRound(), Session: seq.Session(res.GetAcceptedSession())},
			Max:       res.GetMax(),
			Floor:     res.GetFloor(),
			Payload:   res.GetPayload(),
			Holder:    seq.Session(res.GetHolder()),
			Remaining: duration(res.GetRemainingUs()),
			Message:   res.GetMessage(),
			Seal:      res.GetSeal(),
			Index:     res.GetIndex(),
			Time:      res.GetTimeMs(),
		}
	})
	return out, nil
}

func verdict(v pb.Verdict) quorum.Verdict {
	if v < 0 || v > pb.Verdict(quorum.VerdictElsewhere) {
		return quorum.VerdictNone
	}
	return quorum.Verdict(v)
}

// RenewReplyToProto encodes a RenewReply.
func RenewReplyToProto(r quorum.RenewReply) *pb.RenewReply {
	return &pb.RenewReply{
		StoreUuid: r.UUID, BootCount: r.BootCount, Reset_: r.Reset,
		Lost: leasesToProto(r.Lost), Refused: leasesToProto(r.Refused),
		Sessions: convert(r.Sessions, func(s quorum.SessionInfo) *pb.SessionInfo {
			return &pb.SessionInfo{Session: uint64(s.Session), Name: s.Name, Addr: s.Addr, RemainingUs: micros(s.Remaining), Attached: s.Attached, Protocol: uint32(s.Protocol)}
		}),
		RouteVersion: r.RouteVersion, Commits: r.Commits, Seal: sealToProto(r.Seal), Start: r.Start, StartSeal: sealToProto(r.StartSeal), Nonce: r.Nonce, Remembered: claimsToProto(r.Remembered),
		TimeMs: r.Time, ExactFull: r.Full, ExactLeft: r.Left, ExactLimit: r.Limit,
	}
}

// RenewReplyFromProto decodes a RenewReply.
func RenewReplyFromProto(r *pb.RenewReply) quorum.RenewReply {
	return quorum.RenewReply{
		UUID: r.GetStoreUuid(), BootCount: r.GetBootCount(), Reset: r.GetReset_(),
		Lost: leasesFromProto(r.GetLost()), Refused: leasesFromProto(r.GetRefused()),
		RouteVersion: r.GetRouteVersion(), Commits: r.GetCommits(), Seal: sealFromProto(r.GetSeal()), Start: r.GetStart(), StartSeal: sealFromProto(r.GetStartSeal()), Nonce: r.GetNonce(),
		Remembered: ClaimsFromProto(r.GetRemembered()), Time: r.GetTimeMs(), Full: r.GetExactFull(), Left: r.GetExactLeft(), Limit: r.GetExactLimit(),
		Sessions: convert(r.GetSessions(), func(s *pb.SessionInfo) quorum.SessionInfo {
			return quorum.SessionInfo{Session: seq.Session(s.GetSession()), Name: s.GetName(), Addr: s.GetAddr(),
				Remaining: duration(s.GetRemainingUs()), Attached: s.GetAttached(), Protocol: int(s.GetProtocol())}
		}),
	}
}

// DescribeToProto encodes an Identity; the store adds what only operators read.
func DescribeToProto(id quorum.Identity) *pb.DescribeReply {
	return &pb.DescribeReply{
		StoreUuid: id.UUID, Name: id.Name, BootCount: id.BootCount, Start: id.Start, Ref: RefToProto(id.Ref),
		N: uint32(id.N), R: uint32(id.R), W: uint32(id.W),
		Mapping: rpc.MappingToProto(id.Mapping), Members: MembersToProto(id.Members),
		Pending: id.Pending, Voting: id.Voting, State: id.State,
		MaxLeaseUs: uint64(id.MaxLease.Microseconds()), GraceRemainingUs: micros(id.Grace), Commits: id.Commits,
		LeaseBoundUs: micros(id.LeaseBound), ListAgeUs: uint64(id.ListAge.Microseconds()), FilledVersion: id.Filled, Addr: id.Addr,
		Nonce: id.Nonce, Remembered: claimsToProto(id.Remembered),
		TagFloor: id.Floors.Tag, WorkerFloorMs: id.Floors.Worker, SectionFloor: id.Floors.Section, Zone: id.Zone,
		Protocol: uint32(id.Protocol), RequiredProtocol: uint32(id.Required),
		Incarnation: rpc.IncarnationToProto(id.Incarnation),
	}
}

// DescribeFromProto decodes an Identity; seq.ErrBadMapping if its mapping is not sound.
func DescribeFromProto(r *pb.DescribeReply) (quorum.Identity, error) {
	mapping, err := rpc.MappingFromProto(r.GetMapping())
	if err != nil {
		return quorum.Identity{}, fmt.Errorf("identity of store %s: %w", r.GetStoreUuid(), err)
	}
	return quorum.Identity{
		UUID: r.GetStoreUuid(), Name: r.GetName(), BootCount: r.GetBootCount(), Start: r.GetStart(), Ref: RefFromProto(r.GetRef()),
		N: int(r.GetN()), R: int(r.GetR()), W: int(r.GetW()),
		Mapping: mapping, Members: MembersFromProto(r.GetMembers()),
		Pending: r.GetPending(), Voting: r.GetVoting(), State: r.GetState(),
		MaxLease: duration(r.GetMaxLeaseUs()), Grace: duration(r.GetGraceRemainingUs()), Commits: r.GetCommits(),
		LeaseBound: duration(r.GetLeaseBoundUs()), ListAge: duration(r.GetListAgeUs()), Filled: r.GetFilledVersion(), Addr: r.GetAddr(),
		Nonce: r.GetNonce(), Remembered: ClaimsFromProto(r.GetRemembered()),
		Floors: quorum.Floors{Tag: r.GetTagFloor(), Worker: r.GetWorkerFloorMs(), Section: r.GetSectionFloor()}, Zone: r.GetZone(),
		Protocol: int(r.GetProtocol()), Required: int(r.GetRequiredProtocol()),
		Incarnation: rpc.IncarnationFromProto(r.GetIncarnation()),
	}, nil
}
