// Package bench implements `seqctl bench`, a load generator for one's own cluster, and `seqctl check perf`,
// a short run of it that ends in PASS or FAIL.
//
// Both take numbers of UIDs of their own, from --first-uid on, and never of the cluster's users. While they
// run, they check on a sample that the numbers rise.
//
// What belongs here: the calls, flags, output. What does not: pace, clock and histograms, which are in
// package load.
package bench
