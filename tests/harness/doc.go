// Package harness starts real clusters for tests: the binaries of cmd/, built once, a
// cluster of processes that serves, commands that run to their end, hosts on loopback
// addresses of their own, and daemons inside the test's own process.
//
// It guarantees that no process and no binary outlives its test, that what failed is
// shown with the ends of its logs, and that every wait is bounded, generously: no test
// that stands on it asserts how long anything takes.
//
// What belongs here is what two folders of tests need. What a test does with a cluster,
// and its verdict, belong to the test.
package harness
