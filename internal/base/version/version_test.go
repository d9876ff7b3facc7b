package version

import (
	"encoding/json"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const hash = "0123456789abcdef0123456789abcdef01234567"

func TestFactsComeFromTheLinkerThenFromTheGoCommandThenAreUnknown(t *testing.T) {
	checkout := func(modified string) *debug.BuildInfo {
		return &debug.BuildInfo{
			Main: debug.Module{Version: "(devel)"},
			Settings: []debug.BuildSetting{
				{Key: "vcs.revision", Value: hash},
				{Key: "vcs.time", Value: "2026-01-02T03:04:05Z"},
				{Key: "vcs.modified", Value: modified},
			},
		}
	}
	tests := []struct {
		name    string
		stamped Info
		build   *debug.BuildInfo
		want    Info
	}{
		{"nothing is known", Info{}, nil,
			Info{Version: "devel", Commit: "unknown", Date: "unknown"}},
		{"a checkout", Info{}, checkout("false"),
			Info{Version: "devel", Commit: hash, Date: "2026-01-02T03:04:05Z"}},
		{"a checkout with changes", Info{}, checkout("true"),
			Info{Version: "devel", Commit: hash + "-dirty", Date: "2026-01-02T03:04:05Z"}},
		{"go install", Info{}, &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}},
			Info{Version: "v1.2.3", Commit: "unknown", Date: "unknown"}},
		{"a stamped release", Info{Version: "v2.0.0", Commit: "abc", Date: "today"}, checkout("true"),
			Info{Version: "v2.0.0", Commit: "abc", Date: "today"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.want.Go, test.want.Protocol = runtime.Version(), Protocol
			if diff := cmp.Diff(test.want, resolve(test.stamped, test.build)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestTheLineShortensTheCommitAndKeepsItsMark(t *testing.T) {
	info := Info{Version: "v1.2.3", Commit: hash + "-dirty", Date: "2026-01-02T03:04:05Z", Go: "go1.26.0", Protocol: 1}
	want := "v1.2.3 (commit 0123456789ab-dirty, 2026-01-02T03:04:05Z, go1.26.0, protocol 1)"
	if got := info.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTheJSONHasTheFiveKeysAndEndsTheLine(t *testing.T) {
	text := JSON()
	if !strings.HasSuffix(string(text), "}\n") {
		t.Errorf("%q does not end in a newline", text)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	info := Get()
	want := map[string]any{
		"version": info.Version, "commit": info.Commit, "date": info.Date, "go": info.Go, "protocol": float64(Protocol),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if String() != info.String() {
		t.Errorf("String() = %q, want %q", String(), info)
	}
}
