package router_test

import (
	"errors"
	"testing"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

func connOf(t testing.TB, addr string) grpc.ClientConnInterface {
	t.Helper()
	conn, err := rpc.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestSnowflakesAreForwarded(t *testing.T) {
	cluster := clienttest.Start(t, 2)
	r := start(t, router.Config{Allocs: cluster.Addrs()})
	ctx, c := bounded(t), pb.NewSnowflakeClient(connOf(t, r.Addr()))
	rows := []struct {
		name      string
		req       *pb.SnowflakeGenerateRequest
		namespace string
		want      error
	}{
		{"one", &pb.SnowflakeGenerateRequest{Count: 1}, "default", nil},
		{"one as a run", &pb.SnowflakeGenerateRequest{Count: 1, AsRuns: true}, "default", nil},
		{"one by number", &pb.SnowflakeGenerateRequest{Count: 1, Alias: 2}, "regional-2", nil},
		{"one for an agent", &pb.SnowflakeGenerateRequest{Count: 1, Namespace: "orders", Agent: "mailer"}, "orders", nil},
		{"many", &pb.SnowflakeGenerateRequest{Count: 5000, Namespace: "orders"}, "orders", nil},
		{"many as runs", &pb.SnowflakeGenerateRequest{Count: 5000, Alias: 1, AsRuns: true}, "regional-1", nil},
		{"too many", &pb.SnowflakeGenerateRequest{Count: client.MaxIDs + 1}, "", seq.ErrBadCount},
		{"of nowhere", &pb.SnowflakeGenerateRequest{Count: 1, Namespace: "moon"}, "", seq.ErrUnknownNamespace},
		{"many of nowhere", &pb.SnowflakeGenerateRequest{Count: 2, Alias: 77}, "", seq.ErrUnknownNamespace},
	}
	seen := map[string]map[uint64]bool{}
	for _, row := range rows {
		got, err := c.Generate(ctx, row.req)
		if !errors.Is(err, row.want) || got.GetNamespace() != row.namespace {
			t.Errorf("%s: got %v, %v, want %v", row.name, got, err, row.want)
		}
		if err != nil {
			continue
		}
		ids := got.GetIds()
		if row.req.GetAsRuns() != (len(ids) == 0) {
			t.Errorf("%s: got %d IDs", row.name, len(ids))
		}
		for _, run := range got.GetRuns() {
			for id := run.GetFirst(); id <= run.GetLast(); id += run.GetStride() {
				ids = append(ids, id)
			}
		}
		if len(ids) != int(row.req.GetCount()) {
			t.Errorf("%s: got %d IDs, want %d", row.name, len(ids), row.req.GetCount())
		}
		for _, id := range ids {
			if seen[row.namespace] == nil {
				seen[row.namespace] = map[uint64]bool{}
			}
			if seen[row.namespace][id] {
				t.Errorf("%s: %d twice", row.name, id)
			}
			seen[row.namespace][id] = true
		}
	}
	if n := cluster.IDsOf("mailer"); n != 1 {
		t.Errorf("the agent got %d, want 1", n)
	}
	cluster.Nodes[0].Kill()
	for range 4 {
		if _, err := c.Generate(ctx, &pb.SnowflakeGenerateRequest{Count: 2}); err != nil {
			t.Errorf("with a dead node: %v", err)
		}
	}
}

func TestAllCallsForSnowflakesAreForwarded(t *testing.T) {
	cluster := clienttest.Start(t, 2)
	r := start(t, router.Config{Allocs: cluster.Addrs()})
	ctx, c := bounded(t), pb.NewSnowflakeClient(connOf(t, r.Addr()))
	decoded, err := c.Decode(ctx, &pb.SnowflakeDecodeRequest{Id: &pb.SnowflakeDecodeRequest_Number{Number: 1541815603606036480}})
	if err != nil || decoded.GetWorkerId() != 26 || decoded.GetDatacenterId() != 11 {
		t.Errorf("decode: got %v, %v", decoded, err)
	}
	composed, err := c.Compose(ctx, &pb.SnowflakeComposeRequest{
		Layout: "twitter", Time: &pb.SnowflakeComposeRequest_Tick{Tick: 367597485448}, DatacenterId: 11, WorkerId: 26})
	if err != nil || composed.GetId() != 1541815603606036480 {
		t.Errorf("compose: got %v, %v", composed, err)
	}
	if got, err := c.Layouts(ctx, &pb.SnowflakeLayoutsRequest{Layout: "leaf"}); err != nil || len(got.GetLayouts()) != 1 {
		t.Errorf("layouts: got %v, %v", got, err)
	}
	if got, err := c.Namespaces(ctx, &pb.SnowflakeNamespacesRequest{}); err != nil || len(got.GetNamespaces()) == 0 {
		t.Errorf("namespaces: got %v, %v", got, err)
	}
	if got, err := c.Workers(ctx, &pb.SnowflakeWorkersRequest{Alias: 1}); err != nil || got.GetPool() != 64 {
		t.Errorf("workers: got %v, %v", got, err)
	}
	if got, err := c.Info(ctx, &pb.SnowflakeInfoRequest{}); err != nil || got.GetNode() == "" {
		t.Errorf("info: got %v, %v", got, err)
	}
	if got, err := c.PutNamespace(ctx, &pb.SnowflakePutNamespaceRequest{Name: "x"}); !errors.Is(err, seq.ErrConflict) {
		t.Errorf("put: got %v, %v, want %v", got, err, seq.ErrConflict)
	}
	lent, err := c.Delegate(ctx, &pb.SnowflakeDelegateRequest{Namespace: "1", WindowMs: 60_000})
	if err != nil || lent.GetNamespace() != "regional-1" || lent.GetLastTick() <= lent.GetFloorTick() || cluster.Delegations() != 1 {
		t.Errorf("delegate: got %v, %v", lent, err)
	}
	if got, err := c.Layouts(ctx, &pb.SnowflakeLayoutsRequest{Layout: "moon"}); !errors.Is(err, seq.ErrBadLayout) {
		t.Errorf("no layout: got %v, %v, want %v", got, err, seq.ErrBadLayout)
	}
}

func TestSegmentsAreForwarded(t *testing.T) {
	cluster := clienttest.Start(t, 3)
	r := start(t, router.Config{Allocs: cluster.Addrs()})
	ctx, c := bounded(t), pb.NewSegmentClient(connOf(t, r.Addr()))
	var last uint64
	take := func(count uint32) {
		t.Helper()
		got, err := c.Take(ctx, &pb.SegmentTakeRequest{Tag: "order", Count: count})
		if err != nil || got.GetFirst() != last+1 || got.GetLast() != last+uint64(count) || got.GetMax() < got.GetLast() {
			t.Fatalf("got %v, %v after %d", got, err, last)
		}
		last = got.GetLast()
	}
	if _, err := c.Take(ctx, &pb.SegmentTakeRequest{Tag: "order", Count: 1}); !errors.Is(err, seq.ErrUnknownTag) {
		t.Errorf("before it is put: got %v, want %v", err, seq.ErrUnknownTag)
	}
	if got, err := c.Put(ctx, &pb.SegmentPutRequest{Tag: &pb.SegmentTag{Tag: "order"}}); err != nil || !got.GetCreated() {
		t.Errorf("put: got %v, %v", got, err)
	}
	take(1)
	take(100)
	owner := cluster.TagOwner("order")
	cluster.Nodes[owner].Kill()
	cluster.TakeOver(owner, (owner+1)%3)
	take(3)
	for _, req := range []*pb.SegmentStatusRequest{{}, {Tag: "order"}} {
		got, err := c.Status(ctx, req)
		if err != nil || len(got.GetTags()) != 1 || got.GetTags()[0].GetCurrent() != last {
			t.Errorf("status %v: got %v, %v", req, got, err)
		}
	}
	if got, err := c.List(ctx, &pb.SegmentListRequest{}); err != nil || len(got.GetTags()) != 1 {
		t.Errorf("list: got %v, %v", got, err)
	}
	for count, want := range map[uint32]error{0: nil, seq.MaxCount + 1: seq.ErrBadCount} {
		if _, err := c.Take(ctx, &pb.SegmentTakeRequest{Tag: "order", Count: count}); !errors.Is(err, want) {
			t.Errorf("count %d: got %v, want %v", count, err, want)
		}
	}
}

func TestAnSDKThatReachesOnlyRoutersGetsIDs(t *testing.T) {
	cluster := clienttest.Start(t, 2)
	cluster.AddTag("order")
	one, two := start(t, router.Config{Allocs: cluster.Addrs()}), start(t, router.Config{Allocs: cluster.Addrs()})
	ctx := bounded(t)
	sdk, err := client.New(ctx, client.Config{Addrs: []string{one.Addr(), two.Addr()}, Indirect: true})
	if err != nil {
		t.Fatal(err)
	}
	defer sdk.Close()
	cluster.Nodes[1].Kill()
	cluster.TakeOver(1, 0)
	seen := map[int64]bool{}
	for n := range 6 {
		ids, err := sdk.Generate(ctx, "1", uint32(1+n))
		if err != nil || ids.Len() != n+1 || seen[int64(ids.First())] {
			t.Errorf("got %+v, %v", ids, err)
		}
		for id := range ids.All() {
			seen[int64(id)] = true
		}
		if first, last, err := sdk.TakeSegment(ctx, "order", 2); err != nil || first != seq.Seq(2*n+1) || last != first+1 {
			t.Errorf("segment: got %d to %d, %v", first, last, err)
		}
	}
	nodes, err := sdk.Caller().Nodes(ctx)
	if err != nil || len(nodes) != 1 {
		t.Fatalf("got %d nodes, %v, want the routers as one", len(nodes), err)
	}
	if got, err := pb.NewSegmentClient(nodes[0]).Status(ctx, &pb.SegmentStatusRequest{}); err != nil || len(got.GetTags()) != 1 {
		t.Errorf("status: got %v, %v", got, err)
	}
}
