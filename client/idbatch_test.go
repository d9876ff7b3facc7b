package client

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/snowflake"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

func TestSingleIDsOfManyCallersTravelTogether(t *testing.T) { together(t, 0, 1) }

// 100 callers are refused, 50 twice, 25 four times, 12 and 13 eight times, and then
// sixteen times 6 or 7 are served.
func TestABatchTooLargeForATickIsHalved(t *testing.T) { together(t, 7, 31) }

// together lets 100 callers wait for one batch, by a policy that refuses more than
// atOnce IDs, and wants a number of calls for it.
func together(t *testing.T, atOnce, calls int) {
	cluster := clienttest.Start(t, 1)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := New(ctx, Config{Addrs: cluster.Addrs(), AttemptTimeout: 30 * time.Second, MaxQueue: 100})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	waitFor := func(what string, ok func() bool) {
		t.Helper()
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for !ok() {
			select {
			case <-ctx.Done():
				t.Fatalf("waited in vain for %s", what)
			case <-tick.C:
			}
		}
	}
	cluster.Nodes[0].Hang()
	type answer struct {
		id  snowflake.ID
		err error
	}
	got := make(chan answer, 200)
	call := func(n int) {
		for range n {
			go func() {
				id, err := c.NextID(ctx, "")
				got <- answer{id, err}
			}()
		}
	}
	waiting := func() int {
		c.ids.mu.Lock()
		defer c.ids.mu.Unlock()
		return len(c.ids.spaces[""].waiting)
	}
	for i := range int64(batchesPerNamespace) { // one by one, so that each has its own batch
		call(1)
		waitFor("a batch", func() bool { return cluster.Nodes[0].Generates.Load() == i+1 })
	}
	call(100)
	waitFor("the others to wait", func() bool { return waiting() == 100 })
	if _, err := c.NextID(ctx, ""); !errors.Is(err, stream.ErrFull) {
		t.Errorf("past the queue: got %v, want %v", err, stream.ErrFull)
	}
	cluster.AtOnce(atOnce)
	cluster.Nodes[0].Resume()
	seen := map[snowflake.ID]bool{}
	for range 100 + batchesPerNamespace {
		a := <-got
		if a.err != nil || seen[a.id] {
			t.Fatalf("got %d, %v, perhaps twice", a.id, a.err)
		}
		seen[a.id] = true
	}
	if n := cluster.Nodes[0].Generates.Load(); n != int64(batchesPerNamespace+calls) {
		t.Errorf("%d calls, want %d and %d for all that waited", n, batchesPerNamespace, calls)
	}
	waitFor("the namespace to be forgotten", func() bool {
		c.ids.mu.Lock()
		defer c.ids.mu.Unlock()
		return len(c.ids.spaces) == 0
	})
}

func TestAMalformedAnswerNeverBecomesAnID(t *testing.T) {
	run := func(first, last, stride uint64) *pb.SnowflakeRun {
		return &pb.SnowflakeRun{First: first, Last: last, Stride: stride}
	}
	rows := []struct {
		name string
		runs []*pb.SnowflakeRun
	}{
		{"no run", nil},
		{"too few", []*pb.SnowflakeRun{run(10, 11, 1)}},
		{"too many", []*pb.SnowflakeRun{run(10, 13, 1)}},
		{"too many in the second run", []*pb.SnowflakeRun{run(10, 12, 1), run(20, 20, 1)}},
		{"a negative ID", []*pb.SnowflakeRun{run(math.MaxUint64-2, math.MaxUint64, 1)}},
		{"an end before the start", []*pb.SnowflakeRun{run(12, 10, 1)}},
		{"no stride", []*pb.SnowflakeRun{run(10, 12, 0)}},
		{"an end that no stride meets", []*pb.SnowflakeRun{run(10, 15, 2)}},
	}
	for _, row := range rows {
		if got, err := idsOf(&pb.SnowflakeGenerateReply{Runs: row.runs}, 3); !errors.Is(err, stream.ErrMalformed) || got.Len() != 0 {
			t.Errorf("%s: got %+v, %v, want %v", row.name, got, err, stream.ErrMalformed)
		}
	}
	good := []*pb.SnowflakeRun{run(math.MaxInt64-8, math.MaxInt64, 8), run(5, 5, 8)}
	got, err := idsOf(&pb.SnowflakeGenerateReply{Runs: good}, 3)
	if err != nil {
		t.Fatal(err)
	}
	var ids []snowflake.ID
	for id := range got.All() {
		ids = append(ids, id)
	}
	if diff := cmp.Diff([]snowflake.ID{math.MaxInt64 - 8, math.MaxInt64, 5}, ids); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for id := range got.All() {
		if id != math.MaxInt64-8 {
			t.Errorf("went on to %d after the caller left", id)
		}
		break
	}
}
