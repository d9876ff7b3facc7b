package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The module of a test: one function, one test.
var small = map[string]string{
	"go.mod":      "module small\n\ngo 1.26\n",
	"p/p.go":      "package p\n\nfunc Twice(n int) int { return 2 * n }\n",
	"p/p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestTwice(t *testing.T) {\n\tif Twice(2) != 4 {\n\t\tt.Error(\"not 4\")\n\t}\n}\n",
}

func newSmallLab(t *testing.T) *lab {
	t.Helper()
	root := t.TempDir()
	for name, text := range small {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := newLab(t.Context(), root, io.Discard, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	return l
}

func twiceBecomes(body string) mutant {
	return mutant{line: 1, name: "twice", file: "p/p.go", edits: []edit{{old: "return 2 * n", new: body}}, pkg: "p", tests: []string{"TestTwice"}}
}

func TestALabTellsWhatBecomesOfAMutant(t *testing.T) {
	l := newSmallLab(t)
	for _, row := range []struct {
		name, body string
		want       verdict
		err        string
	}{
		{"one that a test sees", "return n", verdict{true, "p TestTwice"}, ""},
		{"one that no test sees", "return n + 2", verdict{}, ""},
		{"one that panics", "panic(n)", verdict{true, "p TestTwice"}, ""},
		{"one that does not compile", "return m", verdict{}, "does not compile"},
	} {
		got, err := l.try(twiceBecomes(row.body))
		if got != row.want || (err == nil) != (row.err == "") || err != nil && !strings.Contains(err.Error(), row.err) {
			t.Errorf("%s: got %+v, %v, want %+v, %q", row.name, got, err, row.want, row.err)
		}
		if text, err := os.ReadFile(l.path("p/p.go")); err != nil || string(text) != small["p/p.go"] {
			t.Errorf("%s: it is still there: %q, %v", row.name, text, err)
		}
	}
}

func TestALabRefusesMutantsThatProveNothing(t *testing.T) {
	l := newSmallLab(t)
	stale := twiceBecomes("return n")
	stale.edits[0].old = "return 3 * n"
	if err := l.applies(stale); !errors.Is(err, errStale) {
		t.Errorf("a text that is gone: got %v, want errStale", err)
	}
	missing := twiceBecomes("return n")
	missing.tests = []string{"TestThrice"}
	if err := l.baseline([]mutant{missing}); !errors.Is(err, errStale) {
		t.Errorf("a test that is gone: got %v, want errStale", err)
	}
	good := twiceBecomes("return n")
	if err := errors.Join(l.applies(good), l.baseline([]mutant{good})); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(l.path("p/p.go"), []byte(strings.Replace(small["p/p.go"], "2 *", "3 *", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.baseline([]mutant{good}); err == nil || !strings.Contains(err.Error(), "fail as they are") {
		t.Errorf("a test that fails without a mutant: got %v", err)
	}
}

func TestTheLastLineCountsLinesAndASurvivorFailsTheRun(t *testing.T) {
	all, err := chosenLines("")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		survived map[int]bool
		missing  int
		want     error
	}{{nil, 0, nil}, {map[int]bool{3: true, 7: true}, 2, errSurvived}} {
		var out strings.Builder
		if err := summary(&out, all, row.survived); !errors.Is(err, row.want) {
			t.Errorf("got %v, want %v", err, row.want)
		}
		tried := lines - len(unbuilt)
		want := []string{strconv.Itoa(tried-row.missing) + " of " + strconv.Itoa(tried) + " caught", ""}
		if len(unbuilt) > 0 {
			want[1] = ", " + strconv.Itoa(len(unbuilt)) + " not built yet"
		}
		if got := out.String(); got != want[0]+want[1]+"\n" {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
