// Package metrics checks what operators build on: that every metric which an alert, the
// dashboard or the runbook names is there in a real cluster, with those labels and
// values; that no label grows with the callers; and that the probes follow the quorum.
// It has tests only.
package metrics
