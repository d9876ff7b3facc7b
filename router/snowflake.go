package router

import (
	"context"
	"strconv"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// snowflakeServer passes calls on to any AllocSvr.
type snowflakeServer struct {
	pb.UnimplementedSnowflakeServer
	sdk admitted
	any pb.SnowflakeClient
}

// Generate implements pb.SnowflakeServer. Single IDs that name no agent leave
// together with those of other callers.
func (s *snowflakeServer) Generate(ctx context.Context, r *pb.SnowflakeGenerateRequest) (*pb.SnowflakeGenerateReply, error) {
	if err := seq.CheckIDs("count", uint64(r.GetCount())); err != nil {
		return nil, err
	}
	if err := seq.CheckAgent(r.GetAgent()); err != nil {
		return nil, err
	}
	if r.GetCount() > 1 || r.GetAgent() != "" || r.GetEncoding() != "" || r.GetNamespace() != "" && r.GetAlias() != 0 {
		return s.any.Generate(ctx, r)
	}
	name := r.GetNamespace()
	if r.GetAlias() != 0 {
		name = strconv.FormatUint(uint64(r.GetAlias()), 10)
	}
	got, err := s.sdk.Generate(ctx, name, 1)
	if err != nil {
		return nil, err
	}
	out := &pb.SnowflakeGenerateReply{
		DatacenterId: uint64(got.Datacenter), WorkerId: uint64(got.Worker), Namespace: got.Namespace, Layout: got.Layout,
	}
	id := uint64(got.First())
	if r.GetAsRuns() {
		out.Runs = []*pb.SnowflakeRun{{First: id, Last: id, Stride: 1}}
	} else {
		out.Ids = []uint64{id}
	}
	return out, nil
}

// Decode implements pb.SnowflakeServer.
func (s *snowflakeServer) Decode(ctx context.Context, r *pb.SnowflakeDecodeRequest) (*pb.SnowflakeDecoded, error) {
	return s.any.Decode(ctx, r)
}

// Compose implements pb.SnowflakeServer.
func (s *snowflakeServer) Compose(ctx context.Context, r *pb.SnowflakeComposeRequest) (*pb.SnowflakeDecoded, error) {
	return s.any.Compose(ctx, r)
}

// Layouts implements pb.SnowflakeServer.
func (s *snowflakeServer) Layouts(ctx context.Context, r *pb.SnowflakeLayoutsRequest) (*pb.SnowflakeLayoutsReply, error) {
	return s.any.Layouts(ctx, r)
}

// Namespaces implements pb.SnowflakeServer.
func (s *snowflakeServer) Namespaces(ctx context.Context, r *pb.SnowflakeNamespacesRequest) (*pb.SnowflakeNamespacesReply, error) {
	return s.any.Namespaces(ctx, r)
}

// PutNamespace implements pb.SnowflakeServer. An attempt whose answer was lost is made
// again; if it had been done, that one says CONFLICT, and nothing is done twice.
func (s *snowflakeServer) PutNamespace(ctx context.Context, r *pb.SnowflakePutNamespaceRequest) (*pb.SnowflakeNamespace, error) {
	return s.any.PutNamespace(ctx, r)
}

// RetireNamespace implements pb.SnowflakeServer.
func (s *snowflakeServer) RetireNamespace(ctx context.Context, r *pb.SnowflakeRetireNamespaceRequest) (*pb.SnowflakeNamespace, error) {
	return s.any.RetireNamespace(ctx, r)
}

// Workers implements pb.SnowflakeServer.
func (s *snowflakeServer) Workers(ctx context.Context, r *pb.SnowflakeWorkersRequest) (*pb.SnowflakeWorkersReply, error) {
	return s.any.Workers(ctx, r)
}

// Delegate implements pb.SnowflakeServer: one attempt, since a lost answer costs a
// worker id for as long as its window.
func (s *snowflakeServer) Delegate(ctx context.Context, r *pb.SnowflakeDelegateRequest) (*pb.SnowflakeDelegateReply, error) {
	return pb.NewSnowflakeClient(s.sdk.Once()).Delegate(ctx, r)
}

// Info implements pb.SnowflakeServer: of some AllocSvr, which it names.
func (s *snowflakeServer) Info(ctx context.Context, r *pb.SnowflakeInfoRequest) (*pb.SnowflakeInfoReply, error) {
	return s.any.Info(ctx, r)
}
