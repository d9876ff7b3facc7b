package storewire

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// settles decodes bytes as one message, and checks that what was understood travels on
// unchanged: a store and a caller of it never differ about what was said.
func settles[Q any, M any, P interface {
	*M
	proto.Message
}](t *testing.T, data []byte, to func(Q) P, from func(P) (Q, error)) {
	t.Helper()
	message := P(new(M))
	if proto.Unmarshal(data, message) != nil {
		return
	}
	first, err := from(message)
	if err != nil {
		if !errors.Is(err, seq.ErrBadBatch) && !errors.Is(err, seq.ErrBadMapping) {
			t.Fatalf("%T: error of no name: %v", message, err)
		}
		return
	}
	second, err := from(to(first))
	if err != nil {
		t.Fatalf("%T: what was understood is refused: %v", message, err)
	}
	third, err := from(to(second))
	if diff := cmp.Diff(second, third, cmpopts.EquateEmpty()); diff != "" || err != nil {
		t.Fatalf("%T changes on its way (%v): %s", message, err, diff)
	}
}

// sure makes a decoder that cannot fail one that could.
func sure[Q, P any](from func(P) Q) func(P) (Q, error) {
	return func(p P) (Q, error) { return from(p), nil }
}

func FuzzStoreMessages(f *testing.F) {
	items := []quorum.StepItem{{Register: seq.SectionRegister(1), Round: 5, Max: 10}, {Register: seq.SectionRegister(2), Round: 5, Max: 1 << 53}}
	for _, m := range []proto.Message{
		RefToProto(ref),
		ReadToProto(quorum.ReadRequest{Ref: ref, Session: 7, Registers: []seq.Register{"s\xff\x00\x01\x80", "droutes"}}),
		PrepareToProto(quorum.PrepareRequest{Ref: ref, Session: 7, Items: []quorum.PrepareItem{{Register: "tx", Round: 1 << 63, Create: true}}}),
		StepToProto(quorum.StepRequest{Ref: ref, Session: 7, Items: items}),
		RenewToProto(quorum.RenewRequest{Ref: ref, Session: 7, Name: "n", Addr: "a:1", Attach: leases, Attached: 2}),
		ReleaseToProto(quorum.ReleaseRequest{Ref: ref, Session: 7, Items: leases, To: 8}),
		ReplyToProto(quorum.Reply{UUID: "u", Results: []quorum.Result{{Verdict: quorum.VerdictHeld, Max: 5, Holder: 6, Remaining: 7000}, {Verdict: quorum.VerdictOK}}}),
		RenewReplyToProto(quorum.RenewReply{UUID: "u", BootCount: 1, Reset: true, Lost: leases, Commits: 3}),
	} {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		settles(t, data, RefToProto, sure(RefFromProto))
		settles(t, data, ReadToProto, ReadFromProto)
		settles(t, data, PrepareToProto, PrepareFromProto)
		settles(t, data, StepToProto, StepFromProto)
		settles(t, data, RenewToProto, RenewFromProto)
		settles(t, data, ReleaseToProto, ReleaseFromProto)
		settles(t, data, ReplyToProto, ReplyFromProto)
		settles(t, data, RenewReplyToProto, sure(RenewReplyFromProto))
		settles(t, data, DescribeToProto, func(p *pb.DescribeReply) (quorum.Identity, error) { return DescribeFromProto(p) })
	})
}
