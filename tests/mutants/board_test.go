package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A module with all that a switch has to forward: receivers and parameters without names,
// type parameters, named results, what is deferred.
var many = map[string]string{
	"p/p.go": `package p

import "errors"

const most = 7

type Set[K comparable] struct{ of map[K]bool }

func (s *Set[K]) Add(k K, more ...K) (n int) {
	defer func() { n = len(s.of) }()
	for _, k := range append(more, k) {
		s.of[k] = true
	}
	return 0
}

type kind int

func (kind) Name(_ int, _ ...string) string { return "kind" }

func first[K any](all []K) (k K, err error) {
	if len(all) == 0 {
		return k, errors.New("none")
	}
	return all[0], nil
}

var last int

func note(n int) {
	last = n
}

func guarded(f func()) (ok bool) {
	defer func() { ok = recover() == nil }()
	f()
	return true
}

func idle(bool) { note(most) }
`,
	"p/p_test.go": `package p

import "testing"

func TestSet(t *testing.T) {
	s := &Set[string]{of: map[string]bool{}}
	if n := s.Add("a", "b", "c"); n != 3 {
		t.Error(n)
	}
}

func TestName(t *testing.T) {
	if kind(1).Name(1, "x", "y") != "kind" {
		t.Error("no name")
	}
}

func TestFirst(t *testing.T) {
	if k, err := first([]int{3, 4}); k != 3 || err != nil {
		t.Error(k, err)
	}
	if _, err := first[string](nil); err == nil {
		t.Error("of none")
	}
}

func TestNote(t *testing.T) {
	t.Run("row", func(t *testing.T) {
		note(5)
		if last != 5 {
			t.Error(last)
		}
	})
}

func TestGuarded(t *testing.T) {
	if guarded(func() { panic(1) }) || !guarded(func() {}) {
		t.Error("not guarded")
	}
}

func TestAlwaysFails(t *testing.T) { idle(true); t.Error("always") }
`,
}

func change(name, old, new string) mutant {
	return mutant{rule: "r", name: name, file: "p/p.go", edits: []edit{{old, new}}, in: []string{"p"}}
}

var changesOfMany = []struct {
	m        mutant
	switched bool
	by       string
}{
	{change("adds the first only", "range append(more, k)", "range append(more[:0], k)"), true, "p TestSet"},
	{change("the result is late", "n = len(s.of)", "n = 1"), true, "p TestSet"},
	{change("no name", `return "kind"`, `return ""`), true, "p TestName"},
	{change("the last", "all[0]", "all[len(all)-1]"), true, "p TestFirst"},
	{change("notes nothing", "\tlast = n\n", ""), true, "p TestNote/row"},
	{change("panics", "\tlast = n\n", "\tpanic(n)\n"), true, "p TestNote/row"},
	{change("hangs", "\tlast = n\n", "\tselect {}\n"), true, "p TestNote"},
	{change("guards nothing", "ok = recover() == nil", "ok = true"), true, "p TestGuarded"},
	{change("a failing test reaches it", "note(most)", "note(0)"), true, ""},
	{change("a constant", "most = 7", "most = 8"), false, ""},
	{change("the same", "return 0\n", "return 1\n"), true, ""},
}

func newManyBoard(t *testing.T, last map[string]string, cache string) (*board, []mutant) {
	t.Helper()
	l := newSmallLab(t)
	for name, text := range many {
		if err := os.WriteFile(l.path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var all []mutant
	for _, row := range changesOfMany {
		all = append(all, row.m)
	}
	b, err := l.board(all, last, 2, cache)
	if err != nil {
		t.Fatal(err)
	}
	b.patience = 2 * time.Second
	return b, all
}

func TestABoardTellsWhatBecomesOfEveryMutantInOneBinary(t *testing.T) {
	b, _ := newManyBoard(t, nil, "")
	for _, row := range changesOfMany {
		if (b.numbers[row.m.String()] != 0) != row.switched {
			t.Errorf("%v: switched %v, want %v", row.m, !row.switched, row.switched)
		}
		got, err := b.switchOn(row.m)
		if by, _, _ := strings.Cut(got, " ("); by != row.by || err != nil {
			t.Errorf("%v: got %q, %v, want %q", row.m, got, err, row.by)
		}
	}
	if len(b.suites) != 1 {
		t.Errorf("%d suites, want 1", len(b.suites))
	}
}

func TestABoardAsksTheTestOfTheLastTimeFirst(t *testing.T) {
	b, _ := newManyBoard(t, nil, "")
	m := changesOfMany[0].m
	s, err := b.suite("p")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ last, by string }{
		{"p TestSet", "p TestSet"},
		{"p TestSet/row (hang: test timeout)", "p TestSet"},
		{"p TestGone", "p TestSet"},
		{"p TestAlwaysFails", "p TestSet"},
		{"p TestNote/row", "p TestSet"},
		{"q TestSet", "p TestSet"},
	} {
		b.last = map[string]string{m.String(): row.last}
		s.tests, s.order, s.surveyed = map[string]*test{}, nil, sync.Once{}
		if by, err := b.switchOn(m); by != row.by || err != nil {
			t.Errorf("%q: got %q, %v, want %q", row.last, by, err, row.by)
		}
		var asked []string
		for name, test := range s.tests {
			if test.Passes {
				asked = append(asked, name)
			}
		}
		if one := len(asked) == 1; one != (testName(strings.TrimPrefix(row.last, "p ")) == "TestSet") {
			t.Errorf("%q: ran %v", row.last, asked)
		}
	}
}

func TestABoardKeepsWhatTestsReach(t *testing.T) {
	cache := t.TempDir()
	b, all := newManyBoard(t, nil, cache)
	if by, err := b.switchOn(all[0]); by != "p TestSet" || err != nil {
		t.Fatal(by, err)
	}
	again, _ := newManyBoard(t, nil, cache)
	s, err := again.suite("p")
	if err != nil {
		t.Fatal(err)
	}
	names := slices.Sorted(maps.Keys(s.tests))
	if want := []string{"TestFirst", "TestGuarded", "TestName", "TestNote", "TestSet"}; !slices.Equal(names, want) {
		t.Errorf("kept %v, want %v", names, want)
	}
	if by, err := again.switchOn(all[3]); by != "p TestFirst" || err != nil {
		t.Error(by, err)
	}
}

// failsOnce passes with no mutant on, and then fails once.
func TestAFailureOnABoardThatDoesNotComeAgainIsNoCatch(t *testing.T) {
	b, all := newManyBoard(t, nil, "")
	once := strings.Replace(failsOnce, "if _,", "if note(1); os.Getenv(\"MUTANT_ON\") == \"\" {\n\t\treturn\n\t}\n\tif _,", 1)
	if err := os.WriteFile(b.path("p/once_test.go"), []byte(once), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := b.suite("p")
	if err != nil {
		t.Fatal(err)
	}
	one, err := s.test("TestOnce")
	if err != nil || !one.Passes {
		t.Fatal(one, err)
	}
	if by, err := s.fails(all[0].number(), []*test{one}); by != "" || err != nil {
		t.Errorf("got %q, %v, want no catch", by, err)
	}
	if _, err := os.Stat(b.path("p/ran")); err != nil {
		t.Errorf("the test did not fail: %v", err)
	}
}

func TestAMutantOnABoardThatDoesNotCompileIsNamed(t *testing.T) {
	l := newSmallLab(t)
	bad := twiceBecomes("return m")
	good := mutant{rule: "r", name: "good", file: "p/p.go", edits: []edit{{"2 * n", "n"}}, in: []string{"p"}}
	if _, err := l.board([]mutant{bad, good}, nil, 1, ""); err == nil || !strings.Contains(err.Error(), "mutant 1 twice: not twice does not compile") || strings.Contains(err.Error(), "good") {
		t.Errorf("got %v", err)
	}
}

func TestTheFileOfCatchesHoldsForTheSameTextsOnly(t *testing.T) {
	l := newSmallLab(t)
	file := filepath.Join(t.TempDir(), "caught.txt")
	m, gone, survives := twiceBecomes("return n"), change("gone", "a", "b"), twiceBecomes("return n + n")
	survives.name = "equal"
	sum, err := l.sum(m)
	if err != nil {
		t.Fatal(err)
	}
	k, err := readKept(file)
	if err != nil {
		t.Fatal(err)
	}
	k.note(m, verdict{by: "p TestTwice/row (hang: test timeout)"}, sum)
	k.note(gone, verdict{by: "p TestGone"}, sum)
	k.note(survives, verdict{by: "p TestTwice"}, sum)
	k.note(survives, verdict{}, sum)
	if err := k.write([]mutant{m, survives}); err != nil {
		t.Fatal(err)
	}
	if k, err = readKept(file); err != nil || len(k.by) != 1 || k.by[m.String()] != "p TestTwice/row (hang: test timeout)" || !k.holds(m, sum) {
		t.Fatalf("got %v, %v", k, err)
	}
	for _, row := range []struct{ file, text string }{
		{"p/p_test.go", small["p/p_test.go"] + "\nfunc TestMore(*testing.T) {}\n"},
		{"p/p.go", small["p/p.go"] + "\nconst more = 1\n"},
	} {
		if err := os.WriteFile(l.path(row.file), []byte(row.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if other, err := l.sum(m); err != nil || k.holds(m, other) {
			t.Errorf("%s has changed: the verdict holds, %v", row.file, err)
		}
		if err := os.WriteFile(l.path(row.file), []byte(small[row.file]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if again, err := l.sum(m); err != nil || !k.holds(m, again) {
		t.Errorf("nothing has changed: the verdict does not hold, %v", err)
	}
	if err := os.WriteFile(file, []byte("no verdict\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readKept(file); err == nil {
		t.Error("a line that is no verdict is read")
	}
}

func TestPackagesAreTriedInTheirOrder(t *testing.T) {
	all := []mutant{{rule: "a", in: []string{"p"}}, {rule: "b", in: []string{"q", "p"}}, {rule: "c", in: []string{"p"}}}
	for only, want := range map[string]string{"": "acb", "q,p": "bac", "q": "b", "x": "", "p,x": ""} {
		some, err := inPackages(all, only)
		got := ""
		for _, m := range some {
			got += m.rule
		}
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", only, got, err, want)
		}
	}
}
