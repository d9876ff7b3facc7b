// Package load makes load and measures what comes back.
//
// A run has callers, each with one call under way at a time, for a warm-up and then a
// measured time. Without a rate every caller calls again at once (closed loop). With
// a rate each caller has a timetable, and a call that the service delayed is counted
// from the moment it was due, not from the moment it could be sent: a stall is felt by
// all calls that were due in it, however few could be sent (no coordinated omission).
// What the generator itself overslept is not counted.
//
// In a closed loop the time of a sample of the calls may be taken instead of all
// (Config.Sample): two readings of the clock cost a tenth of a call among many callers.
// All calls are counted.
//
// Latencies go into HDR histograms, three significant digits, one a processor, merged
// at the end. Recorder is the one histogram of latencies in this module.
//
// What belongs here: pace, clock, histograms, draws of UIDs, the check that numbers
// rise. What is called belongs to the caller of Run.
package load
