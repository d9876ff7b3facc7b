package msglog

import "errors"

var (
	// ErrBadLine is a line that is no message. The reader stands behind it and
	// may go on.
	ErrBadLine = errors.New("bad line")
	// ErrLineTooLong is a line above MaxLine bytes. The reader stands behind it
	// and may go on.
	ErrLineTooLong = errors.New("line too long")
)
