package router_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/membership"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
	"github.com/seqsvr/seqsvr/tests/kit/waits"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 30 * time.Second

func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waits.AtMost(t, 4*patience))
	t.Cleanup(cancel)
	return ctx
}

// start runs a router before the cluster until the test ends.
func start(t testing.TB, cfg router.Config) *router.Router {
	t.Helper()
	if cfg.AttemptTimeout == 0 { // a call that is slow for want of a processor is not made twice: tests count
		cfg.AttemptTimeout = patience
	}
	if cfg.HTTPListen = "127.0.0.1:0"; cfg.Listen == "" {
		cfg.Listen = cfg.HTTPListen
	}
	r, err := router.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		_ = r.Close()
	})
	return r
}

func sequenceOf(t testing.TB, addr string) pb.SequenceClient {
	t.Helper()
	conn, err := rpc.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return pb.NewSequenceClient(conn)
}

func TestSingleCallsOfManyLeaveTogetherAndStayUnique(t *testing.T) {
	cluster := clienttest.Start(t, 2, seq.Space{Name: "user", Sections: 16})
	r := start(t, router.Config{Allocs: cluster.Addrs()})
	ctx, c := bounded(t), sequenceOf(t, r.Addr())
	var mu sync.Mutex
	seen := map[uint64]bool{}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for range 10 {
				got, err := c.Next(ctx, &pb.NextRequest{Id: &pb.NextRequest_Key{Key: "room-7"}, Count: 1, RouteVersion: 1})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if seen[got.GetFirst()] {
					t.Errorf("%d twice", got.GetFirst())
				}
				seen[got.GetFirst()] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	var messages, keys int64
	for _, n := range cluster.Nodes {
		messages, keys = messages+n.Messages.Load(), keys+n.Keys.Load()
	}
	if len(seen) != 500 || messages > keys {
		t.Errorf("%d numbers, %d messages for %d keys", len(seen), messages, keys)
	}
}

func TestAnSDKThatReachesOnlyRoutersWorksThroughFailovers(t *testing.T) {
	cluster := clienttest.Start(t, 2, seq.Space{Name: "user", Sections: 16}, seq.Space{Name: "pts", Sections: 2})
	one, two := start(t, router.Config{Allocs: cluster.Addrs()}), start(t, router.Config{Allocs: cluster.Addrs()})
	sdk, err := client.New(bounded(t), client.Config{Addrs: []string{one.Addr(), two.Addr()}, Indirect: true})
	if err != nil {
		t.Fatal(err)
	}
	defer sdk.Close()
	ctx := bounded(t)
	uids := []seq.UID{0, 64, 128, 0, 192, 256}
	last := map[seq.UID]seq.Seq{}
	round := func(what string) {
		t.Helper()
		got, err := sdk.NextBatch(ctx, "", uids, nil)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		for i, r := range got {
			if r.Err != nil || r.First <= last[uids[i]] {
				t.Errorf("%s: uid %d got %+v after %d", what, uids[i], r, last[uids[i]])
			}
			last[uids[i]] = r.Last
		}
		for _, key := range []client.Key{{UID: 64}, {Space: "pts", UID: 64}} {
			if _, _, err := sdk.NextN(ctx, key, 3); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		if v, err := sdk.Raise(ctx, client.Key{UID: 0}, last[0]+5); err != nil || v < last[0]+5 {
			t.Errorf("%s: raise: %d, %v", what, v, err)
		}
		values, err := sdk.Current(ctx, "", []seq.UID{0})
		if err != nil || values[0].Err != nil || values[0].Seq < last[0]+5 {
			t.Errorf("%s: current: %+v, %v", what, values, err)
		}
		last[0] += 5
	}
	round("all well")
	cluster.Nodes[0].Kill()
	cluster.TakeOver(0, 1)
	round("after a death")
	if n := sdk.Caller().Table().Routes().Version; n != 1 {
		t.Errorf("got table %d, want 1", n)
	}
	cluster.Publish()
	round("with a new table")
}

func TestACountOfNoneIsOne(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	cluster.AddTag("order")
	r := start(t, router.Config{Allocs: cluster.Addrs()})
	ctx := bounded(t)
	for want := uint64(1); want <= 2; want++ {
		if got, err := sequenceOf(t, r.Addr()).Next(ctx, &pb.NextRequest{Id: &pb.NextRequest_Uid{Uid: 7}}); err != nil || got.GetFirst() != want || got.GetLast() != want {
			t.Errorf("next: got %v, %v, want %d", got, err, want)
		}
	}
	conn, err := rpc.Dial(r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got, err := pb.NewSegmentClient(conn).Take(ctx, &pb.SegmentTakeRequest{Tag: "order"}); err != nil || got.GetFirst() == 0 || got.GetLast() != got.GetFirst() {
		t.Errorf("take: got %v, %v, want one number", got, err)
	}
	for _, agent := range []string{"", "mobile"} { // alone, and as it came
		if got, err := pb.NewSnowflakeClient(conn).Generate(ctx, &pb.SnowflakeGenerateRequest{Agent: agent}); err != nil || len(got.GetIds()) != 1 {
			t.Errorf("generate for %q: got %v, %v, want one ID", agent, got, err)
		}
	}
}

func TestRequestsThatAreNotSoundAreRefusedWithTheFieldNamed(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	r := start(t, router.Config{Allocs: cluster.Addrs()})
	ctx, c := bounded(t), sequenceOf(t, r.Addr())
	uid := &pb.NextRequest_Uid{Uid: 1}
	long := strings.Repeat("k", 1025)
	rows := []struct {
		name string
		call func() error
		want error
		text string
	}{
		{"no id", func() error { _, err := c.Next(ctx, &pb.NextRequest{Count: 1}); return err }, seq.ErrBadArgument, "uid"},
		{"count too large", func() error { _, err := c.Next(ctx, &pb.NextRequest{Id: uid, Count: seq.MaxCount + 1}); return err }, seq.ErrBadCount, "count"},
		{"empty key", func() error {
			_, err := c.Next(ctx, &pb.NextRequest{Id: &pb.NextRequest_Key{}, Count: 1})
			return err
		}, seq.ErrBadArgument, "key"},
		{"unknown space", func() error { _, err := c.Next(ctx, &pb.NextRequest{Id: uid, Count: 1, Space: "moon"}); return err }, seq.ErrUnknownSpace, "moon"},
		{"no batch", func() error { _, err := c.BatchNext(ctx, &pb.BatchNextRequest{}); return err }, seq.ErrBadBatch, "batches"},
		{"too many keys", func() error {
			_, err := c.Current(ctx, &pb.CurrentRequest{Batches: []*pb.Batch{{Uids: make([]uint64, seq.MaxBatch)}, {Uids: []uint64{1}}}})
			return err
		}, seq.ErrBadBatch, "batches"},
		{"counts that do not match", func() error {
			_, err := c.BatchNext(ctx, &pb.BatchNextRequest{Batches: []*pb.Batch{{Uids: []uint64{1}}, {Uids: []uint64{1}, Counts: []uint32{1, 1}}}})
			return err
		}, seq.ErrBadBatch, "batches[1].counts"},
		{"a bad count", func() error {
			_, err := c.BatchNext(ctx, &pb.BatchNextRequest{Batches: []*pb.Batch{{Uids: []uint64{1, 2}, Counts: []uint32{1, 0}}}})
			return err
		}, seq.ErrBadCount, "batches[0].counts[1]"},
		{"a long key in a batch", func() error {
			_, err := c.BatchNext(ctx, &pb.BatchNextRequest{Batches: []*pb.Batch{{Keys: []string{"a", long}}}})
			return err
		}, seq.ErrBadArgument, "batches[0].keys[1]"},
		{"a floor too high", func() error {
			_, err := c.Raise(ctx, &pb.RaiseRequest{Id: &pb.RaiseRequest_Uid{Uid: 1}, AtLeast: 1 << 53})
			return err
		}, seq.ErrOverflow, "at_least"},
		{"raise without an id", func() error { _, err := c.Raise(ctx, &pb.RaiseRequest{}); return err }, seq.ErrBadArgument, "uid"},
	}
	for _, row := range rows {
		if err := row.call(); !errors.Is(err, row.want) || !strings.Contains(err.Error(), row.text) {
			t.Errorf("%s: got %v, want %v naming %s", row.name, err, row.want, row.text)
		}
	}
	if n := cluster.Nodes[0].Messages.Load() + cluster.Nodes[0].Calls.Load(); n != 0 {
		t.Errorf("%d requests were forwarded, want none", n)
	}
}

func TestAStreamAnswersEachRequestById(t *testing.T) {
	cluster := clienttest.Start(t, 2, seq.Space{Name: "user", Sections: 4})
	r := start(t, router.Config{Allocs: cluster.Addrs()})
	stream, err := sequenceOf(t, r.Addr()).Stream(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	requests := []*pb.StreamRequest{
		{Id: 10, Call: &pb.StreamRequest_Next{Next: &pb.BatchNextRequest{Batches: []*pb.Batch{
			{Uids: []uint64{1, 1}, Counts: []uint32{1, 4}}, {Space: "moon", Uids: []uint64{9}}, {Keys: []string{"a"}},
		}}}},
		{Id: 11, Call: &pb.StreamRequest_Current{Current: &pb.CurrentRequest{Batches: []*pb.Batch{{Uids: []uint64{1 << 40}}}}}},
		{Id: 12},
	}
	got := map[uint64]*pb.StreamReply{}
	for _, request := range requests {
		if err := stream.Send(request); err != nil {
			t.Fatal(err)
		}
	}
	for range requests {
		reply, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		got[reply.GetId()] = reply
	}
	want := map[uint64]*pb.StreamReply{
		10: {Id: 10, Result: &pb.StreamReply_Next{Next: &pb.BatchNextReply{RouteVersion: 1, Results: []*pb.BatchResult{
			{First: []uint64{1, 2}, Last: []uint64{1, 5}},
			{First: []uint64{0}, Errors: []*pb.KeyError{{Code: pb.ErrorCode_ERROR_CODE_UNKNOWN_SPACE}}},
			{First: []uint64{1}},
		}}}},
		11: {Id: 11, Result: &pb.StreamReply_Current{Current: &pb.CurrentReply{RouteVersion: 1, Results: []*pb.CurrentResult{
			{Values: []uint64{0}, UpperBound: []bool{false}, LastTakenUnix: []int64{0}},
		}}}},
		12: {Id: 12, Result: &pb.StreamReply_Error{Error: &pb.KeyError{Code: pb.ErrorCode_ERROR_CODE_BAD_ARGUMENT}}},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform(), protocmp.IgnoreFields(&pb.KeyError{}, "message")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
}

func TestALeavingRouterEndsItsStreamsByName(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	r, err := router.New(router.Config{Listen: "127.0.0.1:0", Allocs: cluster.Addrs()})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	stream, err := sequenceOf(t, r.Addr()).Stream(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&pb.StreamRequest{Id: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	stop()
	if _, err := stream.Recv(); !errors.Is(err, seq.ErrShuttingDown) {
		t.Errorf("got %v, want %v", err, seq.ErrShuttingDown)
	}
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestHealthFollowsTheFirstTable(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	cluster.Nodes[0].Kill()
	r := start(t, router.Config{Allocs: cluster.Addrs()})
	conn, err := rpc.Dial(r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx := bounded(t)
	watch, err := healthpb.NewHealthClient(conn).Watch(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []healthpb.HealthCheckResponse_ServingStatus{healthpb.HealthCheckResponse_NOT_SERVING, healthpb.HealthCheckResponse_SERVING} {
		got, err := watch.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if got.GetStatus() != want {
			t.Errorf("got %v, want %v", got.GetStatus(), want)
		}
		if want == healthpb.HealthCheckResponse_NOT_SERVING {
			cluster.Nodes[0].Restart()
		}
	}
}

func TestARouterIsSeenInTheGossipAndHearsOfNewTables(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	old := seq.Incarnation{Cluster: seq.ClusterID{1}, Binding: seq.ClusterID{1}}
	cluster.Live(old)
	view, err := membership.Start(membership.Config{
		Name: "alloc-0", ClusterID: clienttest.ClusterID, Meta: membership.Meta{Role: membership.RoleAlloc, Addr: cluster.Nodes[0].Addr(), Incarnation: old},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	r := start(t, router.Config{Name: "r-1", Allocs: cluster.Addrs(), GossipListen: "127.0.0.1:0", GossipJoin: []string{view.Addr()}})
	// shown waits until the gossip has the router as it should be.
	shown := func(as func(membership.Meta) bool) {
		t.Helper()
		until(t, "the router is in the gossip as it should be", func() bool {
			return slices.ContainsFunc(view.Members(), func(m membership.Member) bool { return m.Meta.Name == "r-1" && as(m.Meta) })
		})
	}
	shown(func(m membership.Meta) bool {
		return m.Role == membership.RoleRouter && m.Addr == r.Addr() && m.HTTP == r.HTTPAddr()
	})
	// No caller uses the router, so only the gossip can bring table 2.
	cluster.Publish()
	view.SetTableVersion(2)
	shown(func(m membership.Meta) bool { return m.TableVersion == 2 })

	// The same of a restored cluster, whose tables begin at lower versions.
	next := seq.Incarnation{Cluster: old.Cluster, Era: 1, Binding: seq.ClusterID{2}}
	cluster.Live(next)
	view.SetIncarnation(next)
	shown(func(m membership.Meta) bool { return m.Incarnation == next })
}

func TestAConfigurationThatIsNotSoundIsRefused(t *testing.T) {
	rows := map[string]router.Config{
		"Listen":        {Listen: "nowhere", Allocs: []string{"a:1"}},
		"HTTPListen":    {Listen: ":0", HTTPListen: "x", Allocs: []string{"a:1"}},
		"Allocs is":     {Listen: ":0"},
		"Allocs[1]":     {Listen: ":0", Allocs: []string{"a:1", ""}},
		"GossipJoin":    {Listen: ":0", Allocs: []string{"a:1"}, GossipJoin: []string{"a:1"}},
		"GossipProfile": {Listen: ":0", Allocs: []string{"a:1"}, GossipProfile: "slow"},
		"Timeout":       {Listen: ":0", Allocs: []string{"a:1"}, Timeout: -1},
	}
	for field, cfg := range rows {
		if _, err := router.New(cfg); !errors.Is(err, seq.ErrBadArgument) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: got %v", field, err)
		}
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if _, err := router.New(router.Config{Listen: "127.0.0.1:0", HTTPListen: taken.Addr().String(), Allocs: []string{"a:1"}}); err == nil {
		t.Error("an address that is taken was accepted")
	}
}
