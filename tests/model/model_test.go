package main

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

// A few seconds of it, so that the models and their runner stay alive: make model is the
// whole.
func TestTheModelOfRestoresIsCleanAndItsMutantIsFound(t *testing.T) {
	if err := haveTools(); err != nil {
		t.Skip(err)
	}
	var out bytes.Buffer
	if err := run(t.Context(), &out, "full", "restore,unknown-at-zero,lease-less,workers-floor-zero", t.TempDir()); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if want := "model: 1 of 1 configurations clean, 3 of 3 mutants found"; !strings.Contains(out.String(), want) {
		t.Errorf("got %q, want a line %q", out.String(), want)
	}
}

func TestAViolatedRuleAndAMutantThatIsNotFoundAreErrors(t *testing.T) {
	for _, r := range []result{
		{config: config{kind: clean}, found: true},
		{config: config{kind: mutant}},
		{config: config{kind: limit}},
		{config: config{kind: clean}, err: errNotDone},
		{config: config{kind: mutant}, found: true, err: errOther},
	} {
		if _, err := sum([]result{r}); !errors.Is(err, errWrong) {
			t.Errorf("%+v: got %v, want %v", r, err, errWrong)
		}
	}
	if _, err := sum([]result{{config: config{kind: clean}}, {config: config{kind: mutant}, found: true}}); err != nil {
		t.Errorf("as it must be: %v", err)
	}
}

func TestAnExplorationThatWasCutShortIsNotClean(t *testing.T) {
	const whole = "State-vector 44 byte, depth reached 63, errors: 0\n   348797 states, stored\n  165.120\ttotal actual memory usage\n"
	if r := read(whole); r.found || r.states != 348797 || r.depth != 63 || r.memory != 165 || r.err != nil {
		t.Errorf("whole: got %v", r)
	}
	for _, cut := range []string{"Warning: Search not completed\n" + whole, "error: max search depth too small\n" + whole, "pan: reached -DMEMLIM bound\n"} {
		if r := read(cut); !errors.Is(r.err, errNotDone) {
			t.Errorf("%q: got %v, want %v", cut, r.err, errNotDone)
		}
	}
	if r := read(strings.Replace(whole, "errors: 0", "errors: 1", 1)); !errors.Is(r.err, errOther) {
		t.Errorf("another error: got %v, want %v", r.err, errOther)
	}
}

func TestNamesOfConfigurationsAreDistinctAndEveryMutantOfTheModelsIsExplored(t *testing.T) {
	var names []string
	defined := map[string]bool{}
	for _, c := range table {
		if slices.Contains(names, c.name) {
			t.Errorf("%s twice", c.name)
		}
		names = append(names, c.name)
		for _, d := range strings.Fields(c.defines) {
			defined[d] = true
		}
	}
	entries, err := models.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := models.ReadFile(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range strings.FieldsFunc(string(text), func(r rune) bool { return r != '_' && (r < 'A' || r > 'Z') }) {
			if strings.HasPrefix(word, "M_") && !defined[word] {
				t.Errorf("%s: no configuration has %s", e.Name(), word)
				defined[word] = true
			}
		}
	}
}
