package otlp

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/seqsvr/seqsvr/internal/process/tracing"
)

// Bounds of what may be under way. A span is about 1 kB.
const (
	queueSize   = 4096 // spans, including the batch that is being sent
	batchSize   = 512
	batchPause  = time.Second     // how long a span waits for others at most
	sendTime    = 5 * time.Second // for one batch, retries included
	complainGap = time.Minute     // between two lines in the log
)

// queue is the SDK's batch processor with a count of what becomes of the spans. It lets in
// no more than the processor has room for, so that all that is dropped is dropped here.
//
//	ended = sent + dropped + failed + waiting
type queue struct {
	sdk.SpanProcessor // the SDK's
	to                *sender
	size              int64
	closed            atomic.Bool // no more spans are taken
}

func newQueue(to sdk.SpanExporter, size int, log *slog.Logger) *queue {
	s := &sender{SpanExporter: to, log: log}
	s.life, s.cut = context.WithCancel(context.Background())
	return &queue{to: s, size: int64(size), SpanProcessor: sdk.NewBatchSpanProcessor(s, sdk.WithMaxQueueSize(size),
		sdk.WithMaxExportBatchSize(min(batchSize, size)), sdk.WithBatchTimeout(batchPause), sdk.WithExportTimeout(sendTime))}
}

// OnEnd implements sdk.SpanProcessor: the span is queued or dropped.
func (q *queue) OnEnd(s sdk.ReadOnlySpan) {
	switch {
	case !s.SpanContext().IsSampled():
	case q.closed.Load():
		q.to.dropped.Add(1)
	case q.to.waiting.Add(1) > q.size:
		q.to.waiting.Add(-1)
		q.to.dropped.Add(1)
	default:
		q.SpanProcessor.OnEnd(s)
	}
}

// Shutdown implements sdk.SpanProcessor: what is queued is sent until ctx ends, and the
// rest dropped.
func (q *queue) Shutdown(ctx context.Context) error {
	q.closed.Store(true)
	defer q.to.cut()
	defer context.AfterFunc(ctx, q.to.cut)()
	err := q.SpanProcessor.Shutdown(context.WithoutCancel(ctx)) // returns once cut was called
	q.to.dropped.Add(uint64(q.to.waiting.Swap(0)))              // ended just as it closed
	return errors.Join(err, ctx.Err())
}

func (q *queue) counts() tracing.Counts {
	return tracing.Counts{Sent: q.to.sent.Load(), Dropped: q.to.dropped.Load(), Failed: q.to.failed.Load()}
}

// sender is the exporter as the batch processor sees it.
type sender struct {
	sdk.SpanExporter
	log  *slog.Logger
	life context.Context
	cut  context.CancelFunc // ends life, and with it a batch under way

	waiting               atomic.Int64 // queued or in the batch under way
	sent, dropped, failed atomic.Uint64
	complained            time.Time // by ExportSpans alone, which is called for one batch at a time
}

// ExportSpans implements sdk.SpanExporter. An error ends here: the SDK would print it.
func (s *sender) ExportSpans(ctx context.Context, batch []sdk.ReadOnlySpan) error {
	defer s.waiting.Add(-int64(len(batch)))
	if s.life.Err() != nil {
		s.dropped.Add(uint64(len(batch)))
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	err := s.SpanExporter.ExportSpans(ctx, batch)
	if err == nil {
		s.sent.Add(uint64(len(batch)))
		return nil
	}
	s.failed.Add(uint64(len(batch)))
	if now := time.Now(); s.complained.IsZero() || now.Sub(s.complained) >= complainGap {
		s.complained = now
		s.log.Warn("traces not sent, the daemon goes on without them", "spans", len(batch), "failed", s.failed.Load(),
			"dropped", s.dropped.Load(), "error", err, "check", "--trace-endpoint")
	}
	return nil
}
