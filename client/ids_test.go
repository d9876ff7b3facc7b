package client_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/client"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

// register records snowflake IDs and reports what comes twice.
type register struct {
	t    *testing.T
	mu   sync.Mutex
	seen map[snowflake.ID]bool
}

func newRegister(t *testing.T) *register { return &register{t: t, seen: map[snowflake.ID]bool{}} }

func (r *register) add(ids client.IDs) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range ids.All() {
		if id == 0 || r.seen[id] {
			r.t.Errorf("%d was zero or handed out twice", id)
		}
		r.seen[id] = true
	}
}

func generates(c *clienttest.Cluster) (n int64) {
	for _, node := range c.Nodes {
		n += node.Generates.Load()
	}
	return n
}

func TestIDsComeFromAllNodesInTurn(t *testing.T) {
	cluster := clienttest.Start(t, 3)
	c := dial(t, cluster, client.Config{AttemptTimeout: patience})
	ctx, r := bounded(t), newRegister(t)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			for n := range 10 {
				ids, err := c.Generate(ctx, "", uint32(1+n*1000))
				if err != nil {
					t.Error(err)
					return
				}
				if ids.Len() != 1+n*1000 || ids.Namespace != "default" || ids.Layout != "twitter" || ids.Datacenter != clienttest.Datacenter {
					t.Errorf("got %d IDs of %+v", ids.Len(), ids)
				}
				r.add(ids)
			}
		})
	}
	wg.Wait()
	for i, n := range cluster.Nodes {
		if n.Generates.Load() == 0 {
			t.Errorf("node %d was never asked", i)
		}
	}
}

func TestANamespaceIsNamedByNameOrNumber(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	c := dial(t, cluster, client.Config{})
	for name, want := range map[string]string{"": "default", "2": "regional-2", "regional-2": "regional-2", "orders": "orders"} {
		for _, count := range []uint32{1, 2} {
			if ids, err := c.Generate(bounded(t), name, count); err != nil || ids.Namespace != want {
				t.Errorf("%q: got %+v, %v, want %s", name, ids, err, want)
			}
		}
	}
	one, err := c.NextID(bounded(t), "orders")
	two, err2 := c.NextID(bounded(t), "orders")
	if one <= 0 || two <= one || err != nil || err2 != nil {
		t.Errorf("got %d, %v, then %d, %v", one, err, two, err2)
	}
}

func TestIDsStayUniqueWhileNodesComeAndGo(t *testing.T) {
	cluster := clienttest.Start(t, 3)
	c := dial(t, cluster, client.Config{AttemptTimeout: 50 * time.Millisecond})
	ctx, r := bounded(t), newRegister(t)
	some := func(what string) {
		t.Helper()
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for range 4 {
					ids, err := c.Generate(ctx, "regional-1", uint32(1+i%2))
					if err != nil {
						t.Errorf("%s: %v", what, err)
						return
					}
					r.add(ids)
				}
			})
		}
		wg.Wait()
	}
	some("all well")
	cluster.Nodes[0].Kill()
	some("one dead")
	cluster.Nodes[1].Hang()
	some("one dead, one silent")
	cluster.Nodes[0].Restart()
	cluster.Nodes[2].Kill()
	some("another dead")
	cluster.Nodes[1].Resume()
	asked := cluster.Nodes[1].Generates.Load() + 3
	waitFor(t, "a node that answers again to be asked", func() bool {
		some("back")
		return cluster.Nodes[1].Generates.Load() >= asked || t.Failed()
	})
}

func TestErrorsOfIDsThatNoRetryCuresComeAtOnce(t *testing.T) {
	cluster := clienttest.Start(t, 2)
	c := dial(t, cluster, client.Config{AttemptTimeout: patience})
	ctx := bounded(t)
	rows := []struct {
		name, namespace, agent string
		count                  uint32
		want                   error
	}{
		{"a count of 0", "", "", 0, seq.ErrBadCount},
		{"a count above the limit", "", "", client.MaxIDs + 1, seq.ErrBadCount},
		{"an unknown namespace", "moon", "", 1, seq.ErrUnknownNamespace},
		{"an unknown namespace for many", "moon", "", 5, seq.ErrUnknownNamespace},
		{"an unknown number", "77", "", 1, seq.ErrUnknownNamespace},
		{"what is no text", "\xff\xfe", "", 1, seq.ErrUnknownNamespace},
		{"a long name", string(make([]byte, 1<<20)), "", 1, seq.ErrUnknownNamespace},
		{"no agent's name", "", "7of9", 1, seq.ErrBadArgument},
	}
	for _, row := range rows {
		got, err := c.GenerateAs(ctx, row.agent, row.namespace, row.count)
		if !errors.Is(err, row.want) || got.Len() != 0 || got.First() != 0 {
			t.Errorf("%s: got %+v, %v, want %v", row.name, got, err, row.want)
		}
	}
	for _, fault := range []error{seq.ErrTimeExhausted, seq.ErrDatacenterTaken} {
		cluster.Behave(false, false, fault)
		if _, err := c.NextID(ctx, ""); !errors.Is(err, fault) {
			t.Errorf("got %v, want %v", err, fault)
		}
	}
	if _, err := pb.NewSnowflakeClient(c.Caller().Any()).PutNamespace(ctx, &pb.SnowflakePutNamespaceRequest{}); !errors.Is(err, seq.ErrConflict) {
		t.Errorf("put: got %v, want %v", err, seq.ErrConflict)
	}
	if n := cluster.Nodes[0].Calls.Load() + cluster.Nodes[1].Calls.Load(); n != 1 {
		t.Errorf("a conflict was asked for %d times, want 1", n)
	}
}

func TestOtherErrorsOfIDsAreTriedElsewhereUntilTheCallerLeaves(t *testing.T) {
	cluster := clienttest.Start(t, 2)
	c := dial(t, cluster, client.Config{AttemptTimeout: patience})
	for _, fault := range []error{seq.ErrNoQuorum, seq.ErrWorkersExhausted, seq.ErrClockOff, seq.ErrOverloaded} {
		cluster.Behave(false, false, fault)
		ctx, cancel := context.WithCancel(bounded(t))
		before := generates(cluster)
		got := make(chan error, 1)
		go func() {
			_, err := c.Generate(ctx, "", 2)
			got <- err
		}()
		waitFor(t, "both nodes to be asked again", func() bool { return generates(cluster) > before+4 })
		cancel()
		if err := <-got; !errors.Is(err, context.Canceled) || !errors.Is(err, fault) {
			t.Errorf("got %v, want it to name %v", err, fault)
		}
	}
}

func TestASingleIDIsRetriedToo(t *testing.T) {
	cluster := clienttest.Start(t, 2)
	c := dial(t, cluster, client.Config{AttemptTimeout: patience})
	cluster.Behave(false, false, seq.ErrNoQuorum)
	got := make(chan error, 1)
	go func() {
		_, err := c.NextID(bounded(t), "")
		got <- err
	}()
	waitFor(t, "some attempts", func() bool { return generates(cluster) > 4 })
	cluster.Behave(false, false, nil)
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestNodesThatDoNotServeACallAreSteppedOver(t *testing.T) {
	cluster := clienttest.Start(t, 2)
	cluster.AddTag("order")
	c := dial(t, cluster, client.Config{AttemptTimeout: patience})
	ctx := bounded(t)
	cluster.Nodes[0].Bare()
	for range 6 {
		if _, err := c.NextID(ctx, ""); err != nil {
			t.Error(err)
		}
	}
	cluster.Nodes[1].Bare()
	if _, err := c.Generate(ctx, "", 2); status.Code(err) != codes.Unimplemented {
		t.Errorf("got %v, want Unimplemented", err)
	}
	if _, _, err := c.TakeSegment(ctx, "order", 1); err == nil || ctx.Err() != nil {
		t.Errorf("a segment of nodes without: got %v", err)
	}
}

func TestIDsAreCountedByAgent(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	c := dial(t, cluster, client.Config{Agent: "mailer"})
	ctx := bounded(t)
	for _, call := range []func() (client.IDs, error){
		func() (client.IDs, error) { return c.Generate(ctx, "", 1) },
		func() (client.IDs, error) { return c.Generate(ctx, "", 10) },
		func() (client.IDs, error) { return c.GenerateAs(ctx, "indexer-2", "", 1) },
		func() (client.IDs, error) { return c.GenerateAs(ctx, "", "", 1) },
	} {
		if _, err := call(); err != nil {
			t.Error(err)
		}
	}
	for agent, want := range map[string]int{"mailer": 11, "indexer-2": 1, "": 1} {
		if got := cluster.IDsOf(agent); got != want {
			t.Errorf("agent %q got %d, want %d", agent, got, want)
		}
	}
}

func TestACloseEndsWaitingCallsForIDs(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	c := dial(t, cluster, client.Config{AttemptTimeout: patience})
	cluster.Nodes[0].Hang()
	got := make(chan error, 2)
	for n := range 2 {
		go func() {
			_, err := c.Generate(context.Background(), "", uint32(n+1))
			got <- err
		}()
	}
	waitFor(t, "both calls", func() bool { return generates(cluster) >= 2 })
	_ = c.Close()
	for range 2 {
		if err := <-got; !errors.Is(err, client.ErrClosed) {
			t.Errorf("got %v, want %v", err, client.ErrClosed)
		}
	}
	if _, err := c.NextID(context.Background(), ""); !errors.Is(err, client.ErrClosed) {
		t.Errorf("after Close: got %v, want %v", err, client.ErrClosed)
	}
}
