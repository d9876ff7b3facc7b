// Package harness starts real clusters for tests: the binaries of cmd/, built once, a cluster of processes
// that serves, commands that run to their end, hosts on loopback addresses of their own, and daemons inside
// the test's own process.
//
// It guarantees that no process and no binary outlives its test, that a failure is shown with the ends of
// its logs, and that every wait has a generous bound. No test that stands on it asserts how long anything
// takes.
//
// What belongs here: code that two folders of tests need. What does not: a test's actions on a cluster, and
// its verdict, which belong to the test.
package harness
