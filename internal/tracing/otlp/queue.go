package otlp

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/seqsvr/seqsvr/internal/tracing"
)

// Bounds of what may be under way. A span is about 1 kB.
const (
	queueSize   = 4096
	batchSize   = 512
	batchPause  = time.Second     // how long the first span of a batch waits for others
	sendTime    = 5 * time.Second // for one batch, retries included
	complainGap = time.Minute     // between two lines in the log
)

// sender gives spans to a collector; sdk.SpanExporter is one.
type sender interface {
	ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error
}

// queue is an sdk.SpanProcessor that never makes anybody wait.
//
//	ended = sent + dropped + failed + len(spans) + len(batch under way)
type queue struct {
	to    sender
	log   *slog.Logger
	spans chan sdk.ReadOnlySpan
	quit  chan struct{} // closed by Shutdown: no more spans are taken
	once  sync.Once     // Shutdown
	done  chan struct{} // closed when run has ended
	life  context.Context
	cut   context.CancelFunc // ends life, and with it a batch under way

	sent, dropped, failed atomic.Uint64
	complained            time.Time // by run alone
}

func newQueue(to sender, size int, log *slog.Logger) *queue {
	q := &queue{to: to, log: log, spans: make(chan sdk.ReadOnlySpan, size), quit: make(chan struct{}), done: make(chan struct{})}
	q.life, q.cut = context.WithCancel(context.Background())
	go q.run()
	return q
}

// OnStart implements sdk.SpanProcessor.
func (q *queue) OnStart(context.Context, sdk.ReadWriteSpan) {}

// OnEnd implements sdk.SpanProcessor: the span is queued or thrown away.
func (q *queue) OnEnd(s sdk.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	select {
	case <-q.quit:
	default:
		select {
		case q.spans <- s:
			return
		default:
		}
	}
	q.dropped.Add(1)
}

// ForceFlush implements sdk.SpanProcessor; nobody asks for it.
func (q *queue) ForceFlush(context.Context) error { return nil }

// Shutdown implements sdk.SpanProcessor: what is queued is sent until ctx ends, and the
// rest thrown away.
func (q *queue) Shutdown(ctx context.Context) error {
	q.once.Do(func() { close(q.quit) })
	defer q.cut()
	defer context.AfterFunc(ctx, q.cut)()
	<-q.done // at once when life has ended: everything there ends with it
	return ctx.Err()
}

func (q *queue) counts() tracing.Counts {
	return tracing.Counts{Sent: q.sent.Load(), Dropped: q.dropped.Load(), Failed: q.failed.Load()}
}

func (q *queue) run() {
	defer close(q.done)
	batch := make([]sdk.ReadOnlySpan, 0, batchSize)
	for {
		select {
		case s := <-q.spans:
			batch = q.gather(append(batch[:0], s))
			q.send(batch)
		case <-q.quit:
			q.empty(batch)
			return
		}
	}
}

// gather fills a batch for a moment.
func (q *queue) gather(batch []sdk.ReadOnlySpan) []sdk.ReadOnlySpan {
	pause := time.NewTimer(batchPause)
	defer pause.Stop()
	for len(batch) < batchSize {
		select {
		case s := <-q.spans:
			batch = append(batch, s)
		case <-pause.C:
			return batch
		case <-q.quit:
			return batch
		}
	}
	return batch
}

// empty sends what is left. Whoever ends a span from now on finds the queue closed; one
// that found it open a moment ago is left in it.
func (q *queue) empty(batch []sdk.ReadOnlySpan) {
	for {
		batch = batch[:0]
		for more := true; more && len(batch) < batchSize; {
			select {
			case s := <-q.spans:
				batch = append(batch, s)
			default:
				more = false
			}
		}
		switch {
		case len(batch) == 0:
			return
		case q.life.Err() != nil:
			q.dropped.Add(uint64(len(batch)))
		default:
			q.send(batch)
		}
	}
}

func (q *queue) send(batch []sdk.ReadOnlySpan) {
	ctx, cancel := context.WithTimeout(q.life, sendTime)
	defer cancel()
	err := q.to.ExportSpans(ctx, batch)
	if err == nil {
		q.sent.Add(uint64(len(batch)))
		return
	}
	q.failed.Add(uint64(len(batch)))
	if now := time.Now(); q.complained.IsZero() || now.Sub(q.complained) >= complainGap {
		q.complained = now
		q.log.Warn("traces not sent, the daemon goes on without them", "spans", len(batch), "failed", q.failed.Load(),
			"dropped", q.dropped.Load(), "error", err, "check", "--trace-endpoint")
	}
}
