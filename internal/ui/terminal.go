package ui

import (
	"io"
	"os"
)

// defaultWidth is the width, in columns, of a terminal that does not tell its own.
const defaultWidth = 80

// IsTerminal tells whether w is a terminal that somebody may look at.
func IsTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && isTerminal(file)
}

// Colored tells whether colours may be written to w: it is a terminal, TERM is
// not "dumb", and NO_COLOR is unset or empty (see no-color.org).
func Colored(w io.Writer) bool {
	return IsTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

func width(w io.Writer) int {
	if file, ok := w.(*os.File); ok {
		if columns := terminalWidth(file); columns > 0 {
			return columns
		}
	}
	return defaultWidth
}
