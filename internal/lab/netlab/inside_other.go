//go:build !linux

package netlab

import "syscall"

// insideAttributes: a process group of its own, so that Ctrl-C reaches it once, through
// this process.
func insideAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
