package storesvr

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/internal/wire/storewire"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Adopt implements the service.
func (s *server) Adopt(ctx context.Context, req *pb.AdoptRequest) (*pb.DescribeReply, error) {
	return s.described(ctx, s.replica.change.adopt(ctx, req.GetClusterId(), seq.Era(req.GetEra()), storewire.ListFromProto(req.GetList())))
}

// Extend implements the service.
func (s *server) Extend(ctx context.Context, req *pb.ExtendRequest) (*pb.DescribeReply, error) {
	m, err := rpc.MappingFromProto(req.GetMapping())
	if err != nil {
		return nil, err
	}
	return s.described(ctx, s.replica.change.extend(ctx, req.GetClusterId(), seq.Era(req.GetEra()), m))
}

// Fill implements the service.
func (s *server) Fill(ctx context.Context, req *pb.FillRequest) (*pb.FillReply, error) {
	changed, err := s.replica.change.fill(ctx, fillRequest{
		ref: storewire.RefFromProto(req.GetRef()), session: seq.Session(req.GetSession()), secret: storewire.SecretFromProto(req.GetSecret()),
		records: storewire.RecordsFromProto(req.GetRecords()), complete: req.GetComplete(),
		bound: time.Duration(min(req.GetLeaseBoundUs(), uint64(maxMaxLease/time.Microsecond))) * time.Microsecond,
	})
	if err != nil {
		return nil, err
	}
	return &pb.FillReply{StoreUuid: s.replica.core.identity.UUID, Changed: uint64(changed)}, nil
}

// WindowsOver implements the service.
func (s *server) WindowsOver(ctx context.Context, req *pb.WindowsOverRequest) (*pb.DescribeReply, error) {
	return s.described(ctx, s.replica.windowsOver(ctx, req.GetClusterId(), seq.Era(req.GetEra()), req.GetReason()))
}

// Require implements the service.
func (s *server) Require(ctx context.Context, req *pb.RequireRequest) (*pb.DescribeReply, error) {
	return s.described(ctx, s.replica.require(ctx, req.GetClusterId(), seq.Era(req.GetEra()), int(req.GetProtocol()), req.GetCheck(), req.GetDecided()))
}

// Dump implements the service.
func (s *server) Dump(req *pb.DumpRequest, stream grpc.ServerStreamingServer[pb.DumpReply]) error {
	store, err := s.Describe(stream.Context(), nil)
	if err != nil {
		return err
	}
	if err := stream.Send(&pb.DumpReply{Store: store}); err != nil {
		return err
	}
	count := uint64(0)
	err = s.replica.dump(stream.Context(), storewire.RefFromProto(req.GetRef()), func(states []quorum.RegisterState) error {
		count += uint64(len(states))
		for len(states) > 0 {
			n := storewire.Batch(states)
			if err := stream.Send(&pb.DumpReply{Records: storewire.RecordsToProto(states[:n])}); err != nil {
				return err
			}
			states = states[n:]
		}
		return nil
	})
	if err != nil {
		return err
	}
	return stream.Send(&pb.DumpReply{Last: true, Count: count})
}
