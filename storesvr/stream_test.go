package storesvr

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/internal/wire/storewire"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

// opening is the first message of a session's stream.
func opening(by seq.Session, calls ...*pb.StoreCall) *pb.StoreCalls {
	secret := sessiontest.SecretOf(by)
	return &pb.StoreCalls{Session: uint64(by), Secret: secret.Seed[:], Calls: calls}
}

func reads(id uint64, ref quorum.Ref, regs ...seq.Register) *pb.StoreCall {
	return &pb.StoreCall{Id: id, Call: &pb.StoreCall_Read{Read: storewire.ReadToProto(quorum.ReadRequest{Ref: ref, Session: alice, Registers: regs})}}
}

func steps(id uint64, ref quorum.Ref, items ...quorum.StepItem) *pb.StoreCall {
	return &pb.StoreCall{Id: id, Call: &pb.StoreCall_Step{Step: storewire.StepToProto(quorum.StepRequest{Ref: ref, Items: items})}}
}

// spokenTo is a store that votes, and a stream to it.
func spokenTo(t *testing.T) (*running, quorum.Ref, pb.Store_StreamClient) {
	t.Helper()
	r := serve(t, initStore(t, "a"), nil)
	ref := storewire.RefFromProto(r.bindAlone(t).GetRef())
	s, err := r.client.Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r, ref, s
}

// answersOf receives answers to that many calls, by id.
func answersOf(t *testing.T, s pb.Store_StreamClient, n int) map[uint64]*pb.StoreAnswer {
	t.Helper()
	out := map[uint64]*pb.StoreAnswer{}
	for len(out) < n {
		m, err := s.Recv()
		if err != nil {
			t.Fatalf("after %d answers of %d: %v", len(out), n, err)
		}
		for _, a := range m.GetAnswers() {
			if out[a.GetId()] != nil {
				t.Errorf("call %d is answered twice", a.GetId())
			}
			out[a.GetId()] = a
		}
	}
	return out
}

func TestAStreamAnswersAsItsMethodsDo(t *testing.T) {
	r, ref, s := spokenTo(t)
	secret := sessiontest.SecretOf(alice)
	if _, err := r.client.Prepare(t.Context(), storewire.PrepareToProto(quorum.PrepareRequest{Ref: ref, Session: alice, Secret: secret,
		Items: []quorum.PrepareItem{{Register: section, Round: 1}}})); err != nil {
		t.Fatal(err)
	}
	if err := s.Send(opening(alice, steps(1, ref, quorum.StepItem{Register: section, Round: 1, Max: 10}))); err != nil {
		t.Fatal(err)
	}
	first := answersOf(t, s, 1)[1].GetReply()
	if res := first.GetResults(); len(res) != 1 || res[0].GetVerdict() != pb.Verdict_VERDICT_OK || res[0].GetMax() != 10 || first.GetCommits() == 0 || len(first.GetSeal()) == 0 {
		t.Errorf("step: %v", first)
	}
	other := ref
	other.Era++
	if err := s.Send(&pb.StoreCalls{Calls: []*pb.StoreCall{
		reads(2, ref, section, "snone"), steps(3, other, quorum.StepItem{Register: section, Round: 1, Max: 20}), reads(4, other, section),
	}}); err != nil {
		t.Fatal(err)
	}
	got := answersOf(t, s, 3)
	want, err := r.client.Read(t.Context(), reads(0, ref, section, "snone").GetRead())
	if err != nil || !proto.Equal(got[2].GetReply(), want) {
		t.Errorf("read on the stream %v, by a call %v (%v)", got[2], want, err)
	}
	for _, id := range []uint64{3, 4} {
		if err := rpc.FromKeyError(got[id].GetError()); !errors.Is(err, seq.ErrStaleEra) {
			t.Errorf("call %d of another era: %v, want %v", id, got[id], seq.ErrStaleEra)
		}
	}
	if _, err := r.client.Release(t.Context(), storewire.ReleaseToProto(quorum.ReleaseRequest{Ref: ref, Session: alice, Secret: secret, All: true})); err != nil {
		t.Fatal(err)
	}
	// The session has ended. Its epoch is the promised one, so what it wrote before may come once more.
	req := quorum.StepRequest{Ref: ref, Session: alice, Secret: secret, Items: []quorum.StepItem{{Register: section, Round: 1, Max: 30}}}
	if err := s.Send(&pb.StoreCalls{Calls: []*pb.StoreCall{steps(5, ref, req.Items...)}}); err != nil {
		t.Fatal(err)
	}
	on := answersOf(t, s, 1)[5]
	by, err := r.client.Step(t.Context(), storewire.StepToProto(req))
	if err != nil || !slices.EqualFunc(on.GetReply().GetResults(), by.GetResults(), func(a, b *pb.Result) bool { return proto.Equal(a, b) }) {
		t.Errorf("step of a session that has ended: on the stream %v, by a call %v (%v)", on, by, err)
	}
}

func TestAStreamRefusesByName(t *testing.T) {
	r, ref, _ := spokenTo(t)
	item := quorum.StepItem{Register: section, Round: 1, Max: 10}
	wrong := opening(alice)
	wrong.Secret[3]++
	named := steps(1, ref, item)
	named.GetStep().Session = uint64(bob)
	copies := reads(1, ref, section)
	copies.GetRead().Copies = true
	for _, row := range []struct {
		name string
		send *pb.StoreCalls
		want error
		ends bool // the stream
		text string
	}{
		{"a wrong secret", wrong, seq.ErrNotSession, true, ""},
		{"no session", &pb.StoreCalls{Calls: []*pb.StoreCall{reads(1, ref, section)}}, seq.ErrBadArgument, true, "session 0"},
		{"a step of another session", opening(alice, named), seq.ErrNotSession, false, bob.String()},
		{"a read with copies", opening(alice, copies), seq.ErrBadArgument, false, "call Read"},
		{"a read of a prefix", opening(alice, &pb.StoreCall{Id: 1, Call: &pb.StoreCall_Read{Read: &pb.ReadRequest{Ref: storewire.RefToProto(ref), Prefix: "s"}}}), seq.ErrBadArgument, false, "call Read"},
		{"a call of no kind", opening(alice, &pb.StoreCall{Id: 1}), seq.ErrBadArgument, false, "no known kind"},
	} {
		s, err := r.client.Stream(t.Context())
		if err == nil {
			err = s.Send(row.send)
		}
		if err != nil {
			t.Fatal(err)
		}
		m, err := s.Recv()
		if !row.ends {
			if err != nil || len(m.GetAnswers()) != 1 {
				t.Fatalf("%s: %v, %v", row.name, m, err)
			}
			err = rpc.FromKeyError(m.GetAnswers()[0].GetError())
		}
		if !errors.Is(err, row.want) || !strings.Contains(err.Error(), row.text) {
			t.Errorf("%s: got %v, want %v saying %q", row.name, err, row.want, row.text)
		}
		if !row.ends { // the next call on it is answered
			if err := s.Send(&pb.StoreCalls{Calls: []*pb.StoreCall{reads(2, ref, section)}}); err != nil || answersOf(t, s, 1)[2].GetReply() == nil {
				t.Errorf("after %s: %v", row.name, err)
			}
		}
	}

	large, err := r.client.Stream(t.Context(), grpc.MaxCallSendMsgSize(2*storewire.MaxRequest))
	if err != nil {
		t.Fatal(err)
	}
	step := steps(1, ref, quorum.StepItem{Register: section, Round: 1, Log: make([]byte, storewire.MaxRequest)})
	if err := large.Send(opening(alice, step)); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if _, err := large.Recv(); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a message above the bound: %v", err)
	}

	astray, err := r.client.Stream(metadata.AppendToOutgoingContext(t.Context(), storewire.StoreHeader, "u-other"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := astray.Recv(); !errors.Is(err, seq.ErrStaleEra) {
		t.Errorf("a stream to another store: %v, want %v", err, seq.ErrStaleEra)
	}
}

// The answers that such a stream does not take stay few, and others are served.
func TestAStreamThatIsNotReadIsReadNoFurther(t *testing.T) {
	r, ref, s := spokenTo(t)
	if err := s.Send(opening(alice)); err != nil {
		t.Fatal(err)
	}
	regs := make([]seq.Register, 4096) // an answer has some 100 kB
	for i := range regs {
		regs[i] = "snone"
	}
	sent := new(atomic.Uint64)
	go func() { // until the stream ends with the test
		for id := uint64(1); s.Send(&pb.StoreCalls{Calls: []*pb.StoreCall{reads(id, ref, regs...)}}) == nil; id++ {
			sent.Store(id)
		}
	}()
	stuck := func() bool { // nothing more is taken
		before := sent.Load()
		time.Sleep(200 * time.Millisecond)
		return before > 0 && sent.Load() == before
	}
	waitFor(t, "the store to read no further", stuck)
	served, _, _ := r.calls.Totals(pb.Store_Read_FullMethodName)
	if served > streamCalls {
		t.Errorf("%d reads served for a caller that takes no answer, want at most %d", served, streamCalls)
	}
	if _, err := r.client.Read(t.Context(), reads(0, ref, section).GetRead()); err != nil {
		t.Errorf("another caller: %v", err)
	}
	answersOf(t, s, int(served)) // they go on when it reads
	waitFor(t, "more to be served", func() bool {
		now, _, _ := r.calls.Totals(pb.Store_Read_FullMethodName)
		return now > served+1
	})
}

func TestAStoreThatLeavesEndsItsStreams(t *testing.T) {
	r, _, s := spokenTo(t)
	if err := s.Send(opening(alice)); err != nil {
		t.Fatal(err)
	}
	r.cancel()
	if _, err := s.Recv(); !errors.Is(err, seq.ErrShuttingDown) {
		t.Errorf("got %v, want %v", err, seq.ErrShuttingDown)
	}
}

// The steps of one transaction are answered in one message after it, and reads before it.
func TestAReadOnAStreamDoesNotWaitForAStep(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r, d, ref := newSlow(t)
		ctx, cancel := context.WithCancel(t.Context())
		s := &scripted{ctx: ctx, in: make(chan *pb.StoreCalls), out: make(chan *pb.StoreAnswers, 10)}
		ended := make(chan error, 1)
		go func() { ended <- (&server{replica: r}).Stream(s) }()
		item := quorum.StepItem{Register: section, Round: 1, Max: 10}
		late := steps(4, ref, item)
		late.TimeoutUs = 1
		s.in <- opening(alice, steps(1, ref, item), reads(2, ref, section))
		synctest.Wait() // its transaction has begun
		item.Max = 20
		s.in <- &pb.StoreCalls{Calls: []*pb.StoreCall{steps(3, ref, item), late, reads(5, ref, section)}}
		want := func(what string, ids ...uint64) *pb.StoreAnswers {
			t.Helper()
			m := <-s.out
			var got []uint64
			for _, a := range m.GetAnswers() {
				got = append(got, a.GetId())
			}
			if !slices.Equal(got, ids) {
				t.Errorf("%s: answers to %v, want %v", what, got, ids)
			}
			return m
		}
		want("while the disk works", 2)
		want("while the disk works", 5)
		if _, early := answered(ended); early || len(s.out) > 0 {
			t.Error("a step was answered before it was on disk")
		}
		time.Sleep(time.Millisecond)
		d.finish <- nil
		want("the first transaction", 1)
		d.finish <- nil
		second := want("the next transaction", 3, 4)
		if second.GetAnswers()[1].GetError() == nil || second.GetAnswers()[0].GetReply() == nil {
			t.Errorf("a step whose time is over: %v", second)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	})
}

// scripted is a stream whose messages the test gives and takes.
type scripted struct {
	pb.Store_StreamServer
	ctx context.Context
	in  chan *pb.StoreCalls
	out chan *pb.StoreAnswers
}

func (s *scripted) Context() context.Context { return s.ctx }

func (s *scripted) Recv() (*pb.StoreCalls, error) {
	select {
	case m := <-s.in:
		return m, nil
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
}

func (s *scripted) Send(m *pb.StoreAnswers) error {
	s.out <- m
	return nil
}
