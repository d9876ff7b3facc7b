package history

import "errors"

// Errors that Report.Err wraps.
var (
	// ErrDuplicate breaks U: a number of a key was handed out twice.
	ErrDuplicate = errors.New("number handed out twice")
	// ErrRegression breaks M: the numbers of a call are not all above the numbers of a call that had ended
	// before it began.
	ErrRegression = errors.New("smaller number after a larger one")
	// ErrHole breaks X1: no request has a number below where its key stands.
	ErrHole = errors.New("hole in an exact space")
	// ErrTwice breaks X2: a request has got other numbers when it was repeated or looked up, or as
	// if it was a new one.
	ErrTwice = errors.New("two answers to one request")
	// ErrInvalid is a call that cannot be: no number or a reversed range though
	// it succeeded, a number above MaxNumber, numbers though it failed, or an end
	// before its start.
	ErrInvalid = errors.New("impossible call")
)
