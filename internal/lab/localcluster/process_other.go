//go:build !linux

package localcluster

import "syscall"

// childAttributes: a process group of its own, so that Ctrl-C on a terminal reaches
// the parent only, which stops the cluster in order.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// isChild cannot be told here without help of other programs; the file is trusted.
func isChild(pid, parent int) bool { return pid > 0 && parent > 0 }
