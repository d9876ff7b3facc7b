package clienttest

import (
	"context"
	"time"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// request names a take of an exact space.
type request struct {
	space string
	key   string // if empty, uid applies
	uid   uint64
	id    string
}

// assigned is what a request has got.
type assigned struct{ first, count uint64 }

// requestAt is the request of index i of a batch; false if it has no id.
func requestAt(b *pb.Batch, i int) (request, bool) {
	if len(b.GetRequestIds()) == 0 {
		return request{}, false
	}
	r := request{space: b.GetSpace(), id: string(b.GetRequestIds()[i])}
	if n := len(b.GetUids()); i < n {
		r.uid = b.GetUids()[i]
	} else {
		r.key = b.GetKeys()[i-n]
	}
	return r, true
}

// repeats gives what a request has got, and otherwise notes what it gets. Needs c.mu.
func (c *Cluster) repeats(b *pb.Batch, i int, first, count uint64) (assigned, error) {
	r, ok := requestAt(b, i)
	if !ok {
		return assigned{}, nil
	}
	had, known := c.once[r]
	space, err := c.Mapping.Space(b.GetSpace())
	if err == nil {
		err = space.KeepsIDs()
	}
	if err == nil {
		err = seq.CheckRequestID("request_ids", r.id)
	}
	switch {
	case err != nil:
		return assigned{}, err
	case known && had.count != count:
		return assigned{}, &seq.IDConflict{First: seq.Seq(had.first), Count: uint32(had.count), Asked: uint32(count)}
	case known:
		return had, nil
	}
	if len(b.GetFirstSentMs()) > 0 {
		sent := time.UnixMilli(b.GetFirstSentMs()[i])
		switch age := time.Since(sent); {
		case age > space.Window:
			return assigned{}, seq.ErrIDExpired
		case age < -time.Minute:
			return assigned{}, seq.ErrSentAhead
		}
	}
	c.once[r] = assigned{first, count}
	return assigned{}, nil
}

// Lookup implements pb.SequenceServer.
func (n *Node) Lookup(ctx context.Context, r *pb.LookupRequest) (*pb.LookupReply, error) {
	n.Calls.Add(1)
	if err := n.stall(ctx); err != nil {
		return nil, err
	}
	out := &pb.LookupReply{}
	out.RouteVersion, out.Routes = n.cluster.table(r.GetRouteVersion())
	b := batchOf(r, r.GetSpace(), 1)
	b.RequestIds = [][]byte{r.GetRequestId()}
	errs, _ := n.serve(b, func(int, *uint64, uint64) {
		of, _ := requestAt(b, 0)
		if had, ok := n.cluster.once[of]; ok {
			out.Found, out.First, out.Last = true, had.first, had.first+had.count-1
		}
	})
	if len(errs) > 0 {
		return nil, rpc.FromKeyError(errs[0])
	}
	return out, nil
}
