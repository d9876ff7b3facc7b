package auth

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// ErrOpenFile is a file with a secret that others may read.
var ErrOpenFile = errors.New("file is open to others")

// CheckPrivate is ErrOpenFile for a file that others than its owner may read or write.
func CheckPrivate(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return fmt.Errorf("%w: %s has mode %04o: expected 0600, chmod 600 %s", ErrOpenFile, path, mode, path)
	}
	return nil
}
