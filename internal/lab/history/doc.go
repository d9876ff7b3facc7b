// Package history records the calls that clients made and checks afterwards
// that the service kept its promises on every one of them:
//
//	U  no number of a key was handed out twice
//	M  a call that began after another one of its key had ended got larger numbers
//
// and, for requests with an id in spaces of mode=exact, whose logs are asked for at the end,
//
//	X1  every number of a key up to where it stands was taken by a request, or raised over
//	X2  a request has one answer, however often it is repeated, and a lookup tells the same
//
// and it measures what the service may do but should do little of: numbers
// that were skipped, and time that a call had to wait.
//
// Check is exact: it finds a violation if and only if the history holds one,
// in O(n log n). This works without a search for an order of the calls because
// the numbers themselves are the order. Two calls whose times overlap may come
// out either way. A call that failed tells nothing: it may have used up numbers,
// which then count as a gap.
//
// All times of one history must come from one clock. CLOCK_BOOTTIME is one
// clock for all processes of a machine (see package clock); histories of
// several machines can be checked for U together, but not for M.
//
// Making the calls and drawing conclusions belongs elsewhere.
package history
