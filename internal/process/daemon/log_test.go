package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
)

func TestTheLoggerWritesTheChosenFormatFromTheChosenLevelOn(t *testing.T) {
	var out bytes.Buffer
	log, level, err := NewLogger(&out, "warn", "json")
	if err != nil {
		t.Fatal(err)
	}
	log.Info("quiet")
	log.Warn("loud", "section", 17)
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("%v in %q", err, out.String())
	}
	if line["msg"] != "loud" || line["section"] != 17.0 {
		t.Errorf("got %v, want msg loud, section 17", line)
	}

	out.Reset()
	level.Set(slog.LevelDebug)
	log.Debug("now heard")
	if !strings.Contains(out.String(), "now heard") {
		t.Errorf("got %q after the level was lowered", out.String())
	}

	out.Reset()
	log, _, err = NewLogger(&out, "info", "text")
	if err != nil {
		t.Fatal(err)
	}
	log.Info("plain", "epoch", 3)
	if !strings.Contains(out.String(), "level=INFO msg=plain epoch=3\n") {
		t.Errorf("got %q, want a text line", out.String())
	}
}

func TestAnUnknownLevelOrFormatIsAUsageError(t *testing.T) {
	for _, pair := range [][2]string{{"loud", "text"}, {"", "json"}, {"info", "xml"}, {"info", ""}} {
		if _, _, err := NewLogger(io.Discard, pair[0], pair[1]); !errors.Is(err, ErrUsage) {
			t.Errorf("%q: got %v, want %v", pair, err, ErrUsage)
		}
	}
}
