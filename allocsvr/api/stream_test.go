package api

import (
	"errors"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// twoSections owns section 0; section 1 is being acquired. uids are one of each.
func twoSections(t *testing.T) (s *service, uids []uint64) {
	t.Helper()
	return twoSectionsOf(t, seq.Space{Name: "user", Sections: 2, Step: ownerStep})
}

func twoSectionsOf(t *testing.T, space seq.Space) (s *service, uids []uint64) {
	t.Helper()
	s = serving(t, space, nil)
	s.own(0, ownerStep)
	s.Sections.Section(1).Begin()
	uids = make([]uint64, 2)
	for id := range uids {
		for int(s.Sections.Mapping().Spaces[0].SectionOf(seq.UID(uids[id]))) != id {
			uids[id]++
		}
	}
	return s, uids
}

// opened opens a stream to the service over a connection of its own.
func opened(t *testing.T, s *Sequence) (pb.SequenceClient, pb.Sequence_StreamClient) {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := gate.NewServer(gate.ServerConfig{})
	pb.RegisterSequenceServer(srv, s)
	go func() { _ = srv.Serve(lis) }()
	t.Cleanup(srv.Stop)
	conn, err := rpc.Dial(lis.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	client := pb.NewSequenceClient(conn)
	stream, err := client.Stream(t.Context(), grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	return client, stream
}

func asked(id uint64, parts bool, uids ...uint64) *pb.StreamRequest {
	return &pb.StreamRequest{Id: id, Parts: parts, TimeoutMs: uint32(patient.Milliseconds()), Call: &pb.StreamRequest_Next{
		Next: &pb.BatchNextRequest{Batches: []*pb.Batch{{Uids: uids}}}}}
}

func send(t *testing.T, stream pb.Sequence_StreamClient, req *pb.StreamRequest) {
	t.Helper()
	if err := stream.Send(req); err != nil {
		t.Fatal(err)
	}
}

func recv(t *testing.T, stream pb.Sequence_StreamClient) *pb.StreamReply {
	t.Helper()
	reply, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

func TestAKeyThatWaitsDoesNotHoldUpTheOthersOfItsMessage(t *testing.T) {
	s, uids := twoSections(t)
	_, stream := opened(t, s.Sequence)
	send(t, stream, asked(1, true, uids[0], uids[1]))
	early := recv(t, stream)
	first := early.GetNext().GetResults()[0].GetFirst()
	if !early.More || early.Id != 1 || len(first) != 2 || first[0] != 1 || first[1] != 0 {
		t.Fatalf("got %v, want the number of the first key and more", early)
	}
	// Another call passes by.
	send(t, stream, asked(2, true, uids[0]))
	if other := recv(t, stream); other.Id != 2 || other.More || other.GetNext().GetResults()[0].GetFirst()[0] != 2 {
		t.Fatalf("got %v, want number 2 for call 2", other)
	}
	s.own(1, ownerStep)
	late := recv(t, stream)
	first = late.GetNext().GetResults()[0].GetFirst()
	if late.More || late.Id != 1 || len(first) != 2 || first[0] != 1 || first[1] != 1 {
		t.Errorf("got %v, want both numbers and the end", late)
	}
}

func TestACallerThatDoesNotTakePartsGetsOneReply(t *testing.T) {
	s, uids := twoSections(t)
	_, stream := opened(t, s.Sequence)
	send(t, stream, asked(1, false, uids[0], uids[1]))
	send(t, stream, asked(2, true, uids[0]))
	if reply := recv(t, stream); reply.Id != 2 {
		t.Fatalf("got %v, want call 1 to wait", reply)
	}
	s.own(1, ownerStep)
	reply := recv(t, stream)
	if first := reply.GetNext().GetResults()[0].GetFirst(); reply.More || reply.Id != 1 || first[0] != 1 || first[1] != 1 {
		t.Errorf("got %v, want both numbers in one reply", reply)
	}
}

func TestCallsThatCannotBeServedAreRefusedAboveTheLimit(t *testing.T) {
	s, uids := twoSections(t)
	const fit = 10
	s.Limits.inWork = gate.NewAdmission((fit*(1+gate.CallCost) + 1) * 8 / 7)
	client, stream := opened(t, s.Sequence)
	for id := range uint64(10 * fit) {
		send(t, stream, asked(id, true, uids[1]))
	}
	// All beyond the limit come back at once, while the section is still away.
	for range 9 * fit {
		reply := recv(t, stream)
		errs := reply.GetNext().GetResults()[0].GetErrors()
		if len(errs) != 1 || !errors.Is(rpc.FromKeyError(errs[0]), seq.ErrOverloaded) {
			t.Fatalf("got %v, want %v", reply, seq.ErrOverloaded)
		}
	}
	one := &pb.NextRequest{Id: &pb.NextRequest_Uid{Uid: uids[0]}, Count: 1}
	if _, err := client.Next(t.Context(), one); !errors.Is(err, seq.ErrOverloaded) {
		t.Errorf("a unary call: got %v, want %v", err, seq.ErrOverloaded)
	}
	batch := &pb.BatchNextRequest{Batches: []*pb.Batch{{Uids: uids[:1]}}}
	if _, err := client.BatchNext(t.Context(), batch); !errors.Is(err, seq.ErrOverloaded) {
		t.Errorf("a unary batch: got %v, want %v", err, seq.ErrOverloaded)
	}
	// A call that need not wait is still served.
	send(t, stream, asked(1000, true, uids[0]))
	if reply := recv(t, stream); reply.Id != 1000 || reply.GetNext().GetResults()[0].GetFirst()[0] == 0 {
		t.Errorf("got %v, want a number", reply)
	}
	s.own(1, ownerStep)
	got := map[uint64]bool{}
	for range fit {
		reply := recv(t, stream)
		n := reply.GetNext().GetResults()[0].GetFirst()[0]
		if n == 0 || got[n] {
			t.Errorf("got %v, want a new number", reply)
		}
		got[n] = true
	}
	harness.Until(t, "nothing in work", func() bool { return s.Limits.inWork.InWork() == 0 })
	if _, err := client.Next(t.Context(), one); err != nil {
		t.Errorf("after the load: %v", err)
	}
}

// A message with tickets of a section that is on its way does nothing for its batch, and no more for others.
func TestTicketsOfAStreamDoNotWaitForASection(t *testing.T) {
	s, uids := twoSectionsOf(t, seq.Space{Name: "user", Sections: 2, Step: ownerStep, Tickets: time.Minute})
	_, stream := opened(t, s.Sequence)
	ask := func(call *pb.TicketsRequest) *pb.StreamReply {
		send(t, stream, &pb.StreamRequest{Id: 7, TimeoutMs: uint32(patient.Milliseconds()), Call: &pb.StreamRequest_Tickets{Tickets: call}})
		return recv(t, stream)
	}
	keys := func(uids ...uint64) *pb.Batch { return &pb.Batch{Uids: uids} }
	got := ask(&pb.TicketsRequest{Opens: []*pb.OpenBatch{{Keys: keys(uids[0], uids[0])}, {Keys: keys(uids...)}, {Keys: keys(uids[0]), LifeMs: 1 << 40}, {Keys: &pb.Batch{Space: "none", Uids: uids[:1]}}}}).GetTickets()
	if len(got.GetOpens()) != 4 || got.Opens[0].Apart || !got.Opens[1].Apart || got.Opens[0].LifeMs != 60_000 {
		t.Fatalf("got %v", got)
	}
	first := got.Opens[0]
	if n := first.Numbers.First; len(n) != 2 || n[0] != 1 || n[1] != 2 || len(first.Numbers.Errors) != 0 {
		t.Fatalf("got %v", first)
	}
	for i, want := range map[int]error{2: seq.ErrBadArgument, 3: seq.ErrUnknownSpace} {
		if errs := got.Opens[i].GetNumbers().GetErrors(); len(errs) != 1 || !errors.Is(rpc.FromKeyError(errs[0]), want) {
			t.Errorf("batch %d: got %v, want %v", i, got.Opens[i], want)
		}
	}
	got = ask(&pb.TicketsRequest{Dones: []*pb.DoneBatch{
		{Keys: keys(uids[0], uids[0], uids[0]), First: []uint64{2, 9, 1}, Tickets: []uint64{first.Tickets[1], 1, first.Tickets[0]}, Cancelled: []bool{true, false, false}},
		{Keys: keys(uids...), First: []uint64{1, 1}, Tickets: []uint64{1, 1}},
	}}).GetTickets()
	if len(got.GetDones()) != 2 || got.Dones[0].Apart || !got.Dones[1].Apart || len(got.Dones[0].Errors) != 1 || got.Dones[0].Errors[0].Index != 1 {
		t.Errorf("got %v", got)
	}
	for what, call := range map[string]*pb.TicketsRequest{
		"nothing":                {},
		"a ticket without a key": {Dones: []*pb.DoneBatch{{Keys: keys(uids[0]), First: []uint64{1, 1}, Tickets: []uint64{1, 1}}}},
		"no ticket":              {Dones: []*pb.DoneBatch{{Keys: keys(uids[0]), First: []uint64{1}, Tickets: []uint64{0}}}},
		"a batch of no keys":     {Opens: []*pb.OpenBatch{{Keys: keys(uids[0])}, {}}},
	} {
		if got := ask(call); got.GetError() == nil {
			t.Errorf("%s: got %v, want an error", what, got)
		}
	}
}
