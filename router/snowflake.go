package router

import (
	"context"
	"fmt"
	"strconv"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// snowflakeServer passes calls on to any AllocSvr.
type snowflakeServer struct {
	pb.UnimplementedSnowflakeServer
	sdk   admitted
	any   pb.SnowflakeClient
	guard *auth.Guard
}

// Generate implements pb.SnowflakeServer. Single IDs without an agent join the batch of other
// callers. The router may generate IDs itself (Config.IDsFallback). It never does so for IDs of one
// datacenter, or for a namespace given by both name and number, because only an AllocSvr compares
// the two.
func (s *snowflakeServer) Generate(ctx context.Context, r *pb.SnowflakeGenerateRequest) (*pb.SnowflakeGenerateReply, error) {
	rpc.OneIfNone(&r.Count)
	if err := seq.CheckIDs("count", uint64(r.GetCount())); err != nil {
		return nil, err
	}
	if err := seq.CheckAgent(r.GetAgent()); err != nil {
		return nil, err
	}
	if r.GetNamespace() != "" && r.GetAlias() != 0 || r.GetDatacenter() != "" {
		return s.any.Generate(ctx, r)
	}
	form, err := textForm(r.GetEncoding())
	if err != nil {
		return nil, err
	}
	name := r.GetNamespace()
	if r.GetAlias() != 0 {
		name = strconv.FormatUint(uint64(r.GetAlias()), 10)
	}
	got, err := s.sdk.GenerateAs(ctx, r.GetAgent(), name, r.GetCount())
	if err != nil {
		return nil, err
	}
	out := &pb.SnowflakeGenerateReply{
		DatacenterId: uint64(got.Datacenter), WorkerId: uint64(got.Worker), Namespace: got.Namespace, Layout: got.Layout,
	}
	if r.GetAsRuns() {
		for _, run := range got.Runs {
			out.Runs = append(out.Runs, &pb.SnowflakeRun{First: uint64(run.First), Last: uint64(run.Last), Stride: uint64(run.Stride)})
		}
	} else {
		out.Ids = make([]uint64, 0, r.GetCount())
		for id := range got.All() {
			out.Ids = append(out.Ids, uint64(id))
		}
	}
	if form == nil {
		return out, nil
	}
	for id := range got.All() {
		text, err := form.Format(id)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", seq.ErrBadID, err)
		}
		out.Texts = append(out.Texts, text)
	}
	return out, nil
}

// textForm reads the name of a text form; nil for none. seq.ErrBadArgument.
func textForm(name string) (*snowflake.Encoding, error) {
	if name == "" {
		return nil, nil
	}
	form, err := snowflake.ParseEncoding(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", seq.ErrBadArgument, err)
	}
	return &form, nil
}

// GiveBack implements pb.SnowflakeServer: it goes to the AllocSvr that it names.
func (s *snowflakeServer) GiveBack(ctx context.Context, r *pb.SnowflakeGiveBackRequest) (*pb.SnowflakeGiveBackReply, error) {
	return pb.NewSnowflakeClient(s.sdk.Once()).GiveBack(rpc.For(ctx, s.guard), r)
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
// worker id for as long as its window. An AllocSvr bounds what each caller holds.
func (s *snowflakeServer) Delegate(ctx context.Context, r *pb.SnowflakeDelegateRequest) (*pb.SnowflakeDelegateReply, error) {
	return pb.NewSnowflakeClient(s.sdk.Once()).Delegate(rpc.For(ctx, s.guard), r)
}

// Info implements pb.SnowflakeServer: of some AllocSvr, which it names.
func (s *snowflakeServer) Info(ctx context.Context, r *pb.SnowflakeInfoRequest) (*pb.SnowflakeInfoReply, error) {
	return s.any.Info(ctx, r)
}
