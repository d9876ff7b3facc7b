package membership

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
)

func TestMemberlistsLogBecomesWarningsAndDebug(t *testing.T) {
	for _, c := range []struct {
		line  string
		level slog.Level
		text  string
	}{
		{"[ERR] memberlist: Push/Pull with b failed", slog.LevelWarn, "Push/Pull with b failed"},
		{"[WARN] memberlist: Refuting", slog.LevelWarn, "Refuting"},
		{"[INFO] memberlist: Marking b as failed", slog.LevelDebug, "Marking b as failed"},
		{"[DEBUG] memberlist: Stream", slog.LevelDebug, "Stream"},
		{"[ERR] memberlist: Conflicting address for a", slog.LevelDebug, "Conflicting address for a"},
		{"bare", slog.LevelDebug, "bare"},
		{"[odd", slog.LevelDebug, "[odd"},
	} {
		if level, text := logLine(c.line); level != c.level || text != c.text {
			t.Errorf("%q: got %v %q, want %v %q", c.line, level, text, c.level, c.text)
		}
	}
	if _, text := logLine(strings.Repeat("x", 2*maxLogLine)); len(text) > maxLogLine+3 {
		t.Errorf("got a line of %d bytes", len(text))
	}
	var out bytes.Buffer
	newStdLogger(slog.New(slog.NewTextHandler(&out, nil)), nil).Printf("[WARN] memberlist: careful")
	if got := out.String(); !strings.Contains(got, "level=WARN msg=careful component=memberlist") {
		t.Errorf("got %q", got)
	}
}

func TestTheProfilesCarryTheirTimings(t *testing.T) {
	p, err := ParseProfile("")
	if err != nil || p != ProfileFast {
		t.Fatalf("got %v, %v, want fast", p, err)
	}
	c, err := p.config()
	if err != nil {
		t.Fatal(err)
	}
	got := []any{c.ProbeInterval, c.ProbeTimeout, c.GossipInterval, c.SuspicionMult, c.SuspicionMaxTimeoutMult}
	want := []any{100 * time.Millisecond, 50 * time.Millisecond, 20 * time.Millisecond, 4, 6}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("fast, value %d: got %v, want %v", i, got[i], want[i])
		}
	}
	for name, def := range map[string]*memberlist.Config{"lan": memberlist.DefaultLANConfig(), "wan": memberlist.DefaultWANConfig()} {
		p, err := ParseProfile(name)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := p.config(); err != nil || c.ProbeInterval != def.ProbeInterval || c.SuspicionMult != def.SuspicionMult {
			t.Errorf("%s: got %+v, %v", name, c, err)
		}
	}
	_, err = ParseProfile("moon")
	wantErr(t, err, ErrUnknownProfile)
}
