//go:build !linux

package ui

import "os"

// isTerminal takes any character device for a terminal, but for the null device.
func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && file.Name() != os.DevNull
}

func terminalWidth(*os.File) int { return 0 }
