package ui

import (
	"io"
	"os"

	"golang.org/x/term"
)

// defaultWidth is the width, in columns, of a terminal that does not tell its own.
const defaultWidth = 80

// IsTerminal tells whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Colored tells whether colours may be written to w: it is a terminal, TERM is
// not "dumb", and NO_COLOR is unset or empty (see no-color.org).
func Colored(w io.Writer) bool {
	return IsTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

func width(w io.Writer) int {
	if file, ok := w.(*os.File); ok {
		if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
			return columns
		}
	}
	return defaultWidth
}
