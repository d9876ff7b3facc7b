// Package otlp samples the spans of a daemon and sends them to a collector, by OTLP over gRPC.
//
// Nothing waits for it. A span that ends goes into a bounded queue, or is dropped and counted. If the
// collector is slow, unavailable or refuses, spans are lost, and the log says so now and then. Close sends
// the rest of the queue, within its context.
//
// Batches and sending are the SDK's. The count of spans is by hand, because the SDK does not report how
// many it dropped. The sampler is by hand too, because the SDK's samplers cannot keep rare events or change
// their ratio.
//
// Package tracing decides which events become spans.
package otlp
