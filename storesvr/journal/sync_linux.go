package journal

import (
	"os"

	"golang.org/x/sys/unix"
)

// datasync makes what was written durable, and of the file's metadata only what is needed to
// read it: its times do not matter.
func datasync(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return err
		}
	}
}
