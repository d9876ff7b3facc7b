package router

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// v1 are the routes that reach the methods of the gRPC front, with the same messages.
func (f *front) v1() []route {
	one := uint32(1) // a count that is not given
	return []route{
		call(http.MethodPost, "/v1/next", f.next, &pb.NextRequest{Count: one}),
		call(http.MethodPost, batchPath, f.batch, &pb.Batch{}),
		call(http.MethodGet, "/v1/lookup", f.lookup, &pb.LookupRequest{}),
		call(http.MethodGet, "/v1/current", f.current, &pb.Batch{}),
		call(http.MethodPost, "/v1/current/batch", f.current, &pb.Batch{}),
		call(http.MethodPost, "/v1/open", f.open, &pb.OpenRequest{Count: one}),
		call(http.MethodPost, "/v1/done", f.done, &pb.DoneRequest{}, "first"),
		call(http.MethodGet, "/v1/mark", f.mark, &pb.Batch{}),
		call(http.MethodPost, "/v1/raise", f.raise, &pb.RaiseRequest{}, "at_least"),
		call(http.MethodPost, "/v1/raise/batch", f.raiseBatch, &pb.RaiseBatch{}, "at_least"),
		call(http.MethodPost, "/v1/snowflake/generate", f.generate, &pb.SnowflakeGenerateRequest{Count: one}),
		call(http.MethodGet, "/v1/snowflake/decode", f.decode, &pb.SnowflakeDecodeRequest{}, "number", "text"),
		call(http.MethodPost, "/v1/snowflake/compose", f.compose, &pb.SnowflakeComposeRequest{}, "unix_ms", "tick"),
		call(http.MethodGet, "/v1/snowflake/layouts", f.layouts, &pb.SnowflakeLayoutsRequest{}),
		call(http.MethodPost, "/v1/segment/take", f.take, &pb.SegmentTakeRequest{Count: one}),
		call(http.MethodPost, "/v1/number/next", f.numbers, &pb.NumbersNextRequest{Count: one}),
		call(http.MethodGet, "/v1/number/show", f.number, &pb.NumberShowRequest{}),
	}
}

// call returns the route of a method. Fields that a request leaves out have their value in `from`.
// If there are needs, the request must set one of them. A POST has the message in its body, and a
// GET in its query.
func call[In, Out proto.Message](method, path string, do func(context.Context, In) (Out, error), from In, needs ...string) route {
	read := readMessage
	if method == http.MethodGet {
		read = readQuery
	}
	var none Out
	return route{
		method: method, path: path, fault: plainFault, in: from, out: none, needs: needs,
		do: func(r *http.Request) (any, error) {
			in := proto.Clone(from).(In)
			if err := read(r, in.ProtoReflect(), needs); err != nil {
				return nil, err
			}
			if err := readIdempotencyKey(r, in); err != nil {
				return nil, err
			}
			return do(r.Context(), in)
		},
	}
}

// batch is BatchNext of one batch.
func (f *front) batch(ctx context.Context, b *pb.Batch) (*pb.BatchResult, error) {
	got, err := f.batchNext(ctx, &pb.BatchNextRequest{Batches: []*pb.Batch{b}})
	if err != nil {
		return nil, err
	}
	return got.Results[0], common(b, got.Results[0].Errors)
}

// current is Current of one batch.
func (f *front) current(ctx context.Context, b *pb.Batch) (*pb.CurrentResult, error) {
	got, err := f.currents(ctx, &pb.CurrentRequest{Batches: []*pb.Batch{b}})
	if err != nil {
		return nil, err
	}
	return got.Results[0], common(b, got.Results[0].Errors)
}

// mark is Mark of one batch.
func (f *front) mark(ctx context.Context, b *pb.Batch) (*pb.MarkResult, error) {
	got, err := f.marks(ctx, &pb.MarkRequest{Batches: []*pb.Batch{b}})
	if err != nil {
		return nil, err
	}
	return got.Results[0], common(b, got.Results[0].Errors)
}

// raiseBatch is BatchRaise of one batch.
func (f *front) raiseBatch(ctx context.Context, b *pb.RaiseBatch) (*pb.RaiseResult, error) {
	got, err := f.batchRaise(ctx, &pb.BatchRaiseRequest{Batches: []*pb.RaiseBatch{b}})
	if err != nil {
		return nil, err
	}
	return got.Results[0], common(b, got.Results[0].Errors)
}

// common is the error of a batch all of whose keys failed for one reason, so that the
// status says so too: an unknown space, or no quorum.
func common(b interface {
	GetUids() []uint64
	GetKeys() []string
}, errs []*pb.KeyError) error {
	if len(errs) < len(b.GetUids())+len(b.GetKeys()) {
		return nil
	}
	for _, e := range errs {
		if e.GetCode() != errs[0].GetCode() {
			return nil
		}
	}
	if len(errs) > 1 && errs[0].GetCode() == pb.ErrorCode_ERROR_CODE_ID_CONFLICT {
		return &conflicts{rpc.FromKeyError(errs[0]), errs}
	}
	return rpc.FromKeyError(errs[0])
}

// conflicts is the error of a batch all of whose request ids have got another count: each has numbers of
// its own to tell.
type conflicts struct {
	error

	all []*pb.KeyError
}

// Unwrap gives the first one.
func (c *conflicts) Unwrap() error { return c.error }

// readQuery reads the query of a request into m, as readMessage does its body.
func readQuery(r *http.Request, m protoreflect.Message, needs []string) error {
	fields := m.Descriptor().Fields()
	known := map[string]bool{}
	for i := range fields.Len() {
		if fd := fields.Get(i); !internal(fd) {
			known[string(fd.Name())] = fd.IsList()
		}
	}
	given, err := query(r, known)
	if err != nil {
		return err
	}
	if err := lacking(needs, func(name string) bool { return given[name] != nil }); err != nil {
		return err
	}
	for name, values := range given {
		for _, text := range values {
			if err := addValue(m, fields.ByName(protoreflect.Name(name)), []byte(text), true); err != nil {
				return err
			}
		}
	}
	return nil
}

// lacking is seq.ErrBadArgument if the request has none of needs.
func lacking(needs []string, has func(name string) bool) error {
	if len(needs) == 0 || slices.ContainsFunc(needs, has) {
		return nil
	}
	return badArgument(strings.Join(needs, " or ") + " is missing")
}
