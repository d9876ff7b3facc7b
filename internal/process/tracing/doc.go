// Package tracing is the spans of the daemons: what a call went through, and what it
// waited for. It is the only package, with otlp below it, that knows OpenTelemetry.
//
// It guarantees that
//
//   - a nil *Tracer costs nothing: no span, no allocation, no interceptor;
//   - no span is made for a number or for a message of a stream: spans are for unary
//     calls, HTTP requests, and what these wait for;
//   - the W3C trace context goes with every call that has one, so that a trace leads
//     from a router over an AllocSvr to the stores; calls of the background have none
//     and get none, renewals of leases and probes never;
//   - no span says whose number it was: no UID, key or tag is among the attributes.
//
// The interceptors are by hand. OpenTelemetry's otelgrpc is called for every message of a
// stream, even of those that its filter leaves out (four allocations more a message), and
// puts the text of an error into the span; otelhttp puts the path of a request there, which
// may name a key.
//
// Starting, sampling and sending spans is package otlp's. Packages client, seq,
// snowflake, quorum and proto import neither: a program with the SDK compiles none of it.
package tracing
