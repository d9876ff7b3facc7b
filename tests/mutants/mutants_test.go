package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestEveryLineOfTheListHasAMutantThatStillApplies(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	has := make(map[int]bool)
	for _, m := range mutants() {
		has[m.line] = true
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.file)))
		if err != nil {
			t.Fatal(err)
		}
		changed, err := m.apply(string(text))
		if err != nil {
			t.Error(err)
		} else if changed == string(text) {
			t.Errorf("mutant %d (%s) changes nothing", m.line, m.name)
		}
		if len(m.tests) == 0 || m.pkg == "" {
			t.Errorf("mutant %d (%s) names no test", m.line, m.name)
		}
	}
	for line := 1; line <= lines; line++ {
		if _, waits := unbuilt[line]; has[line] == waits {
			t.Errorf("line %d: has a mutant: %v, not built: %v", line, has[line], waits)
		}
	}
	if n := len(storeMutants) + len(quorumMutants) + len(ownerMutants) + len(careMutants); n != len(mutants()) {
		t.Errorf("%d of %d mutants have a line from 1 to %d", len(mutants()), n, lines)
	}
}

func TestTheCatcherIsTheFirstTestThatFailsWithItsRow(t *testing.T) {
	m := mutant{pkg: "p"}
	for output, want := range map[string]string{
		"=== RUN   TestA\n--- FAIL: TestA (0.00s)\n    --- PASS: TestA/x\n    --- FAIL: TestA/y (0.00s)\n--- FAIL: TestB (0.00s)": "p TestA/y",
		"--- FAIL: TestA (0.00s)\npanic: oh":                     "p TestA",
		"panic: oh\n\ngoroutine 7":                               "p (panic: oh)",
		"panic: test timed out after 2m0s\n--- FAIL: TestA (1s)": "p (hang: test timeout)",
	} {
		if got := catcher(m, []byte(output)); got != want {
			t.Errorf("%q: got %q, want %q", output, got, want)
		}
	}
}

func TestOnlyNamesLinesOfTheList(t *testing.T) {
	for only, want := range map[string]int{"": lines, "3": 1, "3, 7": 2, "0": 0, "35": 0, "x": 0, "3,": 0} {
		got, err := chosenLines(only)
		if len(got) != want || (err == nil) != (want > 0) {
			t.Errorf("%q: got %d lines, %v, want %d", only, len(got), err, want)
		}
	}
}
