package ids

import (
	"context"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// askSnowflake calls do once, with the service of a router or AllocSvr.
func askSnowflake[R any](ctx context.Context, o *ctl.Options, do func(context.Context, pb.SnowflakeClient) (R, error)) (R, error) {
	return ask(o, o.Addr, "global IDs", func(conn *grpc.ClientConn) (R, error) { return do(ctx, pb.NewSnowflakeClient(conn)) })
}

// askSegment is askSnowflake for the tags, at an address of its own.
func askSegment[R any](ctx context.Context, o *ctl.Options, addr string, do func(context.Context, pb.SegmentClient) (R, error)) (R, error) {
	return ask(o, addr, "segments", func(conn *grpc.ClientConn) (R, error) { return do(ctx, pb.NewSegmentClient(conn)) })
}

func ask[R any](o *ctl.Options, addr, service string, do func(*grpc.ClientConn) (R, error)) (reply R, err error) {
	conn, err := rpc.Dial(addr, o.Dial()...)
	if err != nil {
		return reply, err
	}
	defer conn.Close()
	reply, err = do(conn)
	return reply, served(addr, service, err)
}
