package otlp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/base/version"
	"github.com/seqsvr/seqsvr/internal/process/tracing"
)

// Exporter sends the spans of one daemon. Safe for concurrent use.
type Exporter struct {
	conn     *grpc.ClientConn
	sampler  *sampler
	queue    *queue
	provider *sdk.TracerProvider
	tracer   *tracing.Tracer
}

// Start makes an exporter and does not wait for the collector. ErrConfig.
func Start(cfg Config) (*Exporter, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	conn, err := cfg.connect()
	if err != nil {
		return nil, err
	}
	e := &Exporter{conn: conn, sampler: newSampler(cfg.Sample)}
	sending, err := otlptracegrpc.New(context.Background(), otlptracegrpc.WithGRPCConn(conn), otlptracegrpc.WithTimeout(sendTime),
		otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{Enabled: true, InitialInterval: 200 * time.Millisecond,
			MaxInterval: time.Second, MaxElapsedTime: sendTime}))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start traces: %w", err), conn.Close())
	}
	e.queue = newQueue(sending, queueSize, cfg.Logger)
	e.provider = sdk.NewTracerProvider(sdk.WithResource(cfg.resource()), sdk.WithSpanProcessor(e.queue),
		sdk.WithSampler(sdk.ParentBased(e.sampler)))
	e.tracer = tracing.New(e.provider, e.queue.counts)
	return e, nil
}

// resource says whose spans they are.
func (c Config) resource() *resource.Resource {
	attrs := []attribute.KeyValue{
		attribute.String("service.namespace", "seqsvr"), attribute.String("service.name", c.Daemon),
		attribute.String("service.instance.id", c.Instance), attribute.String("service.version", version.Get().Version),
		attribute.Int("process.pid", os.Getpid()),
	}
	if host, err := os.Hostname(); err == nil {
		attrs = append(attrs, attribute.String("host.name", host))
	}
	return resource.NewSchemaless(attrs...)
}

// Tracer makes the spans.
func (e *Exporter) Tracer() *tracing.Tracer { return e.tracer }

// SetSample changes Config.Sample for the traces that begin from now on. ErrConfig.
func (e *Exporter) SetSample(share float64) error {
	if err := checkSample(share); err != nil {
		return err
	}
	e.sampler.set(share)
	return nil
}

// Close sends what is left until ctx ends, and frees the connection. Spans that end
// after it began are thrown away. An error means that some were not sent.
func (e *Exporter) Close(ctx context.Context) error {
	// The queue first, and by itself: the provider would leave it alone once ctx has ended.
	err := errors.Join(e.queue.Shutdown(ctx), e.provider.Shutdown(context.WithoutCancel(ctx)), e.conn.Close())
	if err != nil {
		return fmt.Errorf("close traces: %w", err)
	}
	return nil
}
