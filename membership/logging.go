package membership

import (
	"bytes"
	"context"
	"log"
	"log/slog"
	"strings"
	"time"
)

// maxLogLine cuts memberlist's lines: some print the raw metadata of two nodes.
const maxLogLine = 400

// slogWriter turns the lines of memberlist's own logger into slog records: its errors and warnings
// become warnings (none of them concerns safety), the rest debug. Those that come of keys, with every
// packet, go to faults.
type slogWriter struct {
	log    *slog.Logger
	faults *keyFaults
}

func newStdLogger(l *slog.Logger, faults *keyFaults) *log.Logger {
	return log.New(slogWriter{l, faults}, "", 0)
}

// Write takes one line. It never fails.
func (w slogWriter) Write(p []byte) (int, error) {
	level, text := logLine(string(bytes.TrimSpace(p)))
	if isKeyFault(text) && level == slog.LevelWarn {
		w.faults.note(text, time.Now())
		level = slog.LevelDebug
	}
	if text != "" {
		w.log.Log(context.Background(), level, text, "component", "memberlist")
	}
	return len(p), nil
}

// logLine splits "[LEVEL] memberlist: text".
func logLine(line string) (slog.Level, string) {
	level := slog.LevelDebug
	if rest, ok := strings.CutPrefix(line, "["); ok {
		if name, text, ok := strings.Cut(rest, "] "); ok {
			line = text
			if name == "ERR" || name == "WARN" {
				level = slog.LevelWarn
			}
		}
	}
	line = strings.TrimPrefix(line, "memberlist: ")
	// The conflict delegate reports these with both sessions; memberlist repeats them with every message.
	// Nodes of another cluster are reported likewise.
	if strings.HasPrefix(line, "Conflicting address for") || strings.HasPrefix(line, "ignoring alive message for") || strings.HasPrefix(line, "Failed push/pull merge: incarnation ") {
		level = slog.LevelDebug
	}
	if len(line) > maxLogLine {
		line = strings.ToValidUTF8(line[:maxLogLine], "") + "..."
	}
	return level, line
}
