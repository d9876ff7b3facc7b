package router

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// posts are the paths that take a JSON object.
var posts = []string{"/v1/next", "/v1/batch", "/v1/current/batch", "/v1/raise", "/v1/raise/batch", "/v1/snowflake/generate", "/v1/snowflake/compose", "/v1/segment/take", "/api/snowflake/v1/gen"}

// FuzzHTTPBodies checks that each body on each path gets an answer that is one JSON object, and
// never a server error. The callers have left, so a valid body takes no number.
func FuzzHTTPBodies(f *testing.F) {
	for i, body := range []string{
		`{"uid":42,"count":3}`, `{"uids":[1,"2"],"keys":["a"],"counts":[1,2,3]}`, `{"key":"room:7","at_least":"9007199254740990"}`,
		`{"namespace":"default","time_ms":5,"worker":1}`, `{"uid":18446744073709551616}`, `{"uid":1e3}`, `{"uid":"-1"}`, `[]`, `{"uid":1}{"uid":2}`, "{\"key\":\"\xff\"}",
	} {
		f.Add(uint8(i), []byte(body))
	}
	front := idleFront(f)
	gone, leave := context.WithCancel(context.Background())
	leave()
	f.Fuzz(func(t *testing.T, path uint8, body []byte) {
		req := httptest.NewRequest(http.MethodPost, "http://localhost"+posts[int(path)%len(posts)], bytes.NewReader(body)).WithContext(gone)
		req.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		front.ServeHTTP(w, req)
		var answer map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatalf("%s %q: status %d, answer %q: %v", req.URL, body, w.Code, w.Body, err)
		}
		if w.Code == http.StatusInternalServerError {
			t.Fatalf("%s %q: status %d, answer %q", req.URL, body, w.Code, w.Body)
		}
	})
}

// FuzzMessages: what is read of a body is what protojson reads, where both read it; and
// what is written of a message is JSON.
func FuzzMessages(f *testing.F) {
	for i, body := range []string{
		`{"uid":42,"count":3}`, ` { "uids" : [ 1 , "2",3] ,"keys":["a\\\"]}","\u00e9"], "counts":[]}`, `{"key":"room:7\n","at_least":"9007199254740990","force":true}`,
		`{"namespace":"default","alias":1,"as_runs":false,"encoding":null}`, `{"unix_ms":-5,"worker_id":1}`, `{"tag":"","count":4294967296}`,
		`null`, `{"uids":[[1,{"a":"]"}],2]}`, `{"space":{"a":[1,2]}}`, `{"u\u0069d":1}`, `{"uid":1,"uid":2}`,
	} {
		f.Add(uint8(i), []byte(body))
	}
	var routes []route
	for _, to := range (&front{}).routes() {
		if to.in != nil {
			routes = append(routes, to)
		}
	}
	f.Fuzz(func(t *testing.T, at uint8, body []byte) {
		to := routes[int(at)%len(routes)]
		got, want := to.in.ProtoReflect().New(), to.in.ProtoReflect().New()
		req := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
		if readMessage(req, got, nil) != nil {
			return
		}
		if protojson.Unmarshal(body, want.Interface()) == nil && !proto.Equal(got.Interface(), want.Interface()) {
			t.Fatalf("%s %q: read as %v, by protojson as %v", to.path, body, got, want)
		}
		if text := appendMessage(nil, got); !json.Valid(text) {
			t.Fatalf("%s %q: written as %s", to.path, body, text)
		}
	})
}

// FuzzBatches: the batches of a call are keys with counts in their limits, or refused by
// name.
func FuzzBatches(f *testing.F) {
	for _, m := range []*pb.BatchNextRequest{
		{Batches: []*pb.Batch{{Uids: []uint64{1, 2}, Counts: []uint32{1, 5}}, {Space: "room", Keys: []string{"a"}}}},
		{Batches: []*pb.Batch{{Uids: []uint64{1}, Counts: []uint32{0}}}}, {},
	} {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, true)
	}
	f.Fuzz(func(t *testing.T, data []byte, counted bool) {
		var m pb.BatchNextRequest
		if proto.Unmarshal(data, &m) != nil {
			return
		}
		got, err := checkBatches(m.GetBatches(), counted)
		if err != nil {
			if rpc.CodeOf(err) == pb.ErrorCode_ERROR_CODE_UNSPECIFIED {
				t.Fatalf("error of no name: %v", err)
			}
			return
		}
		keys := 0
		for _, b := range got {
			keys += b.keys()
			for _, n := range b.counts {
				if n == 0 || n > seq.MaxCount {
					t.Fatalf("count %d was taken", n)
				}
			}
		}
		if keys == 0 || keys > seq.MaxBatch {
			t.Fatalf("%d keys were taken", keys)
		}
	})
}

// idleFront is the HTTP front over an SDK that has no cluster.
func idleFront(f testing.TB) http.Handler {
	f.Helper()
	sdk, err := client.New(f.Context(), client.Config{Addrs: []string{"127.0.0.1:1"}, Lazy: true})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = sdk.Close() })
	r := &Router{sdk: sdk, cfg: Config{Logger: slog.New(slog.DiscardHandler)}, budget: gate.NewBudget(budget), inWork: gate.NewAdmission(DefaultMaxInWork), leaving: make(chan struct{})}
	r.services = servicesOf(newAdmitted(sdk, r.inWork), r.leaving)
	r.maxBody.Store(DefaultHTTPMaxBody)
	return newFront(r)
}
