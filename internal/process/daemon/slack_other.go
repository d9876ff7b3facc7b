//go:build !linux

package daemon

// Slacken does nothing here.
func Slacken() {}
