package router

import (
	"context"
	"net/http"

	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// method is one of the gRPC front's, for the HTTP front.
type method[In, Out any] func(ctx context.Context, in In) (Out, error)

// methods are all that the HTTP front reaches, each behind the guard that the gRPC front has
// before it.
type methods struct {
	next       method[*pb.NextRequest, *pb.NextReply]
	batchNext  method[*pb.BatchNextRequest, *pb.BatchNextReply]
	lookup     method[*pb.LookupRequest, *pb.LookupReply]
	currents   method[*pb.CurrentRequest, *pb.CurrentReply]
	open       method[*pb.OpenRequest, *pb.OpenReply]
	done       method[*pb.DoneRequest, *pb.DoneReply]
	marks      method[*pb.MarkRequest, *pb.MarkReply]
	raise      method[*pb.RaiseRequest, *pb.RaiseReply]
	batchRaise method[*pb.BatchRaiseRequest, *pb.BatchRaiseReply]
	generate   method[*pb.SnowflakeGenerateRequest, *pb.SnowflakeGenerateReply]
	decode     method[*pb.SnowflakeDecodeRequest, *pb.SnowflakeDecoded]
	compose    method[*pb.SnowflakeComposeRequest, *pb.SnowflakeDecoded]
	layouts    method[*pb.SnowflakeLayoutsRequest, *pb.SnowflakeLayoutsReply]
	take       method[*pb.SegmentTakeRequest, *pb.SegmentTakeReply]
	numbers    method[*pb.NumbersNextRequest, *pb.NumbersNextReply]
	number     method[*pb.NumberShowRequest, *pb.NumberShowReply]
	list       method[*pb.SegmentListRequest, *pb.SegmentListReply]
	status     method[*pb.SegmentStatusRequest, *pb.SegmentStatusReply]
}

func methodsOf(s services, guard *auth.Guard, changes *rpc.Changes) methods {
	return methods{
		next:       guarded(guard, pb.Sequence_Next_FullMethodName, s.seqs.Next),
		batchNext:  guarded(guard, pb.Sequence_BatchNext_FullMethodName, s.seqs.BatchNext),
		lookup:     guarded(guard, pb.Sequence_Lookup_FullMethodName, s.seqs.Lookup),
		currents:   guarded(guard, pb.Sequence_Current_FullMethodName, s.seqs.Current),
		open:       guarded(guard, pb.Sequence_Open_FullMethodName, s.seqs.Open),
		done:       guarded(guard, pb.Sequence_Done_FullMethodName, s.seqs.Done),
		marks:      guarded(guard, pb.Sequence_Mark_FullMethodName, s.seqs.Mark),
		raise:      watched(changes, pb.Sequence_Raise_FullMethodName, guarded(guard, pb.Sequence_Raise_FullMethodName, s.seqs.Raise)),
		batchRaise: guarded(guard, pb.Sequence_BatchRaise_FullMethodName, s.seqs.BatchRaise),
		generate:   guarded(guard, pb.Snowflake_Generate_FullMethodName, s.ids.Generate),
		decode:     guarded(guard, pb.Snowflake_Decode_FullMethodName, s.ids.Decode),
		compose:    guarded(guard, pb.Snowflake_Compose_FullMethodName, s.ids.Compose),
		layouts:    guarded(guard, pb.Snowflake_Layouts_FullMethodName, s.ids.Layouts),
		take:       guarded(guard, pb.Segment_Take_FullMethodName, s.segs.Take),
		numbers:    guarded(guard, pb.Segment_NextNumbers_FullMethodName, s.segs.NextNumbers),
		number:     guarded(guard, pb.Segment_ShowNumber_FullMethodName, s.segs.ShowNumber),
		list:       guarded(guard, pb.Segment_List_FullMethodName, s.segs.List),
		status:     guarded(guard, pb.Segment_Status_FullMethodName, s.segs.Status),
	}
}

// mayWatch returns why the caller of an HTTP request may not watch keys, and charges its quota.
func (f *front) mayWatch(ctx context.Context, r *pb.WatchRequest) error {
	return f.guard.Check(whoIn(ctx), pb.Sequence_Watch_FullMethodName, r)
}

func guarded[In, Out proto.Message](guard *auth.Guard, name string, do method[In, Out]) method[In, Out] {
	return func(ctx context.Context, in In) (Out, error) {
		if err := guard.Check(whoIn(ctx), name, in); err != nil {
			var none Out
			return none, err
		}
		return do(ctx, in)
	}
}

// watched has changes written down, those that the guard refuses as well.
func watched[In, Out proto.Message](changes *rpc.Changes, name string, do method[In, Out]) method[In, Out] {
	return func(ctx context.Context, in In) (Out, error) {
		from, _ := ctx.Value(peerKey{}).(string)
		ctx, end := changes.Watch(ctx, whoIn(ctx), from, name, in)
		out, err := do(ctx, in)
		end(&err)
		return out, err
	}
}

// whoOf is who makes a request.
func (f *front) whoOf(r *http.Request) (w auth.Credentials) {
	if f.guard == nil {
		return w
	}
	w.Evidence = f.shown(r.TLS)
	w.Token, w.Err = auth.Bearer(r.Header.Values(rpc.AuthHeader))
	return w
}

type whoKey struct{}

type peerKey struct{}

// with is ctx for a request of that caller, from that address.
func with(ctx context.Context, w auth.Credentials, from string) context.Context {
	return context.WithValue(context.WithValue(ctx, whoKey{}, w), peerKey{}, from)
}

// callerOf is the caller whose share of the router's work a request takes: the principal, else the
// connection.
func callerOf(r *http.Request, w auth.Credentials) any {
	if who := rpc.CallerOf(w); who != nil {
		return who
	}
	return r.RemoteAddr
}

// whoIn is nobody where with was not called.
func whoIn(ctx context.Context) auth.Credentials {
	w, _ := ctx.Value(whoKey{}).(auth.Credentials)
	return w
}
