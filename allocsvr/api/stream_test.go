package api

import (
	"errors"
	"net"
	"testing"

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
	s = serving(t, seq.Space{Name: "user", Sections: 2, Step: ownerStep}, nil)
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
