package counters

import "errors"

var (
	// ErrVersion is returned by Decode for counters written in a form this
	// build does not know. Retrying with the same bytes cannot help.
	ErrVersion = errors.New("unknown version of encoded counters")

	// ErrCorrupt is returned by Decode for bytes that AppendBinary cannot have
	// written: cut short, changed on the way, or never counters. Asking the
	// sender again is safe.
	ErrCorrupt = errors.New("corrupt encoded counters")
)
