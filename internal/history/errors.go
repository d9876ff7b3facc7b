package history

import "errors"

// What Report.Err wraps.
var (
	// ErrDuplicate breaks U: a number of a key was handed out twice.
	ErrDuplicate = errors.New("number handed out twice")
	// ErrRegression breaks M: a call got numbers that are not all above those of
	// a call that had ended before it began.
	ErrRegression = errors.New("smaller number after a larger one")
	// ErrInvalid is a call that cannot be: no number or a reversed range though
	// it succeeded, a number above MaxNumber, numbers though it failed, or an end
	// before its start.
	ErrInvalid = errors.New("impossible call")
)
