package lab

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/localcluster"
	"github.com/seqsvr/seqsvr/internal/rpc"
	"github.com/seqsvr/seqsvr/internal/storewire"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Pauses of the watch on the stores. One question is one register of each standby: it
// costs the stores next to nothing.
const (
	lookEvery   = 5 * time.Millisecond
	lookTimeout = 500 * time.Millisecond
)

// stores are connections to all stores, for looking only.
type stores struct {
	conns []*grpc.ClientConn
	refs  []*pb.Ref
	w     int
}

// dialStores asks every store who it is; all must answer.
func dialStores(ctx context.Context, nodes []localcluster.Node) (*stores, error) {
	s := &stores{}
	for _, n := range nodes {
		conn, err := rpc.Dial(n.Addr)
		if err != nil {
			s.close()
			return nil, err
		}
		s.conns = append(s.conns, conn)
		reply, err := pb.NewStoreClient(conn).Describe(ctx, &pb.DescribeRequest{})
		if err != nil {
			s.close()
			return nil, fmt.Errorf("%s: %w", n.Name, err)
		}
		s.refs, s.w = append(s.refs, reply.GetRef()), int(reply.GetW())
	}
	return s, nil
}

func (s *stores) close() {
	for _, conn := range s.conns {
		_ = conn.Close()
	}
}

// watch follows the leases of one session from the stores, by one of its sections for
// each standby.
type watch struct {
	stores   *stores
	timeline *timeline
	node     string // whose session it is
	session  uint64
	sections []seq.SectionID
	names    func(session uint64) string

	mu    sync.Mutex  // guards the fields below
	seen  [][]sighted // by section and store
	ended bool        // "lease ended" was told
	taken []bool      // by section: "taken over" was told
	since time.Duration
}

// sighted is the last that a store told of a section.
type sighted struct {
	holder uint64
	freeAt time.Duration // when the session's lease ends there; once over, when it did
	told   bool
}

// follow looks until ctx ends. The fault comes after it was called.
func (w *watch) follow(ctx context.Context) {
	w.seen = make([][]sighted, len(w.sections))
	w.taken = make([]bool, len(w.sections))
	for i := range w.seen {
		w.seen[i] = make([]sighted, len(w.stores.conns))
	}
	var wg sync.WaitGroup
	for i := range w.stores.conns {
		wg.Go(func() {
			for ctx.Err() == nil {
				w.look(ctx, i)
				select {
				case <-ctx.Done():
				case <-time.After(lookEvery):
				}
			}
		})
	}
	wg.Wait()
}

func (w *watch) look(ctx context.Context, store int) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	req := &pb.ReadRequest{Ref: w.stores.refs[store], Session: 1}
	for _, id := range w.sections {
		req.Registers = append(req.Registers, []byte(seq.SectionRegister(id)))
	}
	sent := w.timeline.clock.Now()
	message, err := pb.NewStoreClient(w.stores.conns[store]).Read(ctx, req)
	if err != nil {
		return
	}
	reply, err := storewire.ReplyFromProto(message)
	if err != nil || len(reply.Results) != len(w.sections) {
		return
	}
	now := w.timeline.clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, r := range reply.Results {
		s, holder := &w.seen[i][store], uint64(r.Holder)
		if holder == w.session {
			*s = sighted{holder: holder, freeAt: sent + r.Remaining, told: true}
			continue
		}
		if s.holder == w.session { // it ended between the two looks, or was released
			s.freeAt = min(s.freeAt, now)
		}
		s.holder, s.told = holder, true
	}
	w.tell(now)
}

// tell notes what a quorum of stores has come to. Needs w.mu.
func (w *watch) tell(now time.Duration) {
	for i, id := range w.sections {
		var free []time.Duration
		holders := map[uint64]int{}
		for _, s := range w.seen[i] {
			if s.told && s.holder != w.session {
				free = append(free, s.freeAt)
				holders[s.holder]++
			}
		}
		if len(free) < w.stores.w {
			continue
		}
		if !w.ended {
			slices.Sort(free)
			w.ended = true
			w.timeline.add(max(free[w.stores.w-1], w.since), eventLeaseEnd, w.node, "at %d stores", w.stores.w)
		}
		for holder, n := range holders {
			if holder != 0 && n >= w.stores.w && !w.taken[i] {
				w.taken[i] = true
				w.timeline.add(now, eventTaken, w.node, "by %s (section %d)", w.names(holder), id)
			}
		}
	}
}
