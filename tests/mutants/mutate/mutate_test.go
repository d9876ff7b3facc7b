package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	code = `package p

// Clamp is n, at least 0 and at most top.
func Clamp(n, top int) int {
	if n < 0 && top >= 0 {
		return 0
	}
	n = min(n, top)
	return n
}
`
	tests = `package p

import "testing"

func TestClamp(t *testing.T) {
	for _, row := range [][3]int{{-1, 9, 0}, {5, 9, 5}, {12, 9, 9}} {
		if got := Clamp(row[0], row[1]); got != row[2] {
			t.Errorf("got %d", got)
		}
	}
}
`
)

func newModule(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module m\n\ngo 1.26\n", "p/p.go": code, "p/p_test.go": tests, "known.txt": "# none\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

func TestSurvivorsArePrintedUntilTheyAreKilledOrExplained(t *testing.T) {
	newModule(t)
	o := options{jobs: 2, explained: "known.txt", cache: "cache", killed: true}
	var out strings.Builder
	if err := run(t.Context(), &out, o, []string{"./p"}); !errors.Is(err, errSurvived) {
		t.Fatalf("got %v, want errSurvived\n%s", err, &out)
	}
	want := []string{
		"killed by TestClamp: p/p.go:Clamp:returns at once",
		"killed by TestClamp: p/p.go:Clamp:true: n < 0",
		"killed by TestClamp: p/p.go:Clamp:false: n < 0",
		"SURVIVED line 5: p/p.go:Clamp:other <: n < 0",
		"SURVIVED line 5: p/p.go:Clamp:true: top >= 0",
		"killed by TestClamp: p/p.go:Clamp:other min: min(n, top)",
		"killed by TestClamp: p/p.go:Clamp:without: n = min(n, top)",
		"killed by TestClamp: p/p.go:Clamp:one more: n",
	}
	for _, line := range want {
		if !strings.Contains(out.String(), line+"\n") {
			t.Errorf("does not say %q:\n%s", line, &out)
		}
	}
	var known []string
	for line := range strings.Lines(out.String()) {
		if _, key, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && strings.HasPrefix(line, "SURVIVED") {
			known = append(known, key+" -- it is known")
		}
	}
	if err := os.WriteFile("known.txt", []byte(strings.Join(known, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := run(t.Context(), &out, o, []string{"./p"}); err != nil {
		t.Errorf("all explained: got %v\n%s", err, &out)
	}
	if err := os.WriteFile("known.txt", []byte("p/p.go:Clamp:true: n < 7 -- gone"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), &out, o, []string{"./p"}); !errors.Is(err, errUsage) {
		t.Errorf("an explanation of nothing: got %v, want errUsage", err)
	}
}
