package api

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// drawnMessage is 1 to 5 batches of 1 to 40 keys, of few UIDs, some with counts. Some are refused.
func drawnMessage(draw *rand.Rand) *pb.BatchNextRequest {
	req := &pb.BatchNextRequest{}
	for range 1 + draw.IntN(5) {
		b := &pb.Batch{}
		if draw.IntN(30) == 0 {
			b.Space = "none"
		}
		counts := draw.IntN(3) == 0
		for range 1 + draw.IntN(40) {
			b.Uids = append(b.Uids, draw.Uint64N(300))
			if counts {
				b.Counts = append(b.Counts, 1+draw.Uint32N(3))
			}
		}
		req.Batches = append(req.Batches, b)
	}
	return req
}

// answerTo returns the text of what a call answers.
func answerTo(ctx context.Context, c *nextCall, s *Sequence, req *pb.BatchNextRequest) string {
	if err := c.begin(s, false, req); err != nil {
		return err.Error()
	}
	early, ok := c.early()
	text := fmt.Sprintln(c.settled(), ok, prototext.Format(proto.CloneOf(early)))
	ctx, cancel := context.WithCancel(ctx)
	cancel() // what has to wait is refused
	return text + prototext.Format(c.reply(ctx))
}

// A stream serves all its messages by one call, of which each must answer as a new one would.
func TestACallThatIsUsedAgainAnswersAsANewOne(t *testing.T) {
	for _, mode := range []seq.Mode{seq.Ordered, seq.UniqueOnly} {
		draw := rand.New(rand.NewPCG(19, 1))
		var again nextCall
		one, other := sometimesOwned(t, mode), sometimesOwned(t, mode)
		for i := range 400 {
			if i%10 == 0 {
				again = nextCall{} // how it grows depends on its first messages
			}
			req := drawnMessage(draw)
			got, want := answerTo(t.Context(), &again, one.Sequence, req), answerTo(t.Context(), new(nextCall), other.Sequence, req)
			if got != want {
				t.Fatalf("mode %v, message %d: got %s\nwant %s", mode, i, got, want)
			}
		}
	}
}

// sometimesOwned owns some of its sections, of which one has few numbers left.
func sometimesOwned(t *testing.T, mode seq.Mode) *service {
	s := serving(t, seq.Space{Name: "user", Sections: 5, Step: ownerStep, Mode: mode}, nil)
	s.own(0, uint64(seq.MaxSeq))
	s.own(1, uint64(seq.MaxSeq))
	s.own(2, 20)
	s.Sections.Section(3).Begin()
	return s
}

func TestAKeyThatWaitsInABatchWaitsInTheOthersOfItsMessage(t *testing.T) {
	s := serving(t, seq.Space{Name: "user", Sections: 1, Step: ownerStep}, nil)
	s.own(0, ownerStep)
	var call nextCall
	if err := call.begin(s.Sequence, false, &pb.BatchNextRequest{Batches: []*pb.Batch{{Uids: []uint64{7}, Counts: []uint32{2 * ownerStep}}, {Uids: []uint64{8, 7}}}}); err != nil {
		t.Fatal(err)
	}
	early, ok := call.early()
	if second := early.Results[1].First; !ok || second[0] != 1 || second[1] != 0 {
		t.Errorf("got %d at once, want a number for the other key alone", second)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for i, r := range call.reply(ctx).Results {
		if len(r.Errors) != 1 {
			t.Errorf("batch %d: got %v, want the key refused in both", i, r)
		}
	}
	if err := call.begin(s.Sequence, false, &pb.BatchNextRequest{Batches: []*pb.Batch{{Uids: []uint64{7}}}}); err != nil || !call.settled() {
		t.Errorf("the next message waits for the one before: %v", err)
	}
}
