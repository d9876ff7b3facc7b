//go:build !linux

package main

import "syscall"

// childAttributes: a process group of its own, so that a signal to the parent's group
// reaches the child once, through the parent.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
