package ids

import (
	"context"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// askSnowflake calls a method once, of a router or AllocSvr.
func askSnowflake[Q, R any](ctx context.Context, o *ctl.Options, method func(pb.SnowflakeClient, context.Context, *Q, ...grpc.CallOption) (*R, error), req *Q) (*R, error) {
	reply, err := ctl.Call(ctx, o, o.Addr, pb.NewSnowflakeClient, method, req)
	return reply, served(o.Addr, "global IDs", err)
}

// askSegment is askSnowflake for the tags, at an address of its own.
func askSegment[Q, R any](ctx context.Context, o *ctl.Options, addr string, method func(pb.SegmentClient, context.Context, *Q, ...grpc.CallOption) (*R, error), req *Q) (*R, error) {
	reply, err := ctl.Call(ctx, o, addr, pb.NewSegmentClient, method, req)
	return reply, served(addr, "segments", err)
}
