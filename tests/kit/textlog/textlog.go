// Package textlog is a log in memory for tests that read it while it is written.
package textlog

import (
	"bytes"
	"sync"
)

// Log is an io.Writer that keeps what was written. The zero Log is ready. Safe for
// concurrent use.
type Log struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String is all that was written by now.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
