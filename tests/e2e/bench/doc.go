// Command bench measures this tree beside other installed servers, in turns, and writes docs/benchmarks.md;
// `make bench` runs it. Environment:
//
//	BENCH_SECONDS  of one measurement, 2
//	BENCH_RUNS     rounds over all subjects, 5
//	BENCH_IDLE     awake: keep the processors from deep idling for all that is measured,
//	               where that is allowed; machine: leave it to the machine
//	BENCH_ONLY     ids of subjects, by their beginnings, separated by commas, such as
//	               "next/,redis/none/"; "growth" for how cost grows; if empty, all
//
// With -against REVISION (make bench AGAINST=v0.1.0) it measures this tree beside another revision of it
// instead, in turn, and prints the ratios.
//
// Everything it starts ends with it. Data lie below bin/bench, on the repository's disk, and are removed.
package main
