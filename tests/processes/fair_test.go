package processes

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// politeHost is the address of the polite caller, by which a server keeps its answers apart from
// those to greedy callers.
const politeHost = "127.0.0.2"

// dialedFrom is dialed from another address of this machine.
func dialedFrom(t *testing.T, host, addr string) *grpc.ClientConn {
	t.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(host)}}
	probe, err := dialer.Dial("tcp", addr)
	if err != nil {
		t.Skipf("no address %s here: %v", host, err)
	}
	_ = probe.Close()
	conn, err := rpc.Dial(addr, grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
		return dialer.DialContext(ctx, "tcp", addr)
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// greedily has each connection make calls one after the other, so many at once, until stop. It counts
// the answers.
func greedily(t *testing.T, conns []*grpc.ClientConn, atOnce int, call func(context.Context, pb.SequenceClient) error) (answered *atomic.Int64, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	answered = new(atomic.Int64)
	var calls sync.WaitGroup
	for _, conn := range conns {
		client := pb.NewSequenceClient(conn)
		for range atOnce {
			calls.Go(func() {
				for ctx.Err() == nil {
					if call(ctx, client) == nil {
						answered.Add(1)
					}
				}
			})
		}
	}
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); calls.Wait() }) }
	t.Cleanup(stop)
	return answered, stop
}

// manyKeys is a request for the largest batch.
func manyKeys() *pb.BatchNextRequest {
	uids := make([]uint64, seq.MaxBatch)
	for i := range uids {
		uids[i] = uint64(i)
	}
	return &pb.BatchNextRequest{Batches: []*pb.Batch{{Uids: uids}}}
}

func manyKeysAtOnce(ctx context.Context, client pb.SequenceClient) error {
	_, err := client.BatchNext(ctx, manyKeys())
	return err
}

func oneKey(ctx context.Context, client pb.SequenceClient) error {
	_, err := client.Next(ctx, &pb.NextRequest{Id: &pb.NextRequest_Uid{Uid: 7}})
	return err
}

// A polite caller that asks for little is answered, and not refused, however much others ask for. The
// times are taken at the server, from the arrival of a call until its reply is written; they are told and
// not asserted. Before messages waited for their turns to be unpacked, more than twice as many
// of its calls were refused as answered beside callers of many keys.
func TestARouterAnswersAPoliteCallerBesideGreedyOnes(t *testing.T) {
	const during = 300 // calls of the polite caller
	for _, row := range []struct {
		name          string
		conns, atOnce int
		call          func(context.Context, pb.SequenceClient) error
	}{
		{"256 callers of 10000 keys", 64, 4, manyKeysAtOnce},
		{"4096 callers", 16, 256, oneKey},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := start(t, func(cfg *localcluster.Config) {
				cfg.Allocs = 1
				withAdmin(cfg, localcluster.RoleRouter)
			})
			router, addr := c.Processes(localcluster.RoleRouter)[0], c.GRPC()
			served(t, addr)
			polite := func() histogram {
				return histogramOf(t, metricsOf(t, router), "seq_answer_seconds", `caller="`+politeHost+`"`)
			}
			failed, stop := politely(t, dialedFrom(t, politeHost, addr))
			harness.Until(t, "the polite caller is served", func() bool { return polite()[10] > 0 })
			first := polite()
			harness.Until(t, "the polite caller is served alone", func() bool { return polite().since(first)[10] >= during })
			alone := polite()
			conns := make([]*grpc.ClientConn, row.conns)
			for i := range conns {
				conns[i] = dialed(t, addr)
			}
			answered, leave := greedily(t, conns, row.atOnce, row.call)
			harness.Until(t, "the greedy callers are served", func() bool { return answered.Load() > int64(row.conns) })
			second, refused, n, begun := polite(), failed.Load(), answered.Load(), time.Now()
			harness.Until(t, "the polite caller is served beside greedy ones", func() bool { return polite().since(second)[10] >= during })
			beside, more := polite().since(second), failed.Load()-refused
			rate := float64(answered.Load()-n) / time.Since(begun).Seconds()
			leave()
			stop()
			quiet := alone.since(first)
			t.Logf("half of the polite calls within %v s alone and %v beside, 9 of 10 %v and %v, 99 of 100 %v and %v; %d refused; %.0f greedy answers a second",
				quiet.within(.5), beside.within(.5), quiet.within(.9), beside.within(.9), quiet.within(.99), beside.within(.99), more, rate)
			if more > during {
				t.Errorf("%d calls of the polite caller were refused while %d were answered", more, during)
			}
		})
	}
}
