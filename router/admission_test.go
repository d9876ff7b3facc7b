package router_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/internal/wire/gate"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

// full is a router into which no further call fits until the test ends.
func full(t *testing.T) *router.Router {
	t.Helper()
	cluster := clienttest.Start(t, 1)
	cluster.AddTag("order")
	r := start(t, router.Config{Allocs: cluster.Addrs(), Leaf: true, RESPListen: "127.0.0.1:0", ConsoleListen: "127.0.0.1:0", Name: "router-full", MaxInWork: gate.MinInWork, AttemptTimeout: patience, Timeout: 4 * patience})
	until(t, "it has a table", func() bool { return r.Ready() == nil })
	cluster.Nodes[0].Hang()
	ctx, cancel := context.WithCancel(bounded(t))
	ended := make(chan struct{})
	c := sequenceOf(t, r.Addr())
	go func() {
		defer close(ended)
		_, _ = c.BatchNext(ctx, &pb.BatchNextRequest{Batches: []*pb.Batch{{Uids: make([]uint64, seq.MaxBatch)}}}) // it is canceled
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	until(t, "the batch is in work", func() bool { return gauge(t, r, "seq_admission_in_work_keys") == gate.MinInWork })
	return r
}

// refused bounds a call that must not be let in, so that it fails soon if it is.
func refused(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func TestAFullRouterRefusesEveryGRPCMethod(t *testing.T) {
	r := full(t)
	batches := []*pb.Batch{{Uids: []uint64{1}}}
	requests := map[string]proto.Message{ // those whose fields are checked first
		"Next":        &pb.NextRequest{Id: &pb.NextRequest_Uid{Uid: 1}, Count: 1},
		"BatchNext":   &pb.BatchNextRequest{Batches: batches},
		"Lookup":      &pb.LookupRequest{Id: &pb.LookupRequest_Uid{Uid: 1}, RequestId: []byte("a")},
		"Current":     &pb.CurrentRequest{Batches: batches},
		"Open":        &pb.OpenRequest{Id: &pb.OpenRequest_Uid{Uid: 1}, Count: 1},
		"Done":        &pb.DoneRequest{Id: &pb.DoneRequest_Uid{Uid: 1}, First: 1, Ticket: 1},
		"Mark":        &pb.MarkRequest{Batches: batches},
		"Raise":       &pb.RaiseRequest{Id: &pb.RaiseRequest_Uid{Uid: 1}, AtLeast: 1},
		"BatchRaise":  &pb.BatchRaiseRequest{Batches: []*pb.RaiseBatch{{Uids: []uint64{1}, AtLeast: []uint64{1}}}},
		"Generate":    &pb.SnowflakeGenerateRequest{Count: 1},
		"Take":        &pb.SegmentTakeRequest{Tag: "order", Count: 1},
		"NextNumbers": &pb.NumbersNextRequest{Tag: "order", Count: 1},
		"ShowNumber":  &pb.NumberShowRequest{Tag: "order"},
	}
	conn := connOf(t, r.Addr())
	for _, service := range []grpc.ServiceDesc{pb.Sequence_ServiceDesc, pb.Snowflake_ServiceDesc, pb.Segment_ServiceDesc} {
		for _, m := range service.Methods {
			req := requests[m.MethodName]
			if req == nil {
				req = &pb.RoutesRequest{} // empty, as each message may be
			}
			err := conn.Invoke(refused(t), "/"+service.ServiceName+"/"+m.MethodName, req, &pb.RoutesReply{})
			// The table is in memory, and callers need it to go elsewhere.
			if free := m.MethodName == "Routes"; free && err != nil || !free && !errors.Is(err, seq.ErrOverloaded) {
				t.Fatalf("%s: got %v, want %v", m.MethodName, err, seq.ErrOverloaded)
			}
		}
	}
	many := &pb.SnowflakeGenerateRequest{Count: 2} // one travels in another way
	if _, err := pb.NewSnowflakeClient(conn).Generate(refused(t), many); !errors.Is(err, seq.ErrOverloaded) {
		t.Fatalf("several IDs: got %v, want %v", err, seq.ErrOverloaded)
	}
	one := &pb.SegmentStatusRequest{Tag: "order"} // all tags are asked for in another way
	if _, err := pb.NewSegmentClient(conn).Status(refused(t), one); !errors.Is(err, seq.ErrOverloaded) {
		t.Fatalf("status of one tag: got %v, want %v", err, seq.ErrOverloaded)
	}
}

func TestAFullRouterRefusesTheCallsOfAStream(t *testing.T) {
	r := full(t)
	stream, err := sequenceOf(t, r.Addr()).Stream(refused(t))
	if err != nil {
		t.Fatal(err)
	}
	batches := []*pb.Batch{{Uids: []uint64{1}}}
	for _, req := range []*pb.StreamRequest{
		{Call: &pb.StreamRequest_Next{Next: &pb.BatchNextRequest{Batches: batches}}},
		{Call: &pb.StreamRequest_Current{Current: &pb.CurrentRequest{Batches: batches}}},
	} {
		if err := stream.Send(req); err != nil {
			t.Fatal(err)
		}
		if got, err := stream.Recv(); err != nil || got.GetError().GetCode() != pb.ErrorCode_ERROR_CODE_OVERLOADED {
			t.Fatalf("%v: got %v, %v, want OVERLOADED", req, got, err)
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Error(err)
	}
}

func TestAFullRouterRefusesEveryHTTPPath(t *testing.T) {
	r := full(t)
	for _, row := range []struct {
		method, path, body string
		want               int
	}{
		{http.MethodPost, "/v1/next", `{"uid":1}`, http.StatusTooManyRequests},
		{http.MethodPost, "/v1/batch", `{"uids":[1]}`, http.StatusTooManyRequests},
		{http.MethodGet, "/v1/lookup?uid=1&request_id=a", "", http.StatusTooManyRequests},
		{http.MethodGet, "/v1/current?uids=1", "", http.StatusTooManyRequests},
		{http.MethodPost, "/v1/current/batch", `{"uids":[1]}`, http.StatusTooManyRequests},
		{http.MethodPost, "/v1/raise/batch", `{"uids":[1],"at_least":[5]}`, http.StatusTooManyRequests},
		{http.MethodPost, "/v1/raise", `{"uid":1,"at_least":5}`, http.StatusTooManyRequests},
		{http.MethodPost, "/v1/snowflake/generate", "{}", http.StatusTooManyRequests},
		{http.MethodGet, "/v1/snowflake/decode?number=1", "", http.StatusTooManyRequests},
		{http.MethodPost, "/v1/snowflake/compose", `{"tick":1}`, http.StatusTooManyRequests},
		{http.MethodGet, "/v1/snowflake/layouts", "", http.StatusTooManyRequests},
		{http.MethodPost, "/v1/segment/take", `{"tag":"order"}`, http.StatusTooManyRequests},
		{http.MethodPost, "/api/snowflake/v1/gen/", `{"namespace":1}`, http.StatusTooManyRequests},
		{http.MethodGet, "/api/segment/get/order", "", http.StatusTooManyRequests},
		{http.MethodGet, "/api/snowflake/get/default", "", http.StatusTooManyRequests},
		{http.MethodGet, "/cache", "", http.StatusTooManyRequests},
		{http.MethodGet, "/db", "", http.StatusTooManyRequests},
		{http.MethodGet, "/decodeSnowflakeId?snowflakeId=1", "", http.StatusOK}, // computed here
		{http.MethodGet, "/livez", "", http.StatusOK},
		{http.MethodGet, "/readyz", "", http.StatusOK},
	} {
		if got := fetch(t, refused(t), row.method, "http://"+r.HTTPAddr()+row.path, row.body); got != row.want {
			t.Fatalf("%s: got %d, want %d", row.path, got, row.want)
		}
	}
}

func TestAFullRouterRefusesEveryRESPCommand(t *testing.T) {
	r := full(t)
	conn, err := net.Dial("tcp", r.RESPAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	replies := bufio.NewReader(conn)
	for _, row := range []struct{ command, want string }{
		{"INCR seq:1", "-TRYAGAIN OVERLOADED"},
		{"INCRBY seq:1 5", "-TRYAGAIN OVERLOADED"},
		{"GET seq:1", "-TRYAGAIN OVERLOADED"},
		{"MGET seq:1 seq:2", "-TRYAGAIN OVERLOADED"},
		{"INCR tag:order", "-TRYAGAIN OVERLOADED"},
		{"INCR snowflake:default", "-TRYAGAIN OVERLOADED"},
		{"PING", "+PONG"},
	} {
		if _, err := conn.Write([]byte(row.command + "\r\n")); err != nil {
			t.Fatal(err)
		}
		if got, err := replies.ReadString('\n'); err != nil || !strings.HasPrefix(got, row.want) {
			t.Fatalf("%s: got %q, %v, want %s", row.command, got, err, row.want)
		}
	}
}
