package router

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// requestOf returns the identity by which the client repeats a take, exactly as the caller sent it.
// Without an id, the client's own retries repeat the take.
func requestOf(id []byte, sentMs int64) client.Request {
	r := client.Request{ID: string(id)}
	if sentMs != 0 {
		r.Sent = time.UnixMilli(sentMs)
	}
	return r
}

// requestsOf returns the identities in a valid batch. It returns nil if the keys have none.
func requestsOf(b seq.Batch) []client.Request {
	if len(b.IDs) == 0 {
		return nil
	}
	out := make([]client.Request, len(b.IDs))
	for i, id := range b.IDs {
		sent := int64(0)
		if len(b.Sent) > 0 {
			sent = b.Sent[i]
		}
		out[i] = requestOf(id, sent)
	}
	return out
}

// Lookup implements pb.SequenceServer.
func (s *server) Lookup(ctx context.Context, r *pb.LookupRequest) (*pb.LookupReply, error) {
	key, place, err := s.admit(ctx, r.GetId(), r, func() error { return seq.CheckRequestID("request_id", r.GetRequestId()) })
	if err != nil {
		return nil, err
	}
	defer place.Leave()
	got, found, err := s.sdk.Lookup(rpc.Relay(ctx), key, string(r.GetRequestId()))
	if err != nil {
		return nil, err
	}
	out := &pb.LookupReply{Found: found, First: uint64(got.First), Last: uint64(got.Last)}
	out.RouteVersion, out.Routes = s.table(r.GetRouteVersion())
	return out, nil
}

// idempotencyKey is the header of draft-ietf-httpapi-idempotency-key-header.
const idempotencyKey = "Idempotency-Key"

// batchPath takes numbers of many keys.
const batchPath = "/v1/batch"

// readIdempotencyKey takes the request id of a /v1/next or /v1/open from the header. It is refused where
// a take of many keys would be none the safer for it, and is of no meaning elsewhere.
func readIdempotencyKey(r *http.Request, in proto.Message) error {
	given := r.Header.Values(idempotencyKey)
	if len(given) == 0 {
		return nil
	}
	var body *[]byte
	switch in := in.(type) {
	case *pb.NextRequest:
		body = &in.RequestId
	case *pb.OpenRequest:
		body = &in.RequestId
	default:
		if r.URL.Path == batchPath {
			return badArgument(idempotencyKey + " stands for one key, expected request_ids in the body")
		}
		return nil
	}
	if len(given) > 1 {
		return badArgument(idempotencyKey + " is set more than once")
	}
	id, err := structuredString(given[0])
	if err != nil {
		return err
	}
	if *body != nil && !bytes.Equal(*body, id) {
		return badArgument("request_id and " + idempotencyKey + " are both set and differ, expected one")
	}
	*body = id
	return nil
}

// structuredString reads a string of RFC 8941, "like \"this\"", or without quotes, as many send it.
func structuredString(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, `"`) {
		return []byte(text), nil
	}
	out := make([]byte, 0, len(text))
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"' && i == len(text)-1:
			return out, nil
		case c == '"', c < ' ', c > '~':
			return nil, badArgument(idempotencyKey + ": expected one string of visible ASCII in quotes")
		case c == '\\':
			if i++; i == len(text) || text[i] != '"' && text[i] != '\\' {
				return nil, badArgument(idempotencyKey + `: expected \" or \\ behind a backslash`)
			}
			fallthrough
		default:
			out = append(out, text[i])
		}
	}
	return nil, badArgument(idempotencyKey + ": expected a quote at the end")
}
