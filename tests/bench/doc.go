// Package bench measures paths that go through more than one tier, on real stores
// over loopback. Benchmarks here assert nothing about time.
package bench
