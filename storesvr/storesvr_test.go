package storesvr

import (
	"context"
	"errors"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/internal/wire/storewire"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/disk"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// running is a store that answers over gRPC.
type running struct {
	*Store
	client pb.StoreClient
	health healthpb.HealthClient
	ran    chan error
	cancel context.CancelFunc
}

// serve runs the store of the directory. wrap, if not nil, puts something before its disk.
func serve(t *testing.T, dir string, wrap func(Database) Database) *running {
	t.Helper()
	cfg := DefaultConfig()
	cfg.DataDir, cfg.Listen, cfg.NearFull = dir, "127.0.0.1:0", 0
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if wrap != nil {
		s.replica.writer.disk = wrap(s.replica.writer.disk)
	}
	conn, err := rpc.Dial(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Store: s, client: pb.NewStoreClient(conn), health: healthpb.NewHealthClient(conn), ran: make(chan error, 1), cancel: cancel}
	done := make(chan struct{})
	go func() {
		r.ran <- s.Run(ctx)
		close(done)
	}()
	t.Cleanup(func() {
		conn.Close()
		cancel()
		<-done
	})
	return r
}

func (r *running) bindAlone(t *testing.T) *pb.DescribeReply {
	t.Helper()
	uuid := r.replica.core.identity.UUID
	d, err := r.client.Bind(t.Context(), &pb.BindRequest{ClusterId: "c1", Members: []*pb.StoreMember{
		{Uuid: uuid, Name: "a"}, {Uuid: "u-b", Name: "b"}, {Uuid: "u-c", Name: "c"}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.status(t, "seqsvr.v1.Store"); got != healthpb.HealthCheckResponse_NOT_SERVING || d.GetNonce() == 0 {
		t.Errorf("before its fellows were asked: got %v, nonce %d", got, d.GetNonce())
	}
	d, err = r.client.Vouch(t.Context(), &pb.VouchRequest{ClusterId: "c1", Nonce: d.GetNonce(), Claims: []*pb.StoreClaim{
		{StoreUuid: uuid, ByUuid: "u-b"}, {StoreUuid: uuid, ByUuid: "u-c"}}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (r *running) status(t *testing.T, service string) healthpb.HealthCheckResponse_ServingStatus {
	t.Helper()
	reply, err := r.health.Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
	if err != nil {
		t.Fatal(err)
	}
	return reply.GetStatus()
}

func TestTheHealthOfTheServiceTellsWhetherTheStoreVotes(t *testing.T) {
	r := serve(t, initStore(t, "a"), nil)
	const service = "seqsvr.v1.Store"
	if got := r.status(t, service); got != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("unbound: got %v", got)
	}
	if got := r.status(t, ""); got != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("the process: got %v", got)
	}
	d := r.bindAlone(t)
	if got := r.status(t, service); got != healthpb.HealthCheckResponse_SERVING || !d.GetVoting() {
		t.Errorf("bound: got %v, voting %v", got, d.GetVoting())
	}
	key := r.Store.replica.core.witness.key
	newer := quorum.Claim{Store: d.GetStoreUuid(), Boot: 1, Commits: 1 << 40}
	newer.Seal = sealOf(key, newer)
	req := storewire.RenewToProto(quorum.RenewRequest{Ref: storewire.RefFromProto(d.GetRef()), Session: alice, Secret: sessiontest.SecretOf(alice),
		Name: "x", Lease: DefaultMaxLease, Seen: []quorum.Claim{newer}})
	if _, err := r.client.Renew(t.Context(), req); !errors.Is(err, seq.ErrNotVoting) {
		t.Errorf("renew: got %v, want ErrNotVoting", err)
	}
	if got := r.status(t, service); got != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("distrusted: got %v", got)
	}
}

func TestDescribeTellsTheIdentity(t *testing.T) {
	r := serve(t, initStore(t, "a"), nil)
	r.bindAlone(t)
	d, err := r.client.Describe(t.Context(), &pb.DescribeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if d.GetName() != "a" || d.GetN() != 3 || d.GetR() != 2 || d.GetW() != 2 || d.GetBootCount() != 1 || d.GetState() != "voting" ||
		d.GetRegisters() != 4+uint64(len(seq.FixedRegisters())) || d.GetDiskFreeBytes() == 0 || d.GetVersion() == "" ||
		len(d.GetMembers()) != 3 || d.GetMaxLeaseUs() != uint64(DefaultMaxLease.Microseconds()) {
		t.Errorf("got %v", d)
	}
}

func TestACallThatMeansAnotherStoreIsRefused(t *testing.T) {
	r := serve(t, initStore(t, "a"), nil)
	ctx := metadata.AppendToOutgoingContext(t.Context(), storewire.StoreHeader, "another")
	if _, err := r.client.Describe(ctx, &pb.DescribeRequest{}); !errors.Is(err, seq.ErrStaleEra) {
		t.Errorf("got %v, want ErrStaleEra", err)
	}
	ctx = metadata.AppendToOutgoingContext(t.Context(), storewire.StoreHeader, r.replica.core.identity.UUID)
	if _, err := r.client.Describe(ctx, &pb.DescribeRequest{}); err != nil {
		t.Errorf("its own uuid: %v", err)
	}
}

func TestRunEndsWithErrCommitWhenACommitFails(t *testing.T) {
	var g *heldDB
	r := serve(t, initStore(t, "a"), func(db Database) Database {
		g = &heldDB{DB: db.(*disk.DB), entered: make(chan struct{}, 100)}
		return g
	})
	ref := r.bindAlone(t).GetRef()
	g.mu.Lock()
	g.after = errors.New("input/output error")
	g.mu.Unlock()
	secret := sessiontest.SecretOf(alice)
	_, err := r.client.Prepare(t.Context(), &pb.PrepareRequest{Ref: ref, Session: uint64(alice), Secret: secret.Seed[:], Items: []*pb.PrepareItem{{Register: []byte(section), Round: 1}}})
	if code := status.Code(err); code != codes.Internal && code != codes.Unavailable {
		t.Errorf("the caller got %v", err)
	}
	if err := await(t, "Run", r.ran); !errors.Is(err, ErrCommit) {
		t.Errorf("Run: got %v, want ErrCommit", err)
	}
	if _, err := r.client.Describe(t.Context(), &pb.DescribeRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("afterwards: got %v, want no connection", err)
	}
}

func TestRunEndsWithItsContextAndLeavesTheDiskFree(t *testing.T) {
	dir := initStore(t, "a")
	for boot := uint64(1); boot <= 3; boot++ {
		r := serve(t, dir, nil)
		if got := r.replica.core.witness.boots; got != boot {
			t.Errorf("boot %d, want %d", got, boot)
		}
		r.cancel()
		if err := await(t, "Run", r.ran); err != nil {
			t.Errorf("Run: %v", err)
		}
		if err := r.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}

func TestAStoreThatNeverRanCanBeClosed(t *testing.T) {
	cfg := DefaultConfig()
	cfg.DataDir, cfg.Listen = initStore(t, "a"), "127.0.0.1:0"
	cfg.GossipListen = "127.0.0.1:0"
	for range 2 {
		s, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if s.GossipAddr() == "" {
			t.Error("no gossip address")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNewRefusesByName(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Listen = "127.0.0.1:0"
	if _, err := New(cfg); !errors.Is(err, ErrConfig) {
		t.Errorf("no directory: got %v, want ErrConfig", err)
	}
	cfg.DataDir = t.TempDir()
	if _, err := New(cfg); !errors.Is(err, disk.ErrNoDatabase) {
		t.Errorf("not initialised: got %v, want ErrNoDatabase", err)
	}
	cfg.DataDir, cfg.ClusterID = initStore(t, "a"), "c2"
	if _, err := New(cfg); !errors.Is(err, seq.ErrForeignCluster) {
		t.Errorf("another cluster: got %v, want ErrForeignCluster", err)
	}
	cfg.ClusterID = "c1"
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := New(cfg); !errors.Is(err, disk.ErrLocked) {
		t.Errorf("twice: got %v, want ErrLocked", err)
	}
	if err := Init(InitConfig{DataDir: cfg.DataDir, ClusterID: "c1", Name: "a", MemberNames: testMembers}); !errors.Is(err, disk.ErrExists) {
		t.Errorf("init again: got %v, want ErrExists", err)
	}
}
