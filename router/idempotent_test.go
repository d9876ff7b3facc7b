package router_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

// orders is a router before an exact space, and an ordinary one beside it.
func orders(t *testing.T) (*clienttest.Cluster, *router.Router) {
	cluster := clienttest.Start(t, 2, seq.Space{Name: "user", Sections: 8}, seq.Space{Name: "orders", Sections: 8, Mode: seq.Exact})
	return cluster, start(t, router.Config{Allocs: cluster.Addrs(), AttemptTimeout: 50 * time.Millisecond})
}

// nextBy is a /v1/next with headers of its own, as "status body".
func nextBy(t *testing.T, url, body string, idempotencyKeys ...string) string {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header["Idempotency-Key"] = idempotencyKeys
	got, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(got.StatusCode, " ", strings.TrimSpace(string(text)))
}

func TestARequestIDOverHTTPGetsItsNumbersAgain(t *testing.T) {
	_, r := orders(t)
	base := "http://" + r.HTTPAddr()
	old := time.Now().Add(-2 * seq.DefaultWindow).UnixMilli()
	for _, row := range []struct {
		name, path, body string
		keys             []string
		want             string // of the status and body, from their beginning on
	}{
		{"in the body", "next", `{"space":"orders","uid":1,"count":3,"request_id":"a"}`, nil, `200 {"first":1,"last":3,"unordered":false,"replayed":false}`},
		{"again, in the header", "next", `{"space":"orders","uid":1,"count":3}`, []string{`"a"`}, `200 {"first":1,"last":3,"unordered":false,"replayed":true}`},
		{"again, in the header without quotes", "next", `{"space":"orders","uid":1,"count":3}`, []string{`a`}, `200 {"first":1,"last":3,"unordered":false,"replayed":true}`},
		{"in both, alike", "next", `{"space":"orders","uid":1,"count":3,"request_id":"a"}`, []string{`"a"`}, `200 {"first":1,"last":3,"unordered":false,"replayed":true}`},
		{"in both, and they differ", "next", `{"space":"orders","uid":1,"count":3,"request_id":"a"}`, []string{`"b"`}, `400 {"code":"BAD_ARGUMENT","message":"bad argument: request_id and Idempotency-Key are both set and differ`},
		{"an escaped one", "next", `{"space":"orders","uid":2}`, []string{`"q\"\\"`}, `200 {"first":1,"last":1,"unordered":false,"replayed":false}`},
		{"the same in the body", "next", `{"space":"orders","uid":2,"request_id":"q\"\\"}`, nil, `200 {"first":1,"last":1,"unordered":false,"replayed":true}`},
		{"of another key", "next", `{"space":"orders","uid":3,"request_id":"a"}`, nil, `200 {"first":1,"last":1,"unordered":false,"replayed":false}`},
		{"with another count", "next", `{"space":"orders","uid":1,"count":4,"request_id":"a"}`, nil, `409 {"code":"ID_CONFLICT","message":"next orders/1: request id was used for another count: it has got 3 from 1`},
		{"long ago", "next", fmt.Sprintf(`{"space":"orders","uid":1,"request_id":"z","first_sent_ms":%d}`, old), nil, `410 {"code":"ID_EXPIRED",`},
		{"an empty one", "next", `{"space":"orders","uid":1,"request_id":""}`, nil, `400 {"code":"BAD_ARGUMENT","message":"next orders/1: bad argument: request id of 0 bytes, expected 1 to 64"}`},
		{"an empty header", "next", `{"space":"orders","uid":1}`, []string{""}, `400 {"code":"BAD_ARGUMENT",`},
		{"a long one", "next", `{"space":"orders","uid":1}`, []string{strings.Repeat("x", 65)}, `400 {"code":"BAD_ARGUMENT","message":"next orders/1: bad argument: request id of 65 bytes`},
		{"two headers", "next", `{"space":"orders","uid":1}`, []string{"a", "a"}, `400 {"code":"BAD_ARGUMENT","message":"bad argument: Idempotency-Key is set more than once"}`},
		{"an open quote", "next", `{"space":"orders","uid":1}`, []string{`"a`}, `400 {"code":"BAD_ARGUMENT","message":"bad argument: Idempotency-Key: expected a quote at the end"}`},
		{"more behind the quote", "next", `{"space":"orders","uid":1}`, []string{`"a"b"`}, `400 {"code":"BAD_ARGUMENT",`},
		{"in an ordinary space", "next", `{"uid":1}`, []string{"a"}, `400 {"code":"ID_NOT_KEPT","message":"next user/1: request ids are kept by spaces of mode=exact only`},
		{"a number", "next", `{"space":"orders","uid":1,"request_id":7}`, nil, `400 {"code":"BAD_ARGUMENT","message":"bad argument: field request_id: \"7\", expected a string"}`},
		{"nothing was taken by what was refused", "next", `{"space":"orders","uid":1}`, nil, `200 {"first":4,"last":4,"unordered":false,"replayed":false}`},

		{"a batch", "batch", `{"space":"orders","uids":[1,9],"keys":["k"],"counts":[3,1,2],"request_ids":["a","b","c"]}`, nil, `200 {"first":[1,1,1],"last":[3,1,2],"errors":[],"unordered":false,"replayed":[true,false,false]}`},
		{"a batch again", "batch", `{"space":"orders","uids":[9],"keys":["k"],"counts":[1,3],"request_ids":["b","c"]}`, nil, `200 {"first":[1,0],"last":[1,0],"errors":[{"index":1,"code":"ID_CONFLICT","message":`},
		{"a batch with a header", "batch", `{"space":"orders","uids":[9]}`, []string{"a"}, `400 {"code":"BAD_ARGUMENT","message":"bad argument: Idempotency-Key stands for one key, expected request_ids in the body"}`},
		{"a read with a header", "current/batch", `{"space":"orders","uids":[9]}`, []string{"a"}, `200 {"values":[1],`},
		{"ids that do not match", "batch", `{"space":"orders","uids":[9,10],"request_ids":["a"]}`, nil, `400 {"code":"BAD_BATCH",`},
	} {
		if got := nextBy(t, base+"/v1/"+row.path, row.body, row.keys...); !strings.HasPrefix(got, row.want) {
			t.Errorf("%s: got\n%s, want\n%s", row.name, got, row.want)
		}
	}
	_, _, conflict := do(t, "POST", base+"/v1/next", "application/json", `{"space":"orders","uid":1,"count":4,"request_id":"a"}`)
	if conflict["first"] != 1.0 || conflict["count"] != 3.0 {
		t.Errorf("a conflict says %v, want first 1 and count 3", conflict)
	}
	for query, want := range map[string]map[string]any{
		"uid=1&request_id=a": {"found": true, "first": 1.0, "last": 3.0},
		"key=k&request_id=c": {"found": true, "first": 1.0, "last": 2.0},
		"uid=1&request_id=b": {"found": false, "first": 0.0, "last": 0.0},
	} {
		if _, _, got := do(t, "GET", base+"/v1/lookup?space=orders&"+query, "", ""); cmp.Diff(want, got) != "" {
			t.Errorf("lookup of %s: got %v, want %v", query, got, want)
		}
	}
	for query, want := range map[string]string{"uid=1&request_id=a": "ID_NOT_KEPT", "space=orders&uid=1": "BAD_ARGUMENT", "space=orders&request_id=a": "BAD_ARGUMENT"} {
		if code, _, got := do(t, "GET", base+"/v1/lookup?"+query, "", ""); code != 400 || got["code"] != want {
			t.Errorf("lookup of %s: got %d %v, want %s", query, code, got, want)
		}
	}
}

// A router repeats calls by itself: those that have no id must not take twice either.
func TestARouterPassesRequestIDsOnAndTakesNothingTwiceWithoutThem(t *testing.T) {
	cluster, r := orders(t)
	conn, err := rpc.Dial(r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	seqs, uid := pb.NewSequenceClient(conn), &pb.NextRequest_Uid{Uid: 1}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	lose := func() {
		for _, n := range cluster.Nodes {
			n.Lose(1)
		}
	}
	lose()
	got, err := seqs.Next(ctx, &pb.NextRequest{Space: "orders", Id: uid, Count: 2})
	if err != nil || got.First != 1 || !got.Replayed {
		t.Fatalf("without an id: got %v, %v, want 1, of the lost attempt", got, err)
	}
	id := []byte{0, 0xff, '"'}
	got, err = seqs.Next(ctx, &pb.NextRequest{Space: "orders", Id: uid, Count: 2, RequestId: id, FirstSentMs: time.Now().UnixMilli()})
	if err != nil || got.First != 3 || got.Replayed {
		t.Fatalf("with an id: got %v, %v", got, err)
	}
	found, err := seqs.Lookup(ctx, &pb.LookupRequest{Space: "orders", Id: &pb.LookupRequest_Uid{Uid: 1}, RequestId: id})
	if err != nil || !found.Found || found.First != 3 || found.Last != 4 {
		t.Errorf("lookup: got %v, %v", found, err)
	}
	again, err := seqs.BatchNext(ctx, &pb.BatchNextRequest{Batches: []*pb.Batch{{Space: "orders", Uids: []uint64{1, 2}, Counts: []uint32{2, 1}, RequestIds: [][]byte{id, id}}}})
	if err != nil || len(again.Results) != 1 || again.Results[0].First[0] != 3 || !again.Results[0].Replayed[0] || again.Results[0].Replayed[1] {
		t.Errorf("in a batch: got %v, %v", again, err)
	}
	_, err = seqs.Next(ctx, &pb.NextRequest{Space: "orders", Id: uid, Count: 1, RequestId: id})
	var had *seq.IDConflict
	if !errors.As(rpc.FromStatus(err), &had) || had.First != 3 || had.Count != 2 {
		t.Errorf("a conflict: got %v, %+v", err, had)
	}
	stream, err := seqs.Stream(ctx)
	if err == nil {
		err = stream.Send(&pb.StreamRequest{Id: 7, Call: &pb.StreamRequest_Next{Next: &pb.BatchNextRequest{Batches: []*pb.Batch{{Space: "orders", Uids: []uint64{1}, Counts: []uint32{2}, RequestIds: [][]byte{id}}}}}})
	}
	if err != nil {
		t.Fatal(err)
	}
	reply, err := stream.Recv()
	if err != nil || reply.GetNext().GetResults()[0].GetFirst()[0] != 3 {
		t.Errorf("by a stream: got %v, %v", reply, err)
	}
}
