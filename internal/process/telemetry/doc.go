// Package telemetry shows an operator the state of a daemon. It has the admin listener with /metrics,
// /livez, /readyz and, if asked for, /debug/pprof/, and the kinds of metrics that daemons export.
//
// Every metric of this module begins with seq_ and is in a base unit: seconds, bytes, plain counts. The
// values of a label are bounded by the configuration of the cluster, and never a UID, a key or a caller's
// address. Counting in a call costs one or two atomic additions. All other metrics are read from the daemon
// at the moment of the scrape.
//
// The histogram is by hand. A sample of the hot path stands for eight batches, and one Add counts it as
// eight in about 9 ns. Prometheus' histogram needs eight calls of Observe, which take 105 to 330 ns.
//
// The metrics of a daemon, and their meaning, belong in the daemon's own metrics.go. Package client and its
// imports do not use this package, so that an SDK user compiles none of it.
package telemetry
