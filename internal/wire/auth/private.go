package auth

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// ErrOpenFile is a file with a secret that others may read.
var ErrOpenFile = errors.New("file is open to others")

// CheckPrivate is ErrOpenFile for a file that others than its owner may read or write. The
// group may read what root owns if this process is in it: so does Kubernetes mount Secrets
// for an fsGroup, and only root could let others into the group.
func CheckPrivate(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	mode := info.Mode().Perm()
	if mode&0o077 == 0 || runtime.GOOS == "windows" {
		return nil
	}
	if mode&0o037 == 0 && lentByRoot(info) {
		return nil
	}
	return fmt.Errorf("%w: %s has mode %04o: expected 0600, chmod 600 %s; or 0440, if root owns it and its group is one of this process's", ErrOpenFile, path, mode, path)
}
