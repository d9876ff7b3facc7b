package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/allocsvr/api"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/memstore"
)

// BenchmarkInside is a node's BatchNext called as a function, over stores in memory:
// what a number costs without a network and gRPC. UIDs are random among a million, all
// of which have been called before.
func BenchmarkInside(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("uids=%d", n), func(b *testing.B) {
			service := inside(b)
			callAll(b, service, 1_000_000)
			draw := rand.New(rand.NewPCG(1, 1))
			uids := make([]uint64, 1<<20)
			for i := range uids {
				uids[i] = draw.Uint64N(1_000_000)
			}
			at, took := 0, 0
			before := processTime(b)
			b.ReportAllocs()
			for b.Loop() {
				if at+n > len(uids) {
					at = 0
				}
				reply, err := service.BatchNext(b.Context(), &pb.BatchNextRequest{Batches: []*pb.Batch{{Uids: uids[at : at+n]}}})
				if err != nil || len(reply.Results[0].Errors) > 0 {
					b.Fatal(err, reply)
				}
				at += n
				took += n
			}
			b.ReportMetric(float64(took)/b.Elapsed().Seconds(), "numbers/s")
			b.ReportMetric(float64((processTime(b)-before).Nanoseconds())/float64(took), "cpu-ns/number")
		})
	}
}

// callAll takes a number of each of the first UIDs.
func callAll(b *testing.B, service pb.SequenceServer, n uint64) {
	b.Helper()
	batch := &pb.Batch{Uids: make([]uint64, 1000)}
	for uid := uint64(0); uid < n; uid += uint64(len(batch.Uids)) {
		for i := range batch.Uids {
			batch.Uids[i] = uid + uint64(i)
		}
		reply, err := service.BatchNext(b.Context(), &pb.BatchNextRequest{Batches: []*pb.Batch{batch}})
		if err != nil || len(reply.Results[0].Errors) > 0 {
			b.Fatal(err, reply)
		}
	}
}

// catcher keeps the service that a node registers.
type catcher struct{ service pb.SequenceServer }

// RegisterService implements grpc.ServiceRegistrar.
func (c *catcher) RegisterService(_ *grpc.ServiceDesc, impl any) {
	if s, ok := impl.(pb.SequenceServer); ok {
		c.service = s
	}
}

// inside runs a node that owns every section.
func inside(b *testing.B) pb.SequenceServer {
	b.Helper()
	mapping, err := seq.NewMapping(seq.Space{Name: seq.DefaultSpace, Sections: 4096})
	if err != nil {
		b.Fatal(err)
	}
	mem := memstore.New(3, mapping, clock.Boot(), 10*time.Second)
	cfg := allocsvr.DefaultConfig()
	cfg.Name, cfg.Logger = "inside", slog.New(slog.DiscardHandler)
	node, err := allocsvr.NewNode(cfg, allocsvr.Wiring{
		Identity: quorum.Identity{Ref: mem.Ref, N: 3, R: 2, W: 2, Mapping: mapping, MaxLease: 10 * time.Second},
		Stores:   mem.Named(), Addr: "inside", Secret: seq.NewSecret(""), Clock: clock.Boot(), Wall: time.Now,
		Dial: func(string) (api.PeerConn, error) { return nil, errors.New("there is no peer") },
		Stop: func(err error) { b.Error(err) },
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- node.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
		node.Close()
	})
	var c catcher
	node.Register(&c)
	for deadline := time.After(30 * time.Second); !ownsAll(ctx, c.service); {
		select {
		case <-deadline:
			b.Fatal("the node does not own every section after 30 s")
		case <-time.After(10 * time.Millisecond):
		}
	}
	return c.service
}

// ownsAll takes a number of UIDs all over the million, and says whether none was refused:
// all sections are acquired in one batch.
func ownsAll(ctx context.Context, service pb.SequenceServer) bool {
	batch := &pb.Batch{}
	for i := range uint64(10_000) {
		batch.Uids = append(batch.Uids, i*100)
	}
	try, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	reply, err := service.BatchNext(try, &pb.BatchNextRequest{Batches: []*pb.Batch{batch}})
	return err == nil && len(reply.Results[0].Errors) == 0
}
