package gate

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// Buffers come from a pool: what is encoded into one must be the message, whatever was in it before, and
// must stay so while others are encoded.
func TestABufferThatIsUsedAgainHasTheMessageAlone(t *testing.T) {
	conn, c, draw := &traffic{all: new(atomic.Int64)}, newCodec(), rand.New(rand.NewPCG(9, 3))
	type held struct {
		data mem.BufferSlice
		want *pb.BatchNextReply
	}
	var all []held
	for range 400 {
		m := &pb.BatchNextReply{RouteVersion: draw.Uint64()}
		for range draw.IntN(3) {
			r := &pb.BatchResult{Unordered: draw.IntN(2) == 0}
			for range draw.IntN(1 << draw.IntN(13)) {
				r.First = append(r.First, draw.Uint64()>>draw.IntN(60))
			}
			m.Results = append(m.Results, r)
		}
		data, err := c.Marshal(conn.reply(m))
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, held{data, proto.CloneOf(m)}); len(all) < 5 {
			continue
		}
		i := draw.IntN(len(all))
		var got pb.BatchNextReply
		if err := proto.Unmarshal(all[i].data.Materialize(), &got); err != nil || !proto.Equal(&got, all[i].want) {
			t.Fatalf("got another message than was encoded, %v", err)
		}
		all[i].data.Free()
		all = append(all[:i], all[i+1:]...)
	}
}
