// Package traces checks what a collector of OpenTelemetry gets of a whole cluster: one
// trace from a caller over router and AllocSvr to the commits of the stores, what the
// hand-over and the takeover of sections look like, and that there is no span for a
// message of a stream, a renewal, or anything that tells a caller's data. It has tests
// only.
package traces
