package daemon

import (
	"fmt"
	"io"
	"log/slog"
)

// NewLogger returns a logger that writes one line a record to w, stderr for a
// daemon. level is debug, info, warn or error (or such as "info+1"), format is
// text or json; anything else is ErrUsage. Lines below the returned level are
// dropped; it may be moved at run time, from any goroutine.
func NewLogger(w io.Writer, level, format string) (*slog.Logger, *slog.LevelVar, error) {
	threshold := new(slog.LevelVar)
	if err := threshold.UnmarshalText([]byte(level)); err != nil {
		return nil, nil, Usage(fmt.Errorf("log level %q: expected debug, info, warn or error", level))
	}
	var handler func(w io.Writer, options *slog.HandlerOptions) slog.Handler
	switch format {
	case "text":
		handler = func(w io.Writer, options *slog.HandlerOptions) slog.Handler { return slog.NewTextHandler(w, options) }
	case "json":
		handler = func(w io.Writer, options *slog.HandlerOptions) slog.Handler { return slog.NewJSONHandler(w, options) }
	default:
		return nil, nil, Usage(fmt.Errorf("log format %q: expected text or json", format))
	}
	if out, queued := w.(*Output); queued {
		out.setNote(func(w io.Writer) slog.Handler { return handler(w, nil) })
	}
	return slog.New(handler(w, &slog.HandlerOptions{Level: threshold})), threshold, nil
}
