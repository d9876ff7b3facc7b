//go:build unix

package auth

import (
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// lentByRoot tells whether root owns a file, this process is another's, and in its group.
func lentByRoot(info fs.FileInfo) bool {
	of, ok := info.Sys().(*syscall.Stat_t)
	if !ok || of.Uid != 0 || os.Geteuid() == 0 {
		return false
	}
	groups, err := os.Getgroups()
	return err == nil && slices.Contains(append(groups, os.Getegid()), int(of.Gid))
}
