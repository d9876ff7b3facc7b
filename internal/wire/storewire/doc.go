// Package storewire translates the store's messages between package quorum and the wire, both ways, for the
// store and for its clients.
//
// Decoding returns the encoded values. Only durations change, because they travel in microseconds. The
// length of a requested lease, and the time that a caller must wait, are rounded up. So a store keeps
// others out for at least as long as the holder counts on. The longest lease allowed is rounded down.
//
// It checks nothing: the receiver decides whether values make sense.
package storewire
