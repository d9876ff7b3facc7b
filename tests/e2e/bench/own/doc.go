// Package own starts clusters of this tree as real processes and loads them with
// `seqctl bench`, a process of its own each time, as a user would.
//
// What belongs here: one measurement. Which ones there are, and how often, does not.
package own
