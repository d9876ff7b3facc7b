// Package load makes load and measures the answers.
//
// A run has callers, each with one call under way at a time, for a warm-up and then a measured time.
// Without a rate every caller calls again at once (closed loop). With a rate each caller has a timetable. A
// call that the service delayed is counted from the moment it was due, not from the moment it could be
// sent. So a stall counts for all calls that were due in it, even if few could be sent (no coordinated
// omission). The time that the generator itself overslept is not counted.
//
// A closed loop may take the time of only a sample of the calls (Config.Sample), because two readings of
// the clock cost a tenth of a call among many callers. It counts all calls.
//
// Latencies go into HDR histograms, three significant digits, one a processor, merged at the end. Recorder
// is the one histogram of latencies in this module.
//
// What belongs here: pace, clock, histograms, draws of UIDs, the check that numbers rise. What does not:
// the calls, which belong to the caller of Run.
package load
