package storesvr

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/internal/wire/storewire"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/storesvr/disk"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

// nowhere is a database that keeps nothing.
type nowhere struct {
	commits uint64
	orders  *exact.Copy // of section 4
}

func (n *nowhere) Copy(id seq.SectionID) *exact.Copy {
	if id == 4 {
		return n.orders
	}
	return nil
}

func (n *nowhere) Log([]exact.Entry) (batches, bytes uint64, err error) {
	n.commits++
	return n.commits, 1, nil
}

func (n *nowhere) Commit(disk.Update) (uint64, error) { n.commits++; return n.commits, nil }
func (n *nowhere) Free() (uint64, error)              { return 1 << 40, nil }
func (n *nowhere) Close() error                       { return nil }

// fuzzed is a store in memory that votes, in which alice has a section, with its handlers.
func fuzzed(t *testing.T) (*server, quorum.Ref) {
	t.Helper()
	id, err := NewIdentity(InitConfig{DataDir: "none", ClusterID: "c1", Name: "a", MemberNames: testMembers, Spaces: []seq.Space{{Name: "user", Sections: 4}, {Name: "order", Sections: 1, Mode: seq.Exact}}})
	if err != nil {
		t.Fatal(err)
	}
	registers := map[seq.Register]acceptor.State{}
	for _, r := range append(seq.FixedRegisters(), section, seq.SectionRegister(1), seq.SectionRegister(2), seq.SectionRegister(3), seq.SectionRegister(4)) {
		registers[r] = acceptor.State{}
	}
	members := disk.Members{Version: 1, List: []quorum.Member{{UUID: id.UUID, Name: "a"}, {UUID: "u-b", Name: "b"}, {UUID: "u-c", Name: "c"}}}
	now := clock.NewManual(time.Hour)
	r, err := newReplica(Config{MaxLease: time.Second, Clock: now, Logger: slog.New(slog.DiscardHandler), Wall: func() time.Time { return time.Unix(1e9, 0) }},
		&nowhere{commits: 5, orders: exact.NewCopy(600_000)}, disk.Meta{Identity: id, Members: members, BootCount: 1, Commits: 5, LeaseBound: time.Second, Longest: time.Second, Key: []byte("key")}, registers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.close() })
	now.Advance(time.Minute) // the grace, and the wait for its fellows
	ref, secret := r.describe().Ref, sessiontest.SecretOf(alice)
	if _, err := r.Prepare(t.Context(), quorum.PrepareRequest{Ref: ref, Session: alice, Secret: secret, Items: []quorum.PrepareItem{{Register: section, Round: 1}}}); err != nil {
		t.Fatal(err)
	}
	_, err = r.Renew(t.Context(), quorum.RenewRequest{Ref: ref, Session: alice, Secret: secret, Name: "alice", Lease: time.Second, Attached: 1,
		Attach: []quorum.LeaseItem{{Register: section, Round: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	return &server{replica: r, health: health.NewServer()}, ref
}

// picture is all that a request which is refused must leave as it was.
type picture struct {
	Registers []quorum.RegisterState
	Live, On  int
	Members   disk.Members
	Mapping   seq.Mapping
	State     string
	Required  int
}

func (s *server) picture() picture {
	c := s.replica.core
	c.mu.Lock()
	defer c.mu.Unlock()
	p := picture{Registers: c.acceptor.Dump("", 1<<20), Members: c.members.Members, Mapping: c.mapping, Required: c.gate.required}
	p.Live, p.On = c.acceptor.Sessions(c.clock.Now())
	_, p.State = c.state()
	return p
}

// handler decodes bytes as the request of one method and calls it.
type handler func(ctx context.Context, s *server, data []byte, mend func(proto.Message)) error

func handles[In proto.Message, Out any](fresh func() In, do func(*server, context.Context, In) (Out, error)) handler {
	return func(ctx context.Context, s *server, data []byte, mend func(proto.Message)) error {
		in := fresh()
		if err := proto.Unmarshal(data, in); err != nil {
			return seq.ErrBadArgument // gRPC refuses it
		}
		mend(in)
		_, err := do(s, ctx, in)
		return err
	}
}

// dumped takes what Dump streams.
type dumped struct {
	pb.Store_DumpServer
	ctx context.Context
}

func (d dumped) Context() context.Context  { return d.ctx }
func (dumped) Send(*pb.DumpReply) error    { return nil }
func (dumped) SetHeader(metadata.MD) error { return nil }

// spoken is a stream of one message. It ends once all calls of it were answered.
type spoken struct {
	pb.Store_StreamServer
	ctx      context.Context
	message  *pb.StoreCalls // nil once it was received
	answered chan struct{}  // closed after the last
	left     int
	errs     []error
}

func (s *spoken) Context() context.Context { return s.ctx }

func (s *spoken) Recv() (*pb.StoreCalls, error) {
	if m := s.message; m != nil {
		if s.message = nil; s.left == 0 {
			close(s.answered)
		}
		return m, nil
	}
	select {
	case <-s.answered:
		return nil, io.EOF
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
}

func (s *spoken) Send(m *pb.StoreAnswers) error {
	for _, a := range m.GetAnswers() {
		if a.GetError() != nil {
			s.errs = append(s.errs, rpc.FromKeyError(a.GetError()))
		}
		if s.left--; s.left == 0 {
			close(s.answered)
		}
	}
	return nil
}

// speak is Stream with one message. It returns the error of a call that is alone in it.
func speak(s *server, ctx context.Context, in *pb.StoreCalls) (any, error) {
	stream := &spoken{ctx: ctx, message: in, answered: make(chan struct{}), left: len(in.GetCalls())}
	if err := s.Stream(stream); err != nil || len(in.GetCalls()) != 1 {
		return nil, err
	}
	return nil, errors.Join(stream.errs...)
}

var storeHandlers = []struct {
	name string
	call handler
}{
	{"Describe", handles(func() *pb.DescribeRequest { return &pb.DescribeRequest{} }, (*server).Describe)},
	{"Bind", handles(func() *pb.BindRequest { return &pb.BindRequest{} }, (*server).Bind)},
	{"Vouch", handles(func() *pb.VouchRequest { return &pb.VouchRequest{} }, (*server).Vouch)},
	{"Read", handles(func() *pb.ReadRequest { return &pb.ReadRequest{} }, (*server).Read)},
	{"Prepare", handles(func() *pb.PrepareRequest { return &pb.PrepareRequest{} }, (*server).Prepare)},
	{"Step", handles(func() *pb.StepRequest { return &pb.StepRequest{} }, (*server).Step)},
	{"Stream", handles(func() *pb.StoreCalls { return &pb.StoreCalls{} }, speak)},
	{"Renew", handles(func() *pb.RenewRequest { return &pb.RenewRequest{} }, (*server).Renew)},
	{"Release", handles(func() *pb.ReleaseRequest { return &pb.ReleaseRequest{} }, (*server).Release)},
	{"Adopt", handles(func() *pb.AdoptRequest { return &pb.AdoptRequest{} }, (*server).Adopt)},
	{"Extend", handles(func() *pb.ExtendRequest { return &pb.ExtendRequest{} }, (*server).Extend)},
	{"Dump", handles(func() *pb.DumpRequest { return &pb.DumpRequest{} }, func(s *server, ctx context.Context, in *pb.DumpRequest) (any, error) {
		return nil, s.Dump(in, dumped{ctx: ctx})
	})},
	{"Fill", handles(func() *pb.FillRequest { return &pb.FillRequest{} }, (*server).Fill)},
	{"WindowsOver", handles(func() *pb.WindowsOverRequest { return &pb.WindowsOverRequest{} }, (*server).WindowsOver)},
	{"Require", handles(func() *pb.RequireRequest { return &pb.RequireRequest{} }, (*server).Require)},
}

func TestEveryMethodOfTheStoreIsFuzzed(t *testing.T) {
	var tried []string
	for _, h := range storeHandlers {
		tried = append(tried, h.name)
	}
	var served []string
	methods := pb.File_seqsvr_v1_store_proto.Services().ByName("Store").Methods()
	for i := range methods.Len() {
		served = append(served, string(methods.Get(i).Name()))
	}
	if diff := cmp.Diff(served, tried); diff != "" {
		t.Errorf("methods (-served +fuzzed):\n%s", diff)
	}
}

// FuzzStoreHandlers calls handlers with any bytes, as they are or with a valid cluster and session.
// The store survives every input. A refusal has a name and changes nothing, and no value ever
// decreases.
func FuzzStoreHandlers(f *testing.F) {
	bobs := sessiontest.SecretOf(bob)
	add := func(name string, m proto.Message) {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		for i, h := range storeHandlers {
			if h.name == name {
				f.Add(uint8(i), true, data)
				f.Add(uint8(i), false, data)
			}
		}
	}
	for _, h := range storeHandlers {
		add(h.name, &pb.DescribeRequest{}) // of no fields, as of each
	}
	members := storewire.MembersToProto([]quorum.Member{{UUID: "u-a", Name: "a", Addr: "a:1"}, {UUID: "u-b", Name: "b", Addr: "b:1"}, {UUID: "u-d", Name: "d", Addr: "d:1"}})
	lease := []quorum.LeaseItem{{Register: section, Round: 1}, {Register: seq.TagRegister("t"), Round: 9}}
	claims := []*pb.StoreClaim{{StoreUuid: "u-b", ByUuid: "u-c", BootCount: 1 << 60, Commits: 1 << 63, Seal: make([]byte, 16)}}
	add("Bind", &pb.BindRequest{ClusterId: "c1", Members: members})
	add("Vouch", &pb.VouchRequest{ClusterId: "c1", Nonce: 5, Claims: claims})
	add("Read", storewire.ReadToProto(quorum.ReadRequest{Session: bob, Registers: []seq.Register{section, "snone", seq.RoutesRegister}}))
	add("Read", storewire.ReadToProto(quorum.ReadRequest{Prefix: "s"}))
	add("Prepare", storewire.PrepareToProto(quorum.PrepareRequest{Session: bob, Secret: bobs, Items: []quorum.PrepareItem{{Register: section, Round: 1 << 63}, {Register: seq.TagRegister("t"), Round: 1, Create: true}}}))
	add("Prepare", storewire.PrepareToProto(quorum.PrepareRequest{Session: bob, Secret: bobs, Items: []quorum.PrepareItem{{Register: section, Round: 2}, {Register: seq.SectionRegister(1), Round: 2}}}))
	add("Step", storewire.StepToProto(quorum.StepRequest{Session: bob, Secret: bobs, Items: []quorum.StepItem{{Register: section, Round: 9, Max: 1 << 62}, {Register: seq.RoutesRegister, Round: 9, Max: 3, Payload: []byte("abc")}}}))
	add("Step", storewire.StepToProto(quorum.StepRequest{Session: bob, Secret: bobs, Items: []quorum.StepItem{{Register: section, Round: 9, Max: 100}}}))
	said := func(call *pb.StoreCall) *pb.StoreCalls {
		return &pb.StoreCalls{Session: uint64(bob), Secret: bobs.Seed[:], Calls: []*pb.StoreCall{call}}
	}
	bobsStep := storewire.StepToProto(quorum.StepRequest{Items: []quorum.StepItem{{Register: section, Round: 9, Max: 100}}})
	bobsStep.Secret = nil
	add("Stream", said(&pb.StoreCall{Id: 1, TimeoutUs: 1 << 40, Call: &pb.StoreCall_Step{Step: bobsStep}}))
	add("Stream", said(&pb.StoreCall{Id: 1, Call: &pb.StoreCall_Read{Read: storewire.ReadToProto(quorum.ReadRequest{Session: bob, Registers: []seq.Register{section, "snone"}})}}))
	whole := exact.NewCopy(1000)
	if _, err := whole.Append(&exact.Batch{Epoch: seq.Epoch{Round: 9, Session: bob}, Records: []exact.Record{
		{Epoch: seq.Epoch{Round: 9, Session: bob}, Index: 1, Kind: exact.Take, UID: 7, First: 1, Count: 3, ID: "id"}}}, 1000); err != nil {
		f.Fatal(err)
	}
	filled := exact.Change{Whole: whole.State()}
	orders := seq.SectionRegister(4)
	add("Step", storewire.StepToProto(quorum.StepRequest{Session: bob, Secret: bobs, Items: []quorum.StepItem{{Register: orders, Round: 9, Log: filled.AppendTo(nil)},
		{Register: orders, Round: 9, Log: (&exact.Change{Batch: exact.Batch{Epoch: filled.Epoch(), After: filled.Whole.At()}}).AppendTo(nil)}}}))
	add("Read", storewire.ReadToProto(quorum.ReadRequest{Session: bob, Registers: []seq.Register{orders, section, "snone"}, Copies: true}))
	add("Fill", &pb.FillRequest{Session: uint64(bob), Secret: bobs.Seed[:], Records: storewire.RecordsToProto([]quorum.RegisterState{
		{Register: orders, Promised: filled.Epoch(), Accepted: filled.Epoch(), PayloadMax: 1, Payload: filled.Whole.AppendTo(nil)}})})
	add("Renew", storewire.RenewToProto(quorum.RenewRequest{Session: bob, Secret: bobs, Name: "bob", Addr: "b:1", Lease: time.Second, Attach: lease, Drop: lease[:1], Attached: 1 << 63}))
	add("Release", storewire.ReleaseToProto(quorum.ReleaseRequest{Session: bob, Secret: bobs, Items: lease, To: 8, All: true}))
	add("Adopt", &pb.AdoptRequest{ClusterId: "c1", List: &pb.MemberList{Version: 2, R: 2, W: 2, Members: members}})
	add("Dump", &pb.DumpRequest{Ref: storewire.RefToProto(quorum.Ref{Cluster: "c1", Members: 1})})
	add("Fill", &pb.FillRequest{Session: uint64(bob), Secret: bobs.Seed[:], Complete: true, LeaseBoundUs: 1 << 63, Records: storewire.RecordsToProto([]quorum.RegisterState{
		{Register: section, Promised: seq.Epoch{Round: 7, Session: bob}, Accepted: seq.Epoch{Round: 6, Session: bob}, Max: 1 << 53}})})
	add("WindowsOver", &pb.WindowsOverRequest{ClusterId: "c1", Reason: "none left"})
	add("Require", &pb.RequireRequest{ClusterId: "c1", Protocol: 3})
	add("Require", &pb.RequireRequest{ClusterId: "c1", Protocol: 1 << 31, Decided: true})

	f.Fuzz(func(t *testing.T, method uint8, known bool, data []byte) {
		h := storeHandlers[int(method)%len(storeHandlers)]
		s, ref := fuzzed(t)
		mend := func(m proto.Message) {
			if !known {
				return
			}
			message := m.ProtoReflect()
			fields := message.Descriptor().Fields()
			set := func(name string, v any) {
				if field := fields.ByName(protoreflect.Name(name)); field != nil {
					message.Set(field, protoreflect.ValueOf(v))
				}
			}
			set("ref", storewire.RefToProto(ref).ProtoReflect())
			set("cluster_id", ref.Cluster)
			set("era", uint64(ref.Era))
			if calls, ok := m.(*pb.StoreCalls); ok {
				for _, call := range calls.GetCalls() {
					if step := call.GetStep(); step != nil {
						step.Ref = storewire.RefToProto(ref)
					} else if read := call.GetRead(); read != nil {
						read.Ref = storewire.RefToProto(ref)
					}
				}
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		before := s.picture()
		err := h.call(ctx, s, data, mend)
		after := s.picture()
		if errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%s hangs", h.name)
		}
		if failure := s.replica.core.failure(); failure != nil {
			t.Fatalf("%s ended the store: %v", h.name, failure)
		}
		if err != nil {
			if rpc.CodeOf(err) == pb.ErrorCode_ERROR_CODE_UNSPECIFIED {
				t.Fatalf("%s: error of no name: %v", h.name, err)
			}
			if h.name == "Fill" { // a part of its records may have been merged
				before.Registers, after.Registers = nil, nil
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Fatalf("%s was refused (%v) and changed (-before +after)\n%s", h.name, err, diff)
			}
		}
		has := map[seq.Register]quorum.RegisterState{}
		for _, st := range after.Registers {
			has[st.Register] = st
			if st.Promised.Less(st.Accepted) {
				t.Fatalf("%s: %s accepted %s above its promise %s", h.name, st.Register, st.Accepted, st.Promised)
			}
		}
		for _, was := range before.Registers {
			is, there := has[was.Register]
			if !there || is.Promised.Less(was.Promised) || is.Max < was.Max {
				t.Fatalf("%s: %s fell from %+v to %+v", h.name, was.Register, was, is)
			}
		}
	})
}
