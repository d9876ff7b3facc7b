// Package msglog reads message logs: who wrote to whom, and when. A
// replay takes one sequence of the recipient for each line, so a real log shows
// how a service behaves under real skew.
//
// A log is text, one message a line:
//
//	SENDER RECIPIENT UNIX_SECONDS
//
// separated by spaces or tabs; the first two are 0 to 2^64-1, the third is 0 to
// 2^63-1. The whole may be compressed with gzip. Lines need not be in order of
// time. There are no comments and no empty lines.
//
// The package guarantees that a line is either read exactly as it stands or
// reported with its number, that a log cut short in its compressed form is an
// error and not an early end, and that memory does not grow with the input.
//
// Replaying a log, and what comes of it, belongs elsewhere.
package msglog
