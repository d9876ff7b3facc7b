//go:build unix

package gate

import "syscall"

// MaxFiles returns how many files and connections this process may have open.
func MaxFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return manyFiles
	}
	return int(min(uint64(limit.Cur), manyFiles))
}
