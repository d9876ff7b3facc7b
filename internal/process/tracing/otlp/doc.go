// Package otlp samples the spans of a daemon and sends them to a collector, by OTLP over
// gRPC.
//
// It guarantees that nothing waits for it: a span that ends goes into a bounded queue or
// is thrown away, and counted. A collector that is slow, away or refuses costs spans and
// a line in the log now and then. Close sends what is in the queue, within its context.
//
// Batches are the SDK's batch processor, sending is the SDK's exporter. By hand are the
// count around them, since neither tells how many spans it dropped, and the sampler, since
// the SDK's know no rare things and no ratio that changes.
//
// What becomes a span is package tracing's.
package otlp
