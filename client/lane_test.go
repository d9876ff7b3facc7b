package client

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// idle is a lane without a sender: what is queued stays.
func idle(p *peer) *lane {
	l := newLane(p)
	l.started = true
	return l
}

func TestAFullQueueRefuses(t *testing.T) {
	l := idle(nil)
	space := &seq.Space{Name: "user", Sections: 1}
	if _, full, err := l.enqueue(space, 1, 1, 1); full || err != nil {
		t.Fatalf("first: got %v, %v", full, err)
	}
	_, full, err := l.enqueue(space, 2, 1, 1)
	if !full || !errors.Is(err, seq.ErrOverloaded) || !final(err) {
		t.Errorf("second: got %v, %v, want a final %v", full, err, seq.ErrOverloaded)
	}
	if final(seq.ErrOverloaded) {
		t.Error("a peer's own overload must be retried")
	}
}

func TestAMessageHoldsOneBatchASpace(t *testing.T) {
	user, pts := &seq.Space{Name: "user", Sections: 4}, &seq.Space{Name: "pts", First: 4, Sections: 4}
	f := newFlight(nil)
	for _, k := range []struct {
		space *seq.Space
		uid   seq.UID
		count uint32
	}{{pts, 1, 1}, {user, 2, 1}, {pts, 3, 5}, {user, 4, 1}, {pts, 5, 1}} {
		f.add(k.space, k.uid, k.count)
	}
	got := f.request(7, 3, 1500*time.Microsecond)
	want := &pb.StreamRequest{Id: 7, TimeoutMs: 2, Call: &pb.StreamRequest_Next{Next: &pb.BatchNextRequest{
		RouteVersion: 3,
		Batches: []*pb.Batch{
			{Space: "pts", Uids: []uint64{1, 3, 5}, Counts: []uint32{1, 5, 1}},
			{Space: "user", Uids: []uint64{2, 4}},
		},
	}}}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAMalformedAnswerNeverBecomesANumber(t *testing.T) {
	space := &seq.Space{Name: "user", Sections: 4}
	rows := []struct {
		name   string
		result *pb.BatchResult
	}{
		{"no result", nil},
		{"no number", &pb.BatchResult{}},
		{"the number 0", &pb.BatchResult{First: []uint64{0}, Last: []uint64{1}}},
		{"too few numbers", &pb.BatchResult{First: []uint64{5}}},
		{"too many numbers", &pb.BatchResult{First: []uint64{5}, Last: []uint64{9}}},
		{"an end before the start", &pb.BatchResult{First: []uint64{5}, Last: []uint64{4}}},
		{"numbers past the limit", &pb.BatchResult{First: []uint64{1 << 53}, Last: []uint64{1<<53 + 1}}},
		{"an error of another index", &pb.BatchResult{First: []uint64{0}, Errors: []*pb.KeyError{{Index: 9}}}},
	}
	for _, row := range rows {
		f := newFlight(nil)
		ticket := f.add(space, 1, 2)
		reply := &pb.BatchNextReply{}
		if row.result != nil {
			reply.Results = []*pb.BatchResult{row.result}
		}
		f.answer(&pb.StreamReply{Result: &pb.StreamReply_Next{Next: reply}})
		<-f.done
		if got := ticket.answer(2); !errors.Is(got.Err, errMalformed) || got.First != 0 {
			t.Errorf("%s: got %+v, want %v", row.name, got, errMalformed)
		}
	}
}

func TestWhatWaitsTooLongIsGivenUp(t *testing.T) {
	c := &Client{stale: make(chan struct{}, 1)}
	c.cfg, _ = Config{Addrs: []string{"a"}, AttemptTimeout: 4 * time.Hour}.withDefaults()
	p := &peer{c: c, addr: "a"}
	l := idle(p)
	space := &seq.Space{Name: "user", Sections: 1}
	sent, _, err := l.enqueue(space, 1, 1, 9)
	if err != nil {
		t.Fatal(err)
	}
	l.take(nil)
	queued, _, err := l.enqueue(space, 2, 1, 9)
	if err != nil {
		t.Fatal(err)
	}
	l.sweep(time.Now().Add(4 * time.Hour))
	for _, k := range []ticket{sent, queued} {
		select {
		case <-k.f.done:
			t.Error("given up before the limit")
		default:
		}
	}
	if p.suspect.Load() {
		t.Error("suspect before the limit")
	}
	l.sweep(time.Now().Add(6 * time.Hour))
	for _, k := range []ticket{sent, queued} {
		<-k.f.done
		if err := k.answer(1).Err; !errors.Is(err, ErrUnreachable) || final(err) {
			t.Errorf("got %v, want %v, to be retried", err, ErrUnreachable)
		}
	}
	if !p.suspect.Load() {
		t.Error("the silent peer is not suspect")
	}
	if ok, probe := p.admit(); !ok || !probe {
		t.Error("the first call to a suspect is its probe")
	}
	if ok, _ := p.admit(); ok {
		t.Error("a second call went to a suspect beside the probe")
	}
	p.release(true)
	p.answered()
	if ok, probe := p.admit(); !ok || probe {
		t.Error("a peer that answered is still suspect")
	}
}
