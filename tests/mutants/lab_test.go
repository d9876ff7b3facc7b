package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
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
	l.seeds = 0 // the module has no simulator
	t.Cleanup(l.close)
	return l
}

func twiceBecomes(body string) mutant {
	return mutant{line: 1, rule: "twice", name: "not twice", file: "p/p.go", edits: []edit{{old: "return 2 * n", new: body}}, in: []string{"p"}}
}

func TestALabTellsWhatBecomesOfAMutant(t *testing.T) {
	l := newSmallLab(t)
	for _, row := range []struct{ name, body, by, err string }{
		{"one that a test sees", "return n", "p TestTwice", ""},
		{"one that no test sees", "return n + 2", "", ""},
		{"one that panics", "panic(n)", "p TestTwice", ""},
		{"one that does not compile", "return m", "", "does not compile"},
	} {
		m := twiceBecomes(row.body)
		got, err := l.try(m, false)
		if got.by != row.by || got.caught(m) != (row.by != "") || (err == nil) != (row.err == "") || err != nil && !strings.Contains(err.Error(), row.err) {
			t.Errorf("%s: got %+v, %v, want %q, %q", row.name, got, err, row.by, row.err)
		}
		if text, err := os.ReadFile(l.path("p/p.go")); err != nil || string(text) != small["p/p.go"] {
			t.Errorf("%s: it is in the copy: %q, %v", row.name, text, err)
		}
	}
}

func TestALabRefusesMutantsThatProveNothing(t *testing.T) {
	l := newSmallLab(t)
	stale := twiceBecomes("return n")
	stale.edits[0].old = "return 3 * n"
	if _, err := l.applied(stale); !errors.Is(err, errStale) {
		t.Errorf("a text that is gone: got %v, want errStale", err)
	}
	good := twiceBecomes("return n")
	if _, err := l.applied(good); err != nil {
		t.Error(err)
	}
	if err := l.passes("p", "p TestTwice/row"); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(l.path("p/p.go"), []byte(strings.Replace(small["p/p.go"], "2 *", "3 *", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	bad := twiceBecomes("return n")
	bad.edits[0].old = "return 3 * n"
	for _, by := range []string{"p TestTwice", "p (panic: oh)"} {
		if err := l.passes("p", by); err == nil || !strings.Contains(err.Error(), "fail as they are") {
			t.Errorf("%s fails without a mutant: got %v", by, err)
		}
	}
	if got, err := l.try(bad, false); err == nil || !strings.Contains(err.Error(), "fail as they are") {
		t.Errorf("a catch by a test that fails without a mutant: got %v, %v", got, err)
	}
}

// A test that fails at its first run only, as one may on a busy machine.
const failsOnce = `package p

import (
	"os"
	"testing"
)

func TestOnce(t *testing.T) {
	if _, err := os.Stat("ran"); err != nil {
		t.Error("the first run", os.WriteFile("ran", nil, 0o600))
	}
}
`

func TestAFailureThatDoesNotComeAgainIsNoCatch(t *testing.T) {
	l := newSmallLab(t)
	if err := os.WriteFile(l.path("p/once_test.go"), []byte(failsOnce), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := l.try(twiceBecomes("return n + n"), false); err != nil || got.by != "" {
		t.Errorf("got %+v, %v, want a survivor", got, err)
	}
}

func TestTheLastLineCountsRulesAndASurvivorFailsTheRun(t *testing.T) {
	both := mutant{rule: "b", name: "y", sim: true}
	for _, row := range []struct {
		todo     []mutant
		verdicts []verdict
		want     string
		err      error
	}{
		{[]mutant{{rule: "a"}, both}, []verdict{{by: "p"}, {by: "p", sim: "s"}}, "2 of 2 caught, by 2 mutants\n", nil},
		{[]mutant{{rule: "a", name: "x"}, {rule: "a"}}, []verdict{{ran: true}, {by: "p"}},
			"not caught: a: x: SURVIVED its packages, SURVIVED the simulation\n0 of 1 caught, by 2 mutants\n", errSurvived},
		{[]mutant{{rule: "a"}, both}, []verdict{{sim: "s"}, {by: "p", ran: true}},
			"not caught: b: y: caught by p, SURVIVED the simulation\n1 of 2 caught, by 2 mutants\n", errSurvived},
	} {
		var out strings.Builder
		if err := summary(&out, row.todo, row.verdicts); !errors.Is(err, row.err) {
			t.Errorf("got %v, want %v", err, row.err)
		}
		if out.String() != row.want {
			t.Errorf("got %q, want %q", out.String(), row.want)
		}
	}
}

func TestASimulationTellsItsFirstViolation(t *testing.T) {
	for output, want := range map[string]string{
		"RESULT {\"Seed\":1}\nRESULT {\"Seed\":2}\n":                                                               "",
		"RESULT {\"Seed\":1}\nRESULT {\"Seed\":2,\"Violations\":[{\"Kind\":\"U\",\"At\":1,\"Text\":\"twice\"}]}\n": "seed 2: U at 1.000000 s: twice",
		"RESULT {\"Seed\":1}\npanic: test timed out after 30m0s\n":                                                 "",
		"RESULT {\"Seed\":1}\npanic: I1\n":                                                                         "seed 5001: panic: I1",
	} {
		if got, err := violation([]byte(output), 2, nil); got != want || err != nil {
			t.Errorf("%q: got %q, %v, want %q", output, got, err, want)
		}
	}
	if _, err := violation([]byte("RESULT {\"Seed\":1}\n"), 2, nil); err == nil {
		t.Error("a simulation that broke off is taken for one without violations")
	}
}
