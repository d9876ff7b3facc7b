package storesvr

import "errors"

var (
	// ErrConfig is returned by Init, New and Config.Validate for a setting that cannot
	// be used; the text names it.
	ErrConfig = errors.New("bad configuration")
	// ErrCommit is returned by Run after a commit failed, or a register invariant broke:
	// what memory shows may not be on disk. Exit the process; a restart reads the disk again.
	ErrCommit = errors.New("store cannot go on")
)
