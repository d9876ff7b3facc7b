package allocsvr

import "errors"

// errInvariant: I1 to I7 would be broken; the process must stop before it hands
// out another number.
var errInvariant = errors.New("invariant broken")

// errTaking: a node is not ready, since nobody has some of the sections that the table gives
// to it. It takes them by itself.
var errTaking = errors.New("sections are being taken")

// Errors of parked counters.
var (
	// ErrParkedCorrupt: the file of parked counters is damaged; it is ignored, the
	// sections start at their base, which leaves gaps and breaks nothing.
	ErrParkedCorrupt = errors.New("parked counters corrupt")
)
