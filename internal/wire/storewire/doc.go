// Package storewire translates the store's messages between package quorum and the
// wire, both ways, for the store and for its clients.
//
// It guarantees that what one side encodes the other decodes to the same values, but for
// durations, which travel in microseconds: a lease asked for, and a time that a caller
// must wait, are rounded up, so that a store never keeps others out for less than the
// holder counts on; the longest lease allowed is rounded down.
// It checks nothing: whether values make sense is the receiver's business.
package storewire
