package storesvr

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/seqsvr/seqsvr/internal/base/version"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/internal/wire/storewire"
	"github.com/seqsvr/seqsvr/membership"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// server translates between gRPC and the replica.
type server struct {
	pb.UnimplementedStoreServer
	replica *replica
	health  *health.Server
	addr    string // that others are told
	guard   *auth.Guard
	refused *rpc.Refused
	known   func() []membership.Member                         // of the gossip; nil without gossip
	leaving <-chan struct{}                                    // closed when the store stops in order; streams end then
	count   func(method string, took time.Duration, err error) // counts the calls of streams; nil counts none
}

// newServer is a gRPC server with the store, its health and reflection.
func newServer(cfg Config, s *server, creds credentials.TransportCredentials, extra ...grpc.ServerOption) *gate.Server {
	g := gate.NewServer(gate.ServerConfig{Logger: cfg.Logger, Creds: creds, Auth: cfg.Guard, Refused: cfg.Refused, MaxRecv: storewire.MaxRequest},
		append(extra, grpc.MaxSendMsgSize(storewire.MaxReply), grpc.ChainUnaryInterceptor(addressedTo(s.replica.core.identity.UUID)))...)
	pb.RegisterStoreServer(g, s)
	s.health = gate.RegisterHealth(g)
	s.report()
	return g
}

// addressedTo refuses calls that name another store: an address may come to belong to
// another one, and what a session has seen of one store must not be held against another.
func addressedTo(uuid string) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		if err := meant(ctx, uuid); err != nil {
			return nil, err
		}
		return next(ctx, req)
	}
}

// meant returns an error if the call names another store.
func meant(ctx context.Context, uuid string) error {
	for _, meant := range metadata.ValueFromIncomingContext(ctx, storewire.StoreHeader) {
		if meant != uuid {
			return fmt.Errorf("%w: this store is %s, the caller means %s", seq.ErrStaleEra, uuid, meant)
		}
	}
	return nil
}

// report tells the health service whether the store votes; the process itself, under
// the empty name, is well as long as it answers.
func (s *server) report() {
	status := healthpb.HealthCheckResponse_NOT_SERVING
	if s.replica.describe().Voting {
		status = healthpb.HealthCheckResponse_SERVING
	}
	s.health.SetServingStatus(pb.Store_ServiceDesc.ServiceName, status)
}

// described answers a call that may have changed whether the store votes.
func (s *server) described(ctx context.Context, err error) (*pb.DescribeReply, error) {
	s.report()
	if err != nil {
		return nil, err
	}
	return s.Describe(ctx, nil)
}

// Describe implements the service.
func (s *server) Describe(ctx context.Context, _ *pb.DescribeRequest) (*pb.DescribeReply, error) {
	d := s.replica.describe()
	if s.known != nil {
		d.Members = located(d.Members, s.known())
	}
	out := storewire.DescribeToProto(d.Identity)
	out.Registers = uint64(d.registers)
	out.DiskFreeBytes = d.free
	out.NearlyFull = d.nearlyFull
	out.UptimeUs = uint64(d.uptime.Microseconds())
	out.Version, out.KeptOut, out.TimeMs = version.String(), d.keptOut, d.wall.UnixMilli()
	out.Addr, out.Refused = s.addr, s.refused.RecentToProto()
	out.Caller = rpc.Caller(ctx, s.guard)
	out.WorkersKeptUs = uint64(d.kept.Microseconds())
	return out, nil
}

// Bind implements the service.
func (s *server) Bind(ctx context.Context, req *pb.BindRequest) (*pb.DescribeReply, error) {
	return s.described(ctx, s.replica.change.bind(ctx, binding{cluster: req.GetClusterId(), era: seq.Era(req.GetEra()),
		members: storewire.MembersFromProto(req.GetMembers()), step: req.GetStep(), origin: seq.ClusterIDOf(req.GetOrigin())}))
}

// Vouch implements the service.
func (s *server) Vouch(ctx context.Context, req *pb.VouchRequest) (*pb.DescribeReply, error) {
	return s.described(ctx, s.replica.vouch(req.GetClusterId(), req.GetNonce(), storewire.ClaimsFromProto(req.GetClaims())))
}

// answer decodes a request, has it done, and encodes the reply.
func answer[In, Req, Reply, Out any](ctx context.Context, in In, decode func(In) (Req, error), do func(context.Context, Req) (Reply, error), encode func(Reply) Out) (out Out, err error) {
	req, err := decode(in)
	if err != nil {
		return out, err
	}
	reply, err := do(ctx, req)
	if err != nil {
		return out, err
	}
	return encode(reply), nil
}

// Read implements the service.
func (s *server) Read(ctx context.Context, req *pb.ReadRequest) (*pb.ResultsReply, error) {
	return answer(ctx, req, storewire.ReadFromProto, s.replica.Read, storewire.ReplyToProto)
}

// Prepare implements the service.
func (s *server) Prepare(ctx context.Context, req *pb.PrepareRequest) (*pb.ResultsReply, error) {
	return answer(ctx, req, storewire.PrepareFromProto, s.replica.Prepare, storewire.ReplyToProto)
}

// Step implements the service.
func (s *server) Step(ctx context.Context, req *pb.StepRequest) (*pb.ResultsReply, error) {
	return answer(ctx, req, storewire.StepFromProto, s.replica.Step, storewire.ReplyToProto)
}

// Renew implements the service.
func (s *server) Renew(ctx context.Context, req *pb.RenewRequest) (*pb.RenewReply, error) {
	reply, err := answer(ctx, req, storewire.RenewFromProto, s.replica.Renew, storewire.RenewReplyToProto)
	if err != nil {
		s.report()
	}
	return reply, err
}

// Release implements the service.
func (s *server) Release(_ context.Context, req *pb.ReleaseRequest) (*pb.ReleaseReply, error) {
	in, err := storewire.ReleaseFromProto(req)
	if err != nil {
		return nil, err
	}
	uuid, released, err := s.replica.release(in)
	if err != nil {
		return nil, err
	}
	return &pb.ReleaseReply{StoreUuid: uuid, Released: uint32(released)}, nil
}
