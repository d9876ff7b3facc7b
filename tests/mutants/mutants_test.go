package main

import (
	"os"
	"path/filepath"
	"testing"
)

// numbered is the number of rules in the list that have a number.
const numbered = 40

func TestEveryRuleOfTheListHasAMutantThatStillApplies(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	numbers := make(map[int]mutant)
	rules, lines, names := make(map[int]string), make(map[string]int), make(map[string]bool)
	for _, m := range mutants() {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.file)))
		if err != nil {
			t.Fatal(err)
		}
		changed, err := m.apply(string(text))
		if err != nil {
			t.Error(err)
		} else if changed == string(text) {
			t.Errorf("mutant %v changes nothing", m)
		}
		if m.rule == "" || m.name == "" || names[m.rule+m.name] {
			t.Errorf("mutant %v is not told apart from others", m)
		}
		names[m.rule+m.name] = true
		if other, has := numbers[m.number()]; has {
			t.Errorf("mutants %v and %v have the same number, change a name", m, other)
		}
		numbers[m.number()] = m
		if line, has := lines[m.rule]; has && line != m.line || rules[m.line] != "" && m.line > 0 && rules[m.line] != m.rule {
			t.Errorf("mutant %v: its rule has two numbers, or its number two rules", m)
		}
		rules[m.line], lines[m.rule] = m.rule, m.line
		if len(m.in) == 0 {
			t.Errorf("mutant %v names no package", m)
		}
		for _, pkg := range m.in {
			if tests, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pkg), "*_test.go")); err != nil || len(tests) == 0 {
				t.Errorf("mutant %v: no tests in %s, %v", m, pkg, err)
			}
		}
	}
	for line := 1; line <= numbered; line++ {
		if rules[line] == "" {
			t.Errorf("rule %d has no mutant", line)
		}
	}
}

func TestTheCatcherIsTheFirstTestThatFailsWithItsRow(t *testing.T) {
	for output, want := range map[string][2]string{
		"=== RUN   TestA\n--- FAIL: TestA (0.00s)\n    --- PASS: TestA/x\n    --- FAIL: TestA/y (0.00s)\n--- FAIL: TestB (0.00s)": {"p TestA/y", "TestA"},
		"--- FAIL: TestA (0.00s)\npanic: oh":                                      {"p TestA", "TestA"},
		"panic: oh\n\ngoroutine 7":                                                {"p (panic: oh)", ""},
		"panic: test timed out after 2m0s\n--- FAIL: TestA (1s)":                  {"p (hang: test timeout)", ""},
		"panic: test timed out after 2m0s\n\trunning tests:\n\t\tTestA (1m59s)\n": {"p TestA (hang: test timeout)", ""},
	} {
		if by, test := catcher("p", []byte(output)); by != want[0] || test != want[1] {
			t.Errorf("%q: got %q, %q, want %q", output, by, test, want)
		}
	}
}

func TestOnlyNamesRulesOfTheList(t *testing.T) {
	all := []mutant{{line: 1, rule: "a"}, {line: 2, rule: "b"}, {line: 2, rule: "b"}, {rule: "c"}}
	for only, want := range map[string]int{"": 4, "2": 2, "1, b": 3, "c": 1, "0": 0, "3": 0, "x": 0, "1,": 0} {
		got, err := chosen(all, only)
		if len(got) != want || (err == nil) != (want > 0) {
			t.Errorf("%q: got %d mutants, %v, want %d", only, len(got), err, want)
		}
	}
}
