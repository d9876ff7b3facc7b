package gate

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/rawcall"
	"github.com/seqsvr/seqsvr/tests/kit/waits"
)

// dialFor is a connection of its own.
func dialFor(t *testing.T, addr string) *grpc.ClientConn {
	t.Helper()
	conn, err := rpc.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestCallsThatAreOpenOnManyConnectionsAreBounded(t *testing.T) {
	const limit, conns, each = 256, 8, 100
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &generous{conns: make(chan *traffic, 1)}
	refused := rpc.NewRefused(nil)
	srv := NewServer(ServerConfig{MaxOpen: limit, Refused: refused})
	pb.RegisterSequenceServer(srv, g)
	RegisterHealth(srv)
	done := make(chan error, 1)
	go func() { done <- srv.Serve(lis) }()
	t.Cleanup(func() {
		srv.Stop()
		<-done
	})
	addr := lis.Addr().String()
	early := dialFor(t, addr)
	if _, err := pb.NewSequenceClient(early).Next(t.Context(), &pb.NextRequest{}); err != nil {
		t.Fatal(err)
	}
	calls := (<-g.conns).wire.calls
	refusals := func() (n uint64) {
		for _, one := range refused.Totals() {
			if one.Reason == rpc.RefusedOverloaded {
				n += one.Count
			}
		}
		return n
	}
	var greedy []*rawcall.Conn
	for range conns {
		c, err := rawcall.Dial(addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for range each { // the message never comes
			c.Open(pb.Sequence_BatchNext_FullMethodName)
		}
		if err := c.Flush(); err != nil {
			t.Fatal(err)
		}
		greedy = append(greedy, c)
	}
	// A refused call counts as open until its refusal is written.
	waitFor(t, "the calls are open or refused", func() bool {
		n := calls.all.Load()
		return int64(refusals())+n == conns*each && n <= limit
	})
	if n := calls.all.Load(); n < limit/2 {
		t.Errorf("%d calls are open, want at least half of %d", n, limit)
	}
	for name, conn := range map[string]*grpc.ClientConn{"from before": early, "new": dialFor(t, addr)} {
		ctx, cancel := context.WithTimeout(t.Context(), waits.AtMost(t, time.Minute))
		if _, err := pb.NewSequenceClient(conn).Next(ctx, &pb.NextRequest{}); err != nil {
			t.Errorf("a call on a connection %s: %v", name, err)
		}
		if _, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}); err != nil {
			t.Errorf("health on a connection %s: %v", name, err)
		}
		cancel()
	}
	for _, c := range greedy {
		_ = c.Close()
	}
	waitFor(t, "no call is open", func() bool { return calls.all.Load() == 0 && calls.sharers.Load() == 0 })
}

func TestCallsByWhichAClusterLivesAreLetInWhereOthersAreNot(t *testing.T) {
	o := newOpenCalls(1000)
	o.all.Store(1001)
	o.sharers.Store(100)
	if !o.refuses(1, false) || o.refuses(1, true) {
		t.Error("all places are taken: a call was let in, or a renewal was not")
	}
	o.all.Store(900)
	if !o.refuses(2, false) || o.refuses(1, false) {
		t.Error("the last eighth is not for connections without calls")
	}
	o.all.Store(700)
	if !o.refuses(11, false) || o.refuses(10, false) {
		t.Error("a connection has more than its share, or less")
	}
	if err := rpc.FromStatus(rpc.ToStatus(o.full)); !errors.Is(err, seq.ErrOverloaded) {
		t.Errorf("callers see %v", err)
	}
}

func TestCallersWithACertificateHaveOpenCallsOfTheirOwn(t *testing.T) {
	c := newCancels(ServerConfig{MaxConcurrentStreams: 1})
	if c.openKind(auth.Identity{Role: auth.Caller}) == c.openKind("a host") {
		t.Error("strangers take the places of callers that prove who they are")
	}
}
