package disk

import (
	"errors"
	"fmt"
)

var (
	// ErrExists is returned by Create when the directory has a database already. It is
	// left as it is.
	ErrExists = errors.New("a database exists already")
	// ErrNoDatabase is returned by Open when there is none. Run init if the store is
	// new; if it is not, the disk is missing or empty and must not vote.
	ErrNoDatabase = errors.New("no database, run init first")
	// ErrCorrupt is returned by Open when the database or a record in it is damaged; the
	// error names it. The store must be replaced.
	ErrCorrupt = errors.New("database is damaged")
	// ErrLocked is returned by Open when another process has the database open.
	ErrLocked = errors.New("database is in use by another process")
	// ErrDirectory is returned by Create and Open when the data directory cannot be used:
	// no permission, read-only, not a directory.
	ErrDirectory = errors.New("data directory cannot be used")
	// ErrLostWrite goes with ErrCorrupt where the disk has an older page in place of one that it had
	// confirmed.
	ErrLostWrite = errors.New("a write to the disk was lost")
	// ErrNewer is returned by Open for a database with something that this build does not know. The
	// disk is sound: start it with the newer build.
	ErrNewer = errors.New("database is of a newer build, start it with that build")
	// ErrFormat is returned by Open for a database of a format that this build does not know.
	ErrFormat = errors.New("unknown database format")
)

// newer is ErrNewer with what this build does not know.
func newer(what string, args ...any) error {
	return fmt.Errorf("%w: it has an unknown %s", ErrNewer, fmt.Sprintf(what, args...))
}
