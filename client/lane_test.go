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

func slotFor(space *seq.Space, uid seq.UID, count uint32) *slot {
	return &slot{space: space, uid: uid, count: count, done: make(chan struct{}, 1)}
}

func TestAFullQueueRefuses(t *testing.T) {
	l := newLane(nil)
	l.started = true // no sender: what is queued stays
	space := &seq.Space{Name: "user", Sections: 1}
	if full, err := l.enqueue(slotFor(space, 1, 1), 1); full || err != nil {
		t.Fatalf("first: got %v, %v", full, err)
	}
	full, err := l.enqueue(slotFor(space, 2, 1), 1)
	if !full || !errors.Is(err, seq.ErrOverloaded) || !final(err) {
		t.Errorf("second: got %v, %v, want a final %v", full, err, seq.ErrOverloaded)
	}
	if final(seq.ErrOverloaded) {
		t.Error("a peer's own overload must be retried")
	}
}

func TestAMessageHoldsOneBatchASpace(t *testing.T) {
	user, pts := &seq.Space{Name: "user", Sections: 4}, &seq.Space{Name: "pts", First: 4, Sections: 4}
	slots := []*slot{slotFor(pts, 1, 1), slotFor(user, 2, 1), slotFor(pts, 3, 5), slotFor(user, 4, 1)}
	got := request(7, slots, 3, 1500*time.Microsecond)
	want := &pb.StreamRequest{Id: 7, TimeoutMs: 2, Call: &pb.StreamRequest_Next{Next: &pb.BatchNextRequest{
		RouteVersion: 3,
		Batches: []*pb.Batch{
			{Space: "user", Uids: []uint64{2, 4}},
			{Space: "pts", Uids: []uint64{1, 3}, Counts: []uint32{1, 5}},
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
		s := slotFor(space, 1, 2)
		reply := &pb.BatchNextReply{}
		if row.result != nil {
			reply.Results = []*pb.BatchResult{row.result}
		}
		(&flight{slots: []*slot{s}}).answer(&pb.StreamReply{Result: &pb.StreamReply_Next{Next: reply}})
		<-s.done
		if !errors.Is(s.out.Err, errMalformed) || s.out.First != 0 {
			t.Errorf("%s: got %+v, want %v", row.name, s.out, errMalformed)
		}
	}
}

func TestWhatWaitsTooLongIsGivenUp(t *testing.T) {
	c := &Client{stale: make(chan struct{}, 1)}
	c.cfg, _ = Config{Addrs: []string{"a"}, AttemptTimeout: 4 * time.Hour}.withDefaults()
	p := &peer{c: c, addr: "a"}
	l := newLane(p)
	l.started = true
	space := &seq.Space{Name: "user", Sections: 1}
	sent, queued := slotFor(space, 1, 1), slotFor(space, 2, 1)
	if _, err := l.enqueue(sent, 9); err != nil {
		t.Fatal(err)
	}
	l.take(nil)
	if _, err := l.enqueue(queued, 9); err != nil {
		t.Fatal(err)
	}
	l.sweep(time.Now().Add(4 * time.Hour))
	if len(sent.done)+len(queued.done) != 0 || p.suspect.Load() {
		t.Error("given up before the limit")
	}
	l.sweep(time.Now().Add(6 * time.Hour))
	for _, s := range []*slot{sent, queued} {
		<-s.done
		if !errors.Is(s.out.Err, ErrUnreachable) || final(s.out.Err) {
			t.Errorf("got %v, want %v, to be retried", s.out.Err, ErrUnreachable)
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
