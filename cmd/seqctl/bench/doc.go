// Package bench is `seqctl bench`, the load generator for one's own cluster, and
// `seqctl check perf`, a short run of it that ends in PASS or FAIL.
//
// Both take numbers of UIDs of their own, from --first-uid on, and never of the
// cluster's users; while they run they check on a sample that the numbers rise.
//
// What belongs here: what is called, flags, output. Pace, clock and histograms are in
// package load.
package bench
