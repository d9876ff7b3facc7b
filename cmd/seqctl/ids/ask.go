package ids

import (
	"context"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// askSnowflake calls do once, with the service of a router or AllocSvr.
func askSnowflake[R any](ctx context.Context, addr string, do func(context.Context, pb.SnowflakeClient) (R, error)) (R, error) {
	return ask(addr, "global IDs", func(conn *grpc.ClientConn) (R, error) { return do(ctx, pb.NewSnowflakeClient(conn)) })
}

// askSegment is askSnowflake for the tags.
func askSegment[R any](ctx context.Context, addr string, do func(context.Context, pb.SegmentClient) (R, error)) (R, error) {
	return ask(addr, "segments", func(conn *grpc.ClientConn) (R, error) { return do(ctx, pb.NewSegmentClient(conn)) })
}

func ask[R any](addr, service string, do func(*grpc.ClientConn) (R, error)) (reply R, err error) {
	conn, err := rpc.Dial(addr)
	if err != nil {
		return reply, err
	}
	defer conn.Close()
	reply, err = do(conn)
	return reply, served(addr, service, err)
}
