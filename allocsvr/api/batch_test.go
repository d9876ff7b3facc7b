package api

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/seqsvr/seqsvr/internal/process/tracing"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

// someKeys is a message of n keys, 64 apart: each in a block of its own.
func someKeys(n int) *pb.BatchNextRequest {
	uids := make([]uint64, n)
	for i := range uids {
		uids[i] = uint64(i) << seq.BlockBits
	}
	return &pb.BatchNextRequest{Batches: []*pb.Batch{{Uids: uids}}}
}

func TestAMessageThatNeedsNoWaitingAllocatesNothing(t *testing.T) {
	t.Run("without traces", func(t *testing.T) { allocatesNothing(t, nil) })
	t.Run("with traces of every call", func(t *testing.T) {
		spans := tracetest.NewSpanRecorder()
		provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(spans), sdk.WithSampler(sdk.AlwaysSample()))
		allocatesNothing(t, tracing.New(provider, nil))
		if n := len(spans.Started()); n > 0 {
			t.Errorf("%d spans of messages", n)
		}
	})
}

func allocatesNothing(t *testing.T, traces *tracing.Tracer) {
	s := serving(t, seq.Space{Name: "user", Sections: 1, Step: ownerStep}, traces)
	s.own(0, ownerStep)
	req, call := someKeys(256), &nextCall{}
	serve := func() {
		if err := call.begin(s.Sequence, false, req); err != nil || !call.settled() {
			t.Fatalf("not served at once: %v", err)
		}
		call.reply(t.Context())
	}
	for range ownerStep * 6 / 10 { // the step ahead is asked for on the way
		serve()
	}
	if n := testing.AllocsPerRun(ownerStep/4, serve); n > 0 {
		t.Errorf("%v allocations for each message of %d keys, want none", n, len(req.Batches[0].Uids))
	}
}

// BenchmarkMessage measures a message between its arrival and its reply, without gRPC. The keys are random
// among a million, in 4,096 sections.
func BenchmarkMessage(b *testing.B) {
	const users = 1 << 20
	for _, keys := range []int{1, 64, 512, 4096} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			s := serving(b, seq.Space{Name: "user", Sections: 4096, Step: ownerStep}, nil)
			for id := range seq.SectionID(4096) {
				s.own(id, uint64(seq.MaxSeq))
			}
			req, call := someKeys(keys), &nextCall{}
			r := rand.New(rand.NewPCG(1, 2))
			for uid := range uint64(users) {
				s.Sections.Take(b.Context(), &s.Sections.Mapping().Spaces[0], seq.PlainAll(seq.UID(uid)), nil)
			}
			b.ReportAllocs()
			for b.Loop() {
				for i := range req.Batches[0].Uids {
					req.Batches[0].Uids[i] = r.Uint64N(users)
				}
				if err := call.begin(s.Sequence, false, req); err != nil || !call.settled() {
					b.Fatalf("not served at once: %v", err)
				}
				call.reply(b.Context())
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*keys), "ns/key")
		})
	}
}

func TestABatchAnswersWhatItHasBeforeItsCallerGivesUp(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, uids := twoSections(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		reply, err := s.BatchNext(ctx, &pb.BatchNextRequest{Batches: []*pb.Batch{{Uids: uids}}})
		if err != nil || ctx.Err() != nil {
			t.Fatalf("got %v, %v for the caller, want an answer in time", err, ctx.Err())
		}
		if r := reply.Results[0]; r.First[0] != 1 || len(r.Errors) != 1 || r.Errors[0].Index != 1 {
			t.Errorf("got %v, want a number and why the other key has none", r)
		}
	})
}
