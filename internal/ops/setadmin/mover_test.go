package setadmin

import (
	"context"
	"errors"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// opening is the one node of a Set, which opens all that it is asked for.
type opening struct {
	mu     sync.Mutex
	sizes  []int // of the requests
	opened []uint32
}

func (o *opening) At(string) (grpc.ClientConnInterface, error) { return o, nil }

func (o *opening) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errors.New("no streams")
}

func (o *opening) Invoke(_ context.Context, _ string, req, reply any, _ ...grpc.CallOption) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	open := req.(*pb.OpenSectionsRequest)
	o.sizes = append(o.sizes, proto.Size(open))
	for _, s := range open.GetSections() {
		o.opened = append(o.opened, s.GetSection())
		reply.(*pb.OpenSectionsReply).Opened = append(reply.(*pb.OpenSectionsReply).Opened, s.GetSection())
	}
	return nil
}

// A node takes messages of rpc.MaxRecv at most, and a batch may have counters for several.
func TestEachMessageThatOpensSectionsIsOneThatANodeTakes(t *testing.T) {
	node := &opening{}
	to := NewSet("b", []string{"b:1"}, node)
	to.routes = &seq.RouteTable{}
	stopped := map[seq.SectionID]*pb.StoppedSection{}
	var ids []seq.SectionID
	for i, size := range []int{rpc.MaxCounters / 2, rpc.MaxCounters / 2, 0, 1, rpc.MaxSection, 10, 0, rpc.MaxCounters, rpc.MaxCounters} {
		id := seq.SectionID(i)
		ids = append(ids, id)
		stopped[id] = &pb.StoppedSection{Section: uint32(id), Counters: make([]byte, size)}
	}
	m := &Mover{To: to, Move: sets.Move{ID: 1}}
	owners, err := m.open(t.Context(), ids, stopped)
	if err != nil || len(owners) != len(ids) || len(node.opened) != len(ids) {
		t.Fatalf("opened %v: %v", node.opened, err)
	}
	for _, size := range node.sizes {
		if size > rpc.MaxRecv {
			t.Errorf("a message of %d bytes, of at most %d", size, rpc.MaxRecv)
		}
	}
	if len(node.sizes) != 6 {
		t.Errorf("%d messages of %d bytes", len(node.sizes), node.sizes)
	}
}
