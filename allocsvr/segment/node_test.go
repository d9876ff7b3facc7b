package segment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// node is one AllocSvr over fake stores.
type node struct {
	*Service
	session seq.Session
	ahead   atomic.Int64 // of time.Now, in ns: the clock of dates
	mine    atomic.Bool
	inSet   atomic.Bool           // of another Set than the root
	deaf    atomic.Bool           // other nodes do not reach it
	slow    atomic.Int64          // what Tell returns for this node, in ns, as for a node of an older build
	away    atomic.Pointer[error] // why there is no quorum; nil if there is one
	stop    func() error          // ends Run, as a crash: the stores are not told
	ends    error                 // how Run is to end
}

// Statuses are those that the node tells of its tags.
func (n *node) Statuses() []*pb.SegmentStatus { return server{s: n.Service}.statuses() }

var errElsewhere = fmt.Errorf("ask alloc-9: %w", seq.ErrNotOwner)

func newNode(t *testing.T, f *fakeStores, session seq.Session) *node {
	t.Helper()
	m, err := seq.NewMapping(seq.Space{Name: "user", Sections: 16})
	if err != nil {
		t.Fatal(err)
	}
	n := &node{session: session}
	n.mine.Store(true)
	n.Service, err = New(Config{
		Holder:     &ownership.Holder{Session: session, Registers: f, Leases: fakeLeases{f, session}},
		ReadPrefix: f.ReadPrefix, Tell: f.tell,
		Mapping: m, Documents: f, Clock: f.clock, Logger: slog.New(slog.DiscardHandler),
		Wall: func() time.Time { return time.Now().Add(time.Duration(n.ahead.Load())) },
		Quorum: func() error {
			if why := n.away.Load(); why != nil {
				return *why
			}
			return nil
		},
		Owner: func(seq.SectionID) (bool, error) {
			if n.inSet.Load() {
				return false, &rpc.NotOwnerError{Set: "main", Addr: "alloc-1"}
			}
			if n.mine.Load() {
				return true, nil
			}
			return false, errElsewhere
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	f.nodes[session] = n
	f.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	n.stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() {
		if err := n.stop(); !errors.Is(err, n.ends) {
			t.Errorf("session %v: Run ended with %v, want %v", session, err, n.ends)
		}
	})
	return n
}

func (n *node) put(t *testing.T, tag Tag) {
	t.Helper()
	if _, _, err := n.Put(t.Context(), tag); err != nil {
		t.Fatal(err)
	}
}

func (n *node) must(t *testing.T, tag string, count uint32) Range {
	t.Helper()
	r, err := n.Take(patient(t), tag, count)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// patient is a context for what must end, however slow the machine is.
func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx := patient(t)
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("never came: %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}
