package localcluster

import "errors"

// Errors of this package. None is worth a retry without a change, but ErrNotReady.
var (
	// ErrConfig: a Config that cannot work; the text names the field.
	ErrConfig = errors.New("bad cluster configuration")
	// ErrInUse: another cluster runs in the directory.
	ErrInUse = errors.New("directory in use by another cluster")
	// ErrAddrInUse: an address that was asked for is taken.
	ErrAddrInUse = errors.New("address in use")
	// ErrState: the state file is unreadable, or missing beside stores that hold data.
	ErrState = errors.New("bad cluster state")
	// ErrNoPorts: no block of free loopback ports was found.
	ErrNoPorts = errors.New("no free ports")
	// ErrNotRunning: a signal for a process that does not run.
	ErrNotRunning = errors.New("process not running")
	// ErrRunning: a start of a process that runs.
	ErrRunning = errors.New("process runs already")
	// ErrExited: a process ended where it should have gone on; its log says why.
	ErrExited = errors.New("process ended")
	// ErrNotReady: the cluster did not serve before the context ended. Waiting again is safe.
	ErrNotReady = errors.New("cluster not ready")
)
