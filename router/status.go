package router

import (
	"context"

	"github.com/seqsvr/seqsvr/internal/base/version"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// statusServer tells operators what a router knows of itself.
type statusServer struct {
	pb.UnimplementedRouterServer
	cfg *Config
}

// Status implements pb.RouterServer.
func (s statusServer) Status(context.Context, *pb.RouterStatusRequest) (*pb.RouterStatusReply, error) {
	return &pb.RouterStatusReply{Router: s.cfg.Name, Version: version.Get().Version, Protocol: version.Protocol, Refused: s.cfg.Refused.RecentToProto()}, nil
}
