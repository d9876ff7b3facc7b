package bench

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/snowflake"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// wide is a namespace whose bits allow 65 million IDs a second.
const wide = "name=wide layout=time:41,worker:6,sequence:16;unit=1ms;epoch=2024-01-01T00:00:00Z overflow=borrow rollback=borrow"

// idAlloc starts an AllocSvr over three stores and gives its address.
func idAlloc(b *testing.B) string {
	b.Helper()
	cfg := allocsvr.DefaultConfig()
	cfg.Name, cfg.Listen, cfg.Stores = "alloc-1", "127.0.0.1:0", storeAddrs(b, 64)
	cfg.Namespaces, cfg.Logger = []string{wide}, slog.New(slog.DiscardHandler)
	s, err := allocsvr.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	harness.Inside(b, "allocsvr", s.Run)
	return s.Addr()
}

// BenchmarkGenerate has eight callers ask an AllocSvr over loopback for 1,000 or 10,000 snowflake
// IDs a call, stores, server and callers all in this process, and each caller write them
// into a slice: by the SDK, whose replies carry runs, and by plain gRPC, whose replies
// carry every ID. cpu-ns/id is the processor time of all of them.
func BenchmarkGenerate(b *testing.B) {
	const callers = 8
	addr := idAlloc(b)
	sdk, err := client.New(b.Context(), client.Config{Addrs: []string{addr}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = sdk.Close() })
	conn, err := rpc.Dial(addr)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	plain := pb.NewSnowflakeClient(conn)
	bySDK := func(ctx context.Context, count uint32, into []snowflake.ID) ([]snowflake.ID, error) {
		got, err := sdk.Generate(ctx, "wide", count)
		for id := range got.All() {
			into = append(into, id)
		}
		return into, err
	}
	for _, way := range []struct {
		name  string
		count uint32
		ask   func(ctx context.Context, count uint32, into []snowflake.ID) ([]snowflake.ID, error)
	}{
		{"sdk", 1000, bySDK}, {"sdk-10000", 10_000, bySDK},
		{"plain", 1000, func(ctx context.Context, count uint32, into []snowflake.ID) ([]snowflake.ID, error) {
			got, err := plain.Generate(ctx, &pb.SnowflakeGenerateRequest{Namespace: "wide", Count: count})
			for _, id := range got.GetIds() {
				into = append(into, snowflake.ID(id))
			}
			return into, err
		}},
	} {
		b.Run(way.name, func(b *testing.B) {
			if _, err := way.ask(b.Context(), 1, nil); err != nil { // gets the worker id
				b.Fatal(err)
			}
			var left atomic.Int64
			left.Store(int64(b.N))
			start := processTime(b)
			b.ResetTimer()
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					into := make([]snowflake.ID, 0, way.count)
					for left.Add(-1) >= 0 {
						got, err := way.ask(b.Context(), way.count, into[:0])
						if err != nil || len(got) != int(way.count) {
							b.Errorf("got %d ids, %v", len(got), err)
							return
						}
					}
				})
			}
			all.Wait()
			ids := float64(b.N) * float64(way.count)
			b.ReportMetric(ids/b.Elapsed().Seconds(), "ids/s")
			b.ReportMetric(float64((processTime(b)-start).Nanoseconds())/ids, "cpu-ns/id")
		})
	}
}
