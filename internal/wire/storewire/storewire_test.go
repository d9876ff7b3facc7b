package storewire

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

var (
	ref     = quorum.Ref{Cluster: "c", Era: 2, Members: 3, MembersHash: 1<<63 + 4}
	members = []quorum.Member{{UUID: "u1", Name: "a", Zone: "z"}, {UUID: "u2", Name: "b"}}
	leases  = []quorum.LeaseItem{{Register: seq.SectionRegister(0xfffefdfc), Round: 5}, {Register: "tx", Round: 6}}
)

// travel encodes, sends and decodes.
func travel[Q any, P proto.Message](t *testing.T, want Q, to func(Q) P, from func(P) (Q, error)) {
	t.Helper()
	bytes, err := proto.Marshal(to(want))
	if err != nil {
		t.Fatal(err)
	}
	message := to(want).ProtoReflect().New().Interface().(P)
	if err := proto.Unmarshal(bytes, message); err != nil {
		t.Fatal(err)
	}
	got, err := from(message)
	if err != nil {
		t.Fatalf("%T: %v", want, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%T: %s", want, diff)
	}
}

func TestEveryMessageArrivesAsItWasSent(t *testing.T) {
	travel(t, ref, RefToProto, func(p *pb.Ref) (quorum.Ref, error) { return RefFromProto(p), nil })
	travel(t, quorum.ReadRequest{Ref: ref, Session: 1 << 63, Prefix: "s", Registers: []seq.Register{"s\xff\x00\x01\x80", "droutes"}}, ReadToProto, ReadFromProto)
	travel(t, quorum.PrepareRequest{Ref: ref, Session: 7, Secret: seq.Secret{Seed: [16]byte{1}, Node: "alloc-1"}, Items: []quorum.PrepareItem{{Register: "tx", Round: 1 << 63, Create: true}, {Register: "ty"}}}, PrepareToProto, PrepareFromProto)
	travel(t, quorum.StepRequest{Ref: ref, Session: 7, Secret: seq.Secret{Seed: [16]byte{2}}, Items: []quorum.StepItem{{Register: "droutes", Round: 8, Max: 1 << 63, Payload: []byte{1, 0, 255}}}}, StepToProto, StepFromProto)
	claims := []quorum.Claim{{Store: "u", Boot: 1, Commits: 2, Seal: [16]byte{3}, Start: 7, StartSeal: [16]byte{8}}, {Store: "u", By: "v"}}
	travel(t, quorum.RenewRequest{Ref: ref, Session: 7, Name: "n", Addr: "a:1", Lease: 1500 * time.Millisecond, Attach: leases, Drop: leases[:1], Attached: 9, Secret: seq.Secret{Seed: [16]byte{4}, Node: "n"},
		Seen: claims, Nonce: 11, Fellows: claims[:1]}, RenewToProto, RenewFromProto)
	travel(t, quorum.ReleaseRequest{Ref: ref, Session: 7, Secret: seq.Secret{Seed: [16]byte{3}}, Items: leases, All: true, To: 8}, ReleaseToProto, ReleaseFromProto)
	travel(t, quorum.Reply{UUID: "u", Claim: claims[0], Results: []quorum.Result{
		{Register: "tx", Verdict: quorum.VerdictFull, Promised: seq.Epoch{Round: 1, Session: 2}, Accepted: seq.Epoch{Round: 3, Session: 4},
			Max: 5, Floor: 4, Payload: []byte("p"), Holder: 6, Remaining: 7 * time.Microsecond, Message: "m"},
		{Verdict: quorum.VerdictOK},
	}}, ReplyToProto, ReplyFromProto)
	travel(t, quorum.RenewReply{UUID: "u", BootCount: 1, Reset: true, Lost: leases, Refused: leases[1:], RouteVersion: 2, Commits: 3, Seal: [16]byte{5}, Start: 9, StartSeal: [16]byte{6}, Remembered: claims, Nonce: 6, Time: 7,
		Sessions: []quorum.SessionInfo{{Session: 1, Name: "n", Addr: "a", Remaining: time.Second, Attached: 4}}}, RenewReplyToProto, func(p *pb.RenewReply) (quorum.RenewReply, error) { return RenewReplyFromProto(p), nil })
	life := seq.NewIncarnation(seq.ClusterID{1}, "c", 2, []string{"u1", "u2"})
	mapping, err := seq.NewMapping(seq.Space{Name: "user", Sections: 3}, seq.Space{Name: "room", Sections: 2, Mode: seq.Strict})
	if err != nil {
		t.Fatal(err)
	}
	travel(t, quorum.Identity{UUID: "u", Name: "a", BootCount: 1, Start: 10, Ref: ref, N: 3, R: 2, W: 2, Mapping: mapping, Members: members,
		Pending: true, Voting: true, State: "voting", MaxLease: time.Second, Grace: time.Millisecond, Commits: 4, Nonce: 5, Zone: "z", Remembered: claims, Incarnation: life}, DescribeToProto, DescribeFromProto)
	travel(t, quorum.MemberList{Version: 2, R: 2, W: 2, Members: members, Incarnation: life}, ListToProto, func(p *pb.MemberList) (quorum.MemberList, error) { return ListFromProto(p), nil })
}

func TestBatchesOfSectionsArriveAsTheyWereSent(t *testing.T) {
	for name, value := range map[string]func(i uint64) uint64{
		"all zero":      func(uint64) uint64 { return 0 },
		"all the same":  func(uint64) uint64 { return 1<<63 + 7 },
		"all different": func(i uint64) uint64 { return i * i << 40 },
		"the last one":  func(i uint64) uint64 { return i / 99 },
	} {
		t.Run(name, func(t *testing.T) {
			prepare, step := quorum.PrepareRequest{Ref: ref, Session: 7}, quorum.StepRequest{Ref: ref, Session: 7}
			read, release := quorum.ReadRequest{Ref: ref, Session: 7}, quorum.ReleaseRequest{Ref: ref, Session: 7, To: 8}
			reply := quorum.Reply{UUID: "u"}
			for i := range uint64(100) {
				reg, v := seq.SectionRegister(seq.SectionID(i*31)), value(i)
				read.Registers = append(read.Registers, reg)
				prepare.Items = append(prepare.Items, quorum.PrepareItem{Register: reg, Round: v})
				step.Items = append(step.Items, quorum.StepItem{Register: reg, Round: v, Max: v})
				release.Items = append(release.Items, quorum.LeaseItem{Register: reg, Round: v})
				reply.Results = append(reply.Results, quorum.Result{Verdict: quorum.Verdict(v % 8),
					Promised: seq.Epoch{Round: v, Session: seq.Session(v)}, Accepted: seq.Epoch{Round: v, Session: seq.Session(v)},
					Max: v, Floor: v / 2, Holder: seq.Session(v), Remaining: time.Duration(v%1000) * time.Microsecond})
			}
			renew := quorum.RenewRequest{Ref: ref, Session: 7, Lease: time.Second, Attach: release.Items, Drop: release.Items[:50]}
			travel(t, read, ReadToProto, ReadFromProto)
			travel(t, prepare, PrepareToProto, PrepareFromProto)
			travel(t, step, StepToProto, StepFromProto)
			travel(t, release, ReleaseToProto, ReleaseFromProto)
			travel(t, renew, RenewToProto, RenewFromProto)
			travel(t, reply, ReplyToProto, ReplyFromProto)
			if StepToProto(step).Columns == nil || ReplyToProto(reply).Columns == nil || RenewToProto(renew).AttachColumns == nil {
				t.Error("they went item by item")
			}
		})
	}
}

func TestColumnsThatDoNotFitAreRefused(t *testing.T) {
	bad := &pb.SectionColumns{Sections: []uint32{1, 2, 3}, Rounds: []uint64{1, 2}}
	for name, decode := range map[string]func() error{
		"prepare": func() error { _, err := PrepareFromProto(&pb.PrepareRequest{Columns: bad}); return err },
		"step": func() error {
			_, err := StepFromProto(&pb.StepRequest{Columns: &pb.SectionColumns{Sections: []uint32{1, 2, 3}, Maxes: []uint64{1, 2, 3, 4}}})
			return err
		},
		"read":    func() error { _, err := ReadFromProto(&pb.ReadRequest{Columns: bad}); return err },
		"attach":  func() error { _, err := RenewFromProto(&pb.RenewRequest{AttachColumns: bad}); return err },
		"drop":    func() error { _, err := RenewFromProto(&pb.RenewRequest{DropColumns: bad}); return err },
		"release": func() error { _, err := ReleaseFromProto(&pb.ReleaseRequest{Columns: bad}); return err },
		"reply": func() error {
			_, err := ReplyFromProto(&pb.ResultsReply{Columns: &pb.ResultColumns{Verdicts: []byte{1, 1, 1}, Holders: []uint64{1, 2}}})
			return err
		},
	} {
		if err := decode(); !errors.Is(err, seq.ErrBadBatch) {
			t.Errorf("%s: got %v, want ErrBadBatch", name, err)
		}
	}
}

func TestTheVerdictsHaveTheNumbersOfTheWire(t *testing.T) {
	for wire, want := range map[pb.Verdict]quorum.Verdict{
		pb.Verdict_VERDICT_UNSPECIFIED: quorum.VerdictNone,
		pb.Verdict_VERDICT_OK:          quorum.VerdictOK,
		pb.Verdict_VERDICT_NACK:        quorum.VerdictNack,
		pb.Verdict_VERDICT_HELD:        quorum.VerdictHeld,
		pb.Verdict_VERDICT_GRACE:       quorum.VerdictGrace,
		pb.Verdict_VERDICT_UNKNOWN:     quorum.VerdictUnknown,
		pb.Verdict_VERDICT_REFUSED:     quorum.VerdictRefused,
		pb.Verdict_VERDICT_FULL:        quorum.VerdictFull,
		100:                            quorum.VerdictNone, // of a later build
		257:                            quorum.VerdictNone, // not 1 by truncation
		-1:                             quorum.VerdictNone,
	} {
		if got := verdict(wire); got != want {
			t.Errorf("%v: got %v, want %v", wire, got, want)
		}
	}
}

func TestDurationsAreRoundedToTheSafeSide(t *testing.T) {
	if got := micros(time.Microsecond + 1); got != 2 {
		t.Errorf("a wait of 1.001 µs travels as %d µs, want 2", got)
	}
	if got := micros(-time.Second); got != 0 {
		t.Errorf("a negative wait travels as %d, want 0", got)
	}
	if got := RenewToProto(quorum.RenewRequest{Lease: 2*time.Microsecond - 1}).GetLeaseUs(); got != 2 {
		t.Errorf("a lease of 1.999 µs travels as %d µs, want 2", got)
	}
	if got := duration(1<<64 - 1); got <= 0 {
		t.Errorf("the largest duration arrives as %v", got)
	}
}

func TestTheMembersHashIsThatOfTheUUIDsAlone(t *testing.T) {
	want := quorum.MembersHash(members)
	swapped := []quorum.Member{{UUID: "u2", Name: "x"}, {UUID: "u1", Name: "y"}}
	if got := quorum.MembersHash(swapped); got != want {
		t.Errorf("another order and other names: got %x, want %x", got, want)
	}
	for name, other := range map[string][]quorum.Member{
		"another uuid":    {{UUID: "u1"}, {UUID: "u3"}},
		"one less":        {{UUID: "u1"}},
		"one run of text": {{UUID: "u1u2"}},
		"none":            nil,
	} {
		if got := quorum.MembersHash(other); got == want {
			t.Errorf("%s: the same hash", name)
		}
	}
}

func TestABatchEndsWithItsStatesOrTheirDocuments(t *testing.T) {
	big := quorum.RegisterState{Payload: make([]byte, 3<<20)}
	for name, row := range map[string]struct {
		states []quorum.RegisterState
		want   int
	}{
		"none":             {nil, 0},
		"few":              {make([]quorum.RegisterState, 3), 3},
		"many":             {make([]quorum.RegisterState, 5000), 4096},
		"two documents":    {[]quorum.RegisterState{big, big}, 1},
		"a huge document":  {[]quorum.RegisterState{{Payload: make([]byte, 5<<20)}, {}}, 1},
		"one and the rest": {[]quorum.RegisterState{big, {}, {}}, 3},
	} {
		if got := Batch(row.states); got != row.want {
			t.Errorf("%s: got %d, want %d", name, got, row.want)
		}
	}
}
