package router

import (
	"context"

	"github.com/seqsvr/seqsvr/internal/base/version"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// statusServer tells operators what a router knows of itself.
type statusServer struct {
	pb.UnimplementedRouterServer
	r *Router
}

// Status implements pb.RouterServer.
func (s statusServer) Status(context.Context, *pb.RouterStatusRequest) (*pb.RouterStatusReply, error) {
	return &pb.RouterStatusReply{Router: s.r.cfg.Name, Version: version.Get().Version, Protocol: version.Protocol,
		Refused: s.r.cfg.Refused.RecentToProto(), Calls: s.r.seen().ToProto()}, nil
}
