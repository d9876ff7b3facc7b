package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
)

// Scope is the name of the instrumentation in every span.
const Scope = "github.com/seqsvr/seqsvr"

// RareKey marks the root of something that happens seldom and matters, such as a
// takeover: a sampler should take it whatever its ratio is.
const RareKey = attribute.Key("seqsvr.rare")

// maxLinks bounds how many calls a span that was made for many of them names.
const maxLinks = 16

// Tracer makes spans. Nil makes none. Safe for concurrent use.
type Tracer struct {
	spans  trace.Tracer
	counts func() Counts
}

// Counts is what became of the spans since the start.
type Counts struct {
	Sent    uint64 // taken by the collector
	Dropped uint64 // thrown away, since the queue was full or the process ended
	Failed  uint64 // not taken by the collector
}

// New makes a tracer; counts may be nil.
func New(provider trace.TracerProvider, counts func() Counts) *Tracer {
	if counts == nil {
		counts = func() Counts { return Counts{} }
	}
	return &Tracer{spans: provider.Tracer(Scope), counts: counts}
}

// Counts tells what became of the spans; zeros for nil.
func (t *Tracer) Counts() Counts {
	if t == nil {
		return Counts{}
	}
	return t.counts()
}

// Span is one span. The methods of a zero Span do nothing.
type Span struct{ span trace.Span }

// Int adds a number.
func (s Span) Int(key string, value int) {
	if s.span != nil {
		s.span.SetAttributes(attribute.Int(key, value))
	}
}

// Text adds a text, which must be of a bounded set or name a part of the cluster.
func (s Span) Text(key, value string) {
	if s.span != nil {
		s.span.SetAttributes(attribute.String(key, value))
	}
}

// End ends the span; err may be nil. Of an error the code alone is told: its text may
// name a caller's key.
func (s Span) End(err error) {
	if s.span == nil {
		return
	}
	if err != nil {
		s.span.SetStatus(codes.Error, rpc.CodeOf(err).String())
	}
	s.span.End()
}

// Sampled says whether the call that ctx belongs to is being traced.
func (t *Tracer) Sampled(ctx context.Context) bool {
	return t != nil && trace.SpanContextFromContext(ctx).IsSampled()
}

// Alone is client.Config.Alone for a client under this tracer: a call that is being traced
// travels as a call of its own, so that its trace goes on at the AllocSvr. Nil for nil.
func (t *Tracer) Alone() func(context.Context) bool {
	if t == nil {
		return nil
	}
	return t.Sampled
}

// Child begins a span of the call that ctx belongs to; none if that is not traced.
func (t *Tracer) Child(ctx context.Context, name string) (context.Context, Span) {
	if !t.Sampled(ctx) {
		return ctx, Span{}
	}
	return t.start(ctx, name)
}

// Root begins a span of the call that ctx belongs to, or, without one, a trace of its
// own if the sampler wants it.
func (t *Tracer) Root(ctx context.Context, name string) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	return t.start(ctx, name)
}

// Rare is Root for what happens seldom and matters: see RareKey.
func (t *Tracer) Rare(ctx context.Context, name string) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	return t.start(ctx, name, trace.WithAttributes(RareKey.Bool(true)))
}

func (t *Tracer) start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, Span) {
	ctx, span := t.spans.Start(ctx, name, opts...)
	if !span.IsRecording() {
		return ctx, Span{}
	}
	return ctx, Span{span}
}

// Call names a traced call for work that others do for it.
type Call = trace.SpanContext

// Calls collects the traced calls that wait for one piece of work. The zero value is
// none.
type Calls []Call

// Note adds the call that ctx belongs to, if it is traced.
func (t *Tracer) Note(calls Calls, ctx context.Context) Calls {
	if !t.Sampled(ctx) || len(calls) >= maxLinks {
		return calls
	}
	return append(calls, trace.SpanContextFromContext(ctx))
}

// Joint begins a span of work done for many calls: a child of the first, with links to
// the others. None without calls.
func (t *Tracer) Joint(ctx context.Context, name string, calls Calls) (context.Context, Span) {
	if t == nil || len(calls) == 0 {
		return ctx, Span{}
	}
	links := make([]trace.Link, 0, len(calls)-1)
	for _, c := range calls[1:] {
		if !c.Equal(calls[0]) {
			links = append(links, trace.Link{SpanContext: c})
		}
	}
	return t.start(trace.ContextWithSpanContext(ctx, calls[0]), name, trace.WithLinks(links...))
}
