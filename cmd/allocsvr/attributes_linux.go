package main

import "syscall"

// childAttributes: a process group of its own, so that a signal to the parent's group
// reaches the child once, through the parent; and a request to leave when the parent
// itself dies, since nothing would end its session early any more.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
