//go:build !wasip1

package audit

import "syscall"

// noWait has a pipe opened without waiting for its reader.
const noWait = syscall.O_NONBLOCK
