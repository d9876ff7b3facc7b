package api

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/internal/base/counters"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// FuzzPeerHandlers calls the methods for other AllocSvr with any bytes, unchanged or with the cluster and
// session put in. A refusal has a name, and the node keeps nothing of the message. Otherwise each kept
// section exists, and has the counters that were sent.
func FuzzPeerHandlers(f *testing.F) {
	const sections = 4
	sealed := &pb.SealedSection{Section: 3, Round: 5, Counters: counters.New(7).AppendBinary(nil)}
	for i, m := range []proto.Message{
		&pb.OfferRequest{From: uint64(otherSession), Sections: []*pb.SealedSection{sealed}},
		&pb.OfferRequest{From: uint64(otherSession), Sections: []*pb.SealedSection{sealed, {Section: sections, Counters: sealed.Counters}}},
		&pb.OfferRequest{From: uint64(otherSession), Sections: []*pb.SealedSection{sealed, {Counters: []byte("half of a")}}},
		&pb.TakeRequest{From: uint64(otherSession), Sections: []uint32{0, 3, 1 << 31}},
		&pb.LookRequest{Ended: uint64(otherSession)},
	} {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(max(0, i-2)), true, data)
		f.Add(uint8(max(0, i-2)), false, data)
	}
	f.Fuzz(func(t *testing.T, method uint8, known bool, data []byte) {
		var to successor
		looked := 0
		p := &Peer{Cluster: "c1", Session: ownSession, Sections: func() int { return sections }, Owner: &to, Kick: func() { looked++ }, Logger: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		var err error
		var taken *pb.TakeReply
		switch method % 3 {
		case 0:
			in := &pb.OfferRequest{}
			if proto.Unmarshal(data, in) != nil {
				return
			}
			if known {
				in.ClusterId, in.To = "c1", uint64(ownSession)
			}
			_, err = p.Offer(ctx, in)
		case 1:
			in := &pb.TakeRequest{}
			if proto.Unmarshal(data, in) != nil {
				return
			}
			if known {
				in.ClusterId, in.To = "c1", uint64(ownSession)
			}
			taken, err = p.Take(ctx, in)
		case 2:
			in := &pb.LookRequest{}
			if proto.Unmarshal(data, in) != nil {
				return
			}
			if known {
				in.ClusterId = "c1"
			}
			_, err = p.Look(ctx, in)
		}
		if err != nil && (rpc.CodeOf(err) == pb.ErrorCode_ERROR_CODE_UNSPECIFIED || len(to.accepted) > 0 || looked > 0) {
			t.Fatalf("refused with %v, and %d sections were kept, the stores asked %d times", err, len(to.accepted), looked)
		}
		for _, s := range to.accepted {
			if again := s.Table.AppendBinary(nil); int(s.ID) >= sections || string(again) != string(s.Body) {
				t.Fatalf("section %d is kept with %x, which was sent as %x", s.ID, again, s.Body)
			}
		}
		for _, id := range taken.GetOwned() {
			if id >= sections {
				t.Fatalf("section %d is said to be owned, there are %d", id, sections)
			}
		}
	})
}
