package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab/load"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// sampled is the number of keys of a batch that are checked, because each check costs. The sample varies,
// because a different UID comes first in each batch.
const sampled = 8

func nextCalls(_ context.Context, r *rig) (load.Call, error) {
	draws := r.draws()
	return func(_ context.Context, caller int) (int, error) {
		uid := draws[caller].One()
		before := r.rising.Before(uid)
		n, err := r.client.Next(context.Background(), r.key(uid))
		if err != nil {
			return 0, err
		}
		r.rising.After(before, n, n)
		return 1, nil
	}, nil
}

func nextNCalls(_ context.Context, r *rig) (load.Call, error) {
	draws, count := r.draws(), uint32(r.o.batch)
	return func(_ context.Context, caller int) (int, error) {
		uid := draws[caller].One()
		before := r.rising.Before(uid)
		first, last, err := r.client.NextN(context.Background(), r.key(uid), count)
		if err != nil {
			return 0, err
		}
		r.rising.After(before, first, last)
		return int(count), nil
	}, nil
}

// ticketCalls opens and ends a ticket in each call.
func ticketCalls(_ context.Context, r *rig) (load.Call, error) {
	draws := r.draws()
	return func(_ context.Context, caller int) (int, error) {
		uid := draws[caller].One()
		before := r.rising.Before(uid)
		t, err := r.client.Open(context.Background(), r.key(uid), 1)
		if err != nil {
			return 0, err
		}
		r.rising.After(before, t.First, t.Last)
		return 1, t.Done(context.Background())
	}, nil
}

func batchCalls(_ context.Context, r *rig) (load.Call, error) {
	draws, size := r.draws(), r.o.batch
	return func(_ context.Context, caller int) (int, error) {
		uids := draws[caller].Batch(size)
		var before [sampled]load.Mark
		for i, uid := range uids[:min(sampled, size)] {
			before[i] = r.rising.Before(uid)
		}
		got, err := r.client.NextBatch(context.Background(), r.o.space, uids, nil)
		if err != nil {
			return 0, err
		}
		for i := range got {
			if got[i].Err != nil {
				return 0, got[i].Err
			}
		}
		for i := range before[:min(sampled, size)] {
			r.rising.After(before[i], got[i].First, got[i].Last)
		}
		return size, nil
	}, nil
}

// unaryCalls goes to the owners over a connection each, call by call.
func unaryCalls(ctx context.Context, r *rig) (load.Call, error) {
	m, _ := r.client.Caller().Table().Mapping()
	space, err := m.Space(r.o.space)
	if err != nil {
		return nil, err
	}
	ctx = r.lasting(ctx)
	owners := &owners{dial: r.o.Dial(), clients: map[string]pb.SequenceClient{}}
	r.ends = append(r.ends, owners.close)
	draws := r.draws()
	var known atomic.Pointer[client.Sets]
	look := func() *client.Sets {
		sets := r.client.Sets()
		known.Store(&sets)
		return &sets
	}
	look()
	return func(_ context.Context, caller int) (int, error) {
		uid := draws[caller].One()
		section := space.SectionOf(uid)
		node, ok := known.Load().Of(section).Routes.Owner(section)
		if !ok {
			r.client.Caller().Table().Refresh()
			if node, ok = look().Of(section).Routes.Owner(section); !ok {
				return 0, fmt.Errorf("uid %d: %w", uid, seq.ErrNoRoute)
			}
		}
		c, err := owners.at(node.Addr)
		if err != nil {
			return 0, err
		}
		before := r.rising.Before(uid)
		reply, err := c.Next(ctx, &pb.NextRequest{Space: r.o.space, Id: &pb.NextRequest_Uid{Uid: uint64(uid)}, Count: 1})
		if err != nil {
			r.client.Caller().Table().Refresh() // perhaps it moved
			look()
			return 0, err
		}
		r.rising.After(before, seq.Seq(reply.GetFirst()), seq.Seq(reply.GetLast()))
		return 1, nil
	}, nil
}

// lasting is one context for all calls that need one, so that none pays for its own:
// it ends when the run is interrupted, or long after the last call should have ended.
func (r *rig) lasting(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(r.o.warmup+r.o.duration+r.o.Timeout, cancel)
	r.ends = append(r.ends, func() { timer.Stop(); cancel() })
	return ctx
}

// owners are plain connections by address.
type owners struct {
	dial []grpc.DialOption // of all connections

	mu      sync.RWMutex // guards the rest
	clients map[string]pb.SequenceClient
	conns   []*grpc.ClientConn
}

func (o *owners) at(addr string) (pb.SequenceClient, error) {
	o.mu.RLock()
	c := o.clients[addr]
	o.mu.RUnlock()
	if c != nil {
		return c, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.clients[addr]; c != nil {
		return c, nil
	}
	conn, err := rpc.Dial(addr, o.dial...)
	if err != nil {
		return nil, err
	}
	o.conns = append(o.conns, conn)
	o.clients[addr] = pb.NewSequenceClient(conn)
	return o.clients[addr], nil
}

func (o *owners) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, conn := range o.conns {
		_ = conn.Close()
	}
}

// snowflakeCalls checks that the IDs of an answer are as many as asked for and rise;
// there are no UIDs.
func snowflakeCalls(_ context.Context, r *rig) (load.Call, error) {
	r.rising = nil
	count := uint32(r.o.batch)
	return func(context.Context, int) (int, error) {
		got, err := r.client.Generate(context.Background(), r.o.namespace, count)
		if err != nil {
			return 0, err
		}
		if n := got.Len(); n != int(count) {
			return 0, fmt.Errorf("%w: %d IDs, expected %d", errBroken, n, count)
		}
		return int(count), nil
	}, nil
}

// segmentCalls makes the tag if there is none. All callers share its row of numbers,
// which is checked as one UID's are.
func segmentCalls(ctx context.Context, r *rig) (load.Call, error) {
	put, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	_, err := pb.NewSegmentClient(r.client.Caller().Any()).Put(put, &pb.SegmentPutRequest{Tag: &pb.SegmentTag{Tag: r.o.tag}})
	if err != nil {
		return nil, fmt.Errorf("make the segment tag %q: %w", r.o.tag, err)
	}
	one, err := load.NewUsers(load.UserConfig{UIDs: 1, Callers: 1, Longest: 1, Dist: load.Uniform})
	if err != nil {
		return nil, err
	}
	r.rising = load.NewRising(one)
	count := uint32(r.o.batch)
	return func(context.Context, int) (int, error) {
		before := r.rising.Before(0)
		first, last, err := r.client.TakeSegment(context.Background(), r.o.tag, count)
		if err != nil {
			return 0, err
		}
		r.rising.After(before, first, last)
		return int(count), nil
	}, nil
}
