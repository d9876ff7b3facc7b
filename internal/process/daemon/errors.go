package daemon

import (
	"errors"
	"os"
)

// ErrUsage is a daemon that was called wrongly: flags, environment or config
// file must change before it can start. Returned by the run function, usually
// through Usage, it makes Main return ExitUsage.
var ErrUsage = errors.New("usage")

// usageError keeps the text of its cause as it is: "usage" in front of it would
// tell a reader nothing.
type usageError struct{ cause error }

func (e *usageError) Error() string   { return e.cause.Error() }
func (e *usageError) Unwrap() []error { return []error{ErrUsage, e.cause} }

// Usage marks err as ErrUsage without changing its text. Usage(nil) is nil.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return &usageError{cause: err}
}

// Stopped is the cause (context.Cause) of a run whose context ended by a signal.
type Stopped struct{ Signal os.Signal }

// Error names the signal.
func (s *Stopped) Error() string { return "stopped by signal: " + s.Signal.String() }
