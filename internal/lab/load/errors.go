package load

import "errors"

// Errors of Config.Validate and ParseDist. None can be cured by a retry.
var (
	// ErrConfig: a field of a Config cannot work; the text names it.
	ErrConfig = errors.New("bad load")
	// ErrDist: there is no distribution of that name.
	ErrDist = errors.New("unknown distribution")
)
