package localcluster

import (
	"os"
	"regexp"
)

// panics matches the line with which a log tells of a panic: in a handler of gRPC, in a handler of
// HTTP, and at the end of a process.
var panics = regexp.MustCompile(`(?m)^.*(handler panicked|http: panic serving).*$|^(panic|fatal error): .*$`)

// PanicIn returns the first line of a daemon's log that tells of a panic, also where the daemon
// recovered from it; empty if the log has none.
func PanicIn(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return string(panics.Find(text))
}
