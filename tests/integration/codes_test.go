package integration

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Requests with several faults have one code at all servers: what stands in the request is checked before
// its space is looked for, and the space before what it allows.
func TestARequestWithTwoFaultsHasOneCodeAtEveryServer(t *testing.T) {
	c, _ := oneAlloc(t)
	const tooMany, tooHigh = seq.MaxCount + 1, uint64(seq.MaxSeq) + 1
	badID := []byte(strings.Repeat("x", 65))
	uid := &pb.NextRequest_Uid{Uid: 1}
	rows := map[string]struct {
		want string
		do   func(context.Context, pb.SequenceClient) error
	}{
		"a count of no key":              {"BAD_COUNT", nextOf(&pb.NextRequest{Count: tooMany})},
		"a count of no space":            {"BAD_COUNT", nextOf(&pb.NextRequest{Space: "none", Id: uid, Count: tooMany})},
		"no key of no space":             {"BAD_ARGUMENT", nextOf(&pb.NextRequest{Space: "none"})},
		"a request id of no space":       {"BAD_ARGUMENT", nextOf(&pb.NextRequest{Space: "none", Id: uid, RequestId: badID})},
		"a bad id where none is kept":    {"BAD_ARGUMENT", nextOf(&pb.NextRequest{Id: uid, RequestId: badID})},
		"an id where none is kept":       {"ID_NOT_KEPT", nextOf(&pb.NextRequest{Id: uid, RequestId: []byte("a")})},
		"lookup of a bad id of no space": {"BAD_ARGUMENT", lookupOf(&pb.LookupRequest{Space: "none", Id: &pb.LookupRequest_Uid{Uid: 1}, RequestId: badID})},
		"lookup of an id of no space":    {"UNKNOWN_SPACE", lookupOf(&pb.LookupRequest{Space: "none", Id: &pb.LookupRequest_Uid{Uid: 1}, RequestId: []byte("a")})},
		"raise of no key, too high":      {"BAD_ARGUMENT", raiseOf(&pb.RaiseRequest{AtLeast: tooHigh})},
		"raise of an empty key":          {"BAD_ARGUMENT", raiseOf(&pb.RaiseRequest{Id: &pb.RaiseRequest_Key{}, AtLeast: tooHigh})},
		"raise too high of no space":     {"OVERFLOW", raiseOf(&pb.RaiseRequest{Space: "none", Id: &pb.RaiseRequest_Uid{Uid: 1}, AtLeast: tooHigh})},
	}
	for at, seqs := range servers(t, c) {
		for what, row := range rows {
			if got := codeOf(rpc.FromStatus(row.do(t.Context(), seqs))); got != row.want {
				t.Errorf("%s, %s: got %s, want %s", at, what, got, row.want)
			}
		}
		spaceByTheKey(t, at, seqs)
	}
}

// spaceByTheKey asks for keys of a space that there is not, beside others.
func spaceByTheKey(t *testing.T, at string, seqs pb.SequenceClient) {
	t.Helper()
	good, none := &pb.Batch{Uids: []uint64{1}}, &pb.Batch{Space: "none", Uids: []uint64{1}, Keys: []string{"a"}}
	check := func(what string, err error, served func() bool, errs func() []*pb.KeyError) {
		t.Helper()
		if err != nil || !served() || len(errs()) != 2 || !errors.Is(rpc.FromKeyError(errs()[1]), seq.ErrUnknownSpace) {
			t.Errorf("%s, %s: got %v, want two keys with %v and the other one served", at, what, err, seq.ErrUnknownSpace)
		}
	}
	next, err := seqs.BatchNext(t.Context(), &pb.BatchNextRequest{Batches: []*pb.Batch{none, good}})
	check("next", err, func() bool { return next.Results[1].First[0] > 0 && len(next.Results[0].First) == 2 }, func() []*pb.KeyError { return next.Results[0].Errors })
	now, err := seqs.Current(t.Context(), &pb.CurrentRequest{Batches: []*pb.Batch{none, good}})
	check("current", err, func() bool { return now.Results[1].Values[0] > 0 && len(now.Results[0].Values) == 2 }, func() []*pb.KeyError { return now.Results[0].Errors })
	raised, err := seqs.BatchRaise(t.Context(), &pb.BatchRaiseRequest{Batches: []*pb.RaiseBatch{
		{Space: "none", Uids: []uint64{1}, Keys: []string{"a"}, AtLeast: []uint64{5, 5}}, {Uids: []uint64{1}, AtLeast: []uint64{5}}}})
	check("raise", err, func() bool { return raised.Results[1].Values[0] >= 5 && len(raised.Results[0].Values) == 2 }, func() []*pb.KeyError { return raised.Results[0].Errors })
}

// servers are the servers of gRPC, by what they are.
func servers(t *testing.T, c *cluster) map[string]pb.SequenceClient {
	out := map[string]pb.SequenceClient{}
	for what, addr := range map[string]string{"AllocSvr": c.addrs()[0], "router": c.router.Addr()} {
		conn, err := rpc.Dial(addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		out[what] = pb.NewSequenceClient(conn)
	}
	return out
}

func nextOf(r *pb.NextRequest) func(context.Context, pb.SequenceClient) error {
	return func(ctx context.Context, seqs pb.SequenceClient) error { _, err := seqs.Next(ctx, r); return err }
}

func lookupOf(r *pb.LookupRequest) func(context.Context, pb.SequenceClient) error {
	return func(ctx context.Context, seqs pb.SequenceClient) error { _, err := seqs.Lookup(ctx, r); return err }
}

func raiseOf(r *pb.RaiseRequest) func(context.Context, pb.SequenceClient) error {
	return func(ctx context.Context, seqs pb.SequenceClient) error { _, err := seqs.Raise(ctx, r); return err }
}

func TestABatchOfConflictsTellsWhatEachRequestHasGot(t *testing.T) {
	c, _ := oneAlloc(t)
	take := func(counts ...int) (code int, text string) {
		body := map[string]any{"space": "orders", "uids": []int{1, 2}, "counts": counts, "request_ids": []string{"a", "b"}}
		return webText(t, http.MethodPost, "http://"+c.router.HTTPAddr()+"/v1/batch", body)
	}
	if code, text := take(2, 3); code != http.StatusOK {
		t.Fatalf("got %d %s", code, text)
	}
	code, text := take(5, 5)
	if code != http.StatusConflict || !strings.Contains(text, `"index":0,"code":"ID_CONFLICT"`) || !strings.Contains(text, `"first":1,"count":2`) || !strings.Contains(text, `"first":1,"count":3`) {
		t.Errorf("got %d %s, want what each of both has got", code, text)
	}
}
