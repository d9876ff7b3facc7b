package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// front takes all parts of a request, in order, by the keys of its number.
type front struct {
	name string
	take func(front int, parts []part) []outcome
}

// codeOf is the code of an error.
func codeOf(err error) string { return strings.TrimPrefix(rpc.CodeOf(err).String(), "ERROR_CODE_") }

// each takes the parts by a call each.
func each(do func(front int, p part) outcome) func(int, []part) []outcome {
	return func(front int, parts []part) (out []outcome) {
		for _, p := range parts {
			out = append(out, do(front, p))
		}
		return out
	}
}

// byRun takes the parts by a call for each run.
func byRun(do func(front int, run []part) []outcome) func(int, []part) []outcome {
	return func(front int, parts []part) (out []outcome) {
		for _, run := range runs(parts) {
			out = append(out, do(front, run)...)
		}
		return out
	}
}

func fronts(t *testing.T, c *cluster, sdk *client.Client) []front {
	all := []front{
		{"SDK take", each(func(f int, p part) outcome { return sdkTake(sdk, f, p) })},
		{"SDK batch", byRun(func(f int, run []part) []outcome { return sdkBatch(sdk, f, run) })},
		{"SDK order", byRun(sdkOrder(sdk))},
		{"HTTP next", each(func(f int, p part) outcome { return webNext(t, c.router.HTTPAddr(), f, p) })},
		{"HTTP batch", byRun(func(f int, run []part) []outcome { return webBatch(t, c.router.HTTPAddr(), f, run) })},
		{"RESP pipeline", redis(t, c.router.RESPAddr(), false)},
		{"RESP transaction", redis(t, c.router.RESPAddr(), true)},
	}
	for what, seqs := range servers(t, c) {
		all = append(all,
			front{what + " next", each(func(f int, p part) outcome { return next(t.Context(), seqs, f, p) })},
			front{what + " batch", func(f int, parts []part) []outcome {
				reply, err := seqs.BatchNext(t.Context(), batches(f, parts))
				return results(t, parts, reply, err)
			}},
			front{what + " stream", streamed(t, seqs)})
	}
	return all
}

func next(ctx context.Context, seqs pb.SequenceClient, f int, p part) outcome {
	r := &pb.NextRequest{Space: p.space, Count: p.count, Id: &pb.NextRequest_Uid{Uid: p.uid(f)}}
	if p.named {
		r.Id = &pb.NextRequest_Key{Key: p.name(f)}
	}
	if p.id != "" {
		r.RequestId = []byte(p.id)
	}
	got, err := seqs.Next(ctx, r)
	if err != nil {
		return outcome{code: codeOf(rpc.FromStatus(err))}
	}
	return outcome{first: got.First, last: got.Last}
}

// batches is one request with a batch for each run.
func batches(f int, parts []part) *pb.BatchNextRequest {
	r := &pb.BatchNextRequest{}
	for _, run := range runs(parts) {
		b := &pb.Batch{Space: run[0].space}
		for _, p := range run {
			if p.named {
				b.Keys = append(b.Keys, p.name(f))
			} else {
				b.Uids = append(b.Uids, p.uid(f))
			}
			if b.Counts = append(b.Counts, p.count); p.id != "" {
				b.RequestIds = append(b.RequestIds, []byte(p.id))
			}
		}
		r.Batches = append(r.Batches, b)
	}
	return r
}

func results(t *testing.T, parts []part, reply *pb.BatchNextReply, err error) (out []outcome) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for i, run := range runs(parts) {
		out = append(out, resultOf(reply.Results[i], len(run))...)
	}
	return out
}

func resultOf(r *pb.BatchResult, n int) []outcome {
	out := make([]outcome, n)
	for k := range out {
		out[k] = outcome{first: r.First[k], last: r.First[k]}
		if len(r.Last) > 0 {
			out[k].last = r.Last[k]
		}
	}
	for _, e := range r.Errors {
		out[e.Index] = outcome{code: codeOf(rpc.FromKeyError(e))}
	}
	return out
}

// streamed sends all requests on one stream.
func streamed(t *testing.T, seqs pb.SequenceClient) func(int, []part) []outcome {
	stream, err := seqs.Stream(t.Context(), grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	return func(f int, parts []part) []outcome {
		err := stream.Send(&pb.StreamRequest{Id: 1, TimeoutMs: uint32(patience / time.Millisecond), Call: &pb.StreamRequest_Next{Next: batches(f, parts)}})
		if err != nil {
			t.Fatal(err)
		}
		reply, err := stream.Recv()
		if err == nil && reply.GetError() != nil {
			err = rpc.FromKeyError(reply.GetError())
		}
		return results(t, parts, reply.GetNext(), err)
	}
}

func outcomeOf(r client.Range) outcome {
	if r.Err != nil {
		return outcome{code: codeOf(r.Err)}
	}
	return outcome{first: uint64(r.First), last: uint64(r.Last)}
}

func sdkTake(sdk *client.Client, f int, p part) outcome {
	key := client.Key{Space: p.space, UID: seq.UID(p.uid(f))}
	if p.named {
		key = client.StringKey(p.space, p.name(f))
	}
	var r client.Range
	if p.id != "" {
		r, _ = sdk.TakeIdempotent(context.Background(), key, p.count, client.Request{ID: p.id}) // r.Err has the error
	} else {
		r, _ = sdk.Take(context.Background(), key, p.count)
	}
	return outcomeOf(r)
}

// fields are the parts of a run as the SDK takes them.
func fields(f int, run []part) (uids []seq.UID, names []string, counts []uint32, requests []client.Request) {
	for _, p := range run {
		if uids, names, counts = append(uids, seq.UID(p.uid(f))), append(names, p.name(f)), append(counts, p.count); p.id != "" {
			requests = append(requests, client.Request{ID: p.id})
		}
	}
	return uids, names, counts, requests
}

func sdkBatch(sdk *client.Client, f int, run []part) []outcome {
	uids, names, counts, requests := fields(f, run)
	var got []client.Range
	var err error
	if run[0].named {
		got, err = sdk.NextKeysIdempotent(context.Background(), run[0].space, names, counts, requests)
	} else {
		got, err = sdk.NextBatchIdempotent(context.Background(), run[0].space, uids, counts, requests)
	}
	out := make([]outcome, len(run))
	for i := range out {
		if err != nil {
			out[i] = outcome{code: codeOf(err)}
		} else {
			out[i] = outcomeOf(got[i])
		}
	}
	return out
}

// sdkOrder uses one order again and again.
func sdkOrder(sdk *client.Client) func(int, []part) []outcome {
	var o stream.Order
	return func(f int, run []part) (out []outcome) {
		if run[0].named { // an order has UIDs only
			return sdkBatch(sdk, f, run)
		}
		done := make(chan struct{})
		o.Space, o.Done = run[0].space, func() { close(done) }
		o.UIDs, _, o.Counts, o.Requests = fields(f, run)
		sdk.Caller().Begin(context.Background(), &o)
		<-done
		for _, r := range o.Ranges {
			out = append(out, outcomeOf(r))
		}
		return out
	}
}

// web is the answer to a POST.
func web(t *testing.T, addr, path, id string, body map[string]any) (answer struct {
	Code        string
	First, Last json.RawMessage
	Errors      []struct {
		Index int
		Code  string
	}
}) {
	t.Helper()
	_, text := webText(t, http.MethodPost, "http://"+addr+path, body, id)
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return answer
}

// webText returns the status and the text of an answer. id is an optional request id for the header.
func webText(t *testing.T, method, url string, body map[string]any, id ...string) (int, string) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for _, one := range id {
		if one != "" {
			r.Header.Set("Idempotency-Key", strconv.Quote(one))
		}
	}
	got, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if text, err = io.ReadAll(got.Body); err != nil {
		t.Fatal(err)
	}
	return got.StatusCode, string(text)
}

func webNext(t *testing.T, addr string, f int, p part) (out outcome) {
	body := map[string]any{"space": p.space, "uid": p.uid(f), "count": p.count}
	if p.named {
		delete(body, "uid")
		body["key"] = p.name(f)
	}
	got := web(t, addr, "/v1/next", p.id, body)
	if out.code = got.Code; out.code == "" {
		_, _ = json.Unmarshal(got.First, &out.first), json.Unmarshal(got.Last, &out.last)
	}
	return out
}

func webBatch(t *testing.T, addr string, f int, run []part) []outcome {
	uids, names, counts, requests := fields(f, run)
	body := map[string]any{"space": run[0].space, "counts": counts, "uids": uids}
	if run[0].named {
		delete(body, "uids")
		body["keys"] = names
	}
	if len(requests) > 0 {
		var ids []string
		for _, r := range requests {
			ids = append(ids, r.ID)
		}
		body["request_ids"] = ids
	}
	got, out := web(t, addr, "/v1/batch", "", body), make([]outcome, len(run))
	var first, last []uint64
	_, _ = json.Unmarshal(got.First, &first), json.Unmarshal(got.Last, &last)
	for i := range out {
		switch {
		case got.Code != "":
			out[i].code = got.Code
		case len(last) > 0:
			out[i] = outcome{first: first[i], last: last[i]}
		default:
			out[i] = outcome{first: first[i], last: first[i]}
		}
	}
	if got.Code == "ID_CONFLICT" && len(run) > 1 && len(got.Errors) != len(run) {
		t.Errorf("HTTP batch: %d of %d conflicts are told", len(got.Errors), len(run))
	}
	for _, e := range got.Errors {
		out[e.Index] = outcome{code: e.Code}
	}
	return out
}

// redis sends each request as one pipeline, or as a transaction, on one connection.
func redis(t *testing.T, addr string, transaction bool) func(int, []part) []outcome {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	in := bufio.NewReader(conn)
	line := func() string {
		text, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(text)
	}
	return func(f int, parts []part) []outcome {
		var ask strings.Builder
		var sent []int
		if transaction {
			ask.WriteString("MULTI\r\n")
		}
		for i, p := range parts {
			key := fmt.Sprintf("seq:%s/%d", p.space, p.uid(f))
			switch {
			case p.named:
				continue // keys of Redis are UIDs here
			case p.space == "" && i%2 == 0:
				key = fmt.Sprintf("seq:%d", p.uid(f))
			}
			if sent = append(sent, i); p.id != "" {
				fmt.Fprintf(&ask, "*6\r\n$8\r\nSEQ.NEXT\r\n$%d\r\n%s\r\n$5\r\nCOUNT\r\n$%d\r\n%d\r\n$2\r\nID\r\n$%d\r\n%s\r\n", len(key), key, len(fmt.Sprint(p.count)), p.count, len(p.id), p.id)
			} else {
				fmt.Fprintf(&ask, "INCRBY %s %d\r\n", key, p.count)
			}
		}
		if transaction {
			ask.WriteString("EXEC\r\n")
		}
		if _, err := io.WriteString(conn, ask.String()); err != nil {
			t.Fatal(err)
		}
		if transaction {
			for range len(sent) + 2 { // OK, QUEUED, and the head of the answer
				line()
			}
		}
		out := make([]outcome, len(parts))
		for i := range out {
			out[i] = skipped
		}
		for _, i := range sent {
			switch text := line(); text[0] {
			case '-':
				out[i] = outcome{code: strings.TrimSuffix(strings.Fields(text)[1], ":")}
			case ':':
				out[i].last, _ = strconv.ParseUint(text[1:], 10, 64)
				out[i] = outcome{first: out[i].last - uint64(parts[i].count) + 1, last: out[i].last}
			default:
				first, last := line(), line()
				line() // whether it had them before
				out[i] = outcome{}
				out[i].first, _ = strconv.ParseUint(first[1:], 10, 64)
				out[i].last, _ = strconv.ParseUint(last[1:], 10, 64)
			}
		}
		return out
	}
}
