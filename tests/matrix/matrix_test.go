package matrix

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

var update = flag.Bool("update", false, "write the matrix into docs/guarantees.md")

const begin, end = "<!-- matrix: go test ./tests/matrix -run HasNoEmptyCell -update -->\n", "<!-- end of the matrix -->\n"

// suite is every test of the tree, by its name, with the text of its folder's tests.
type suite struct {
	tests map[string][]string // the folders in which there is one
	texts map[string]string   // of the test files of a folder
}

func (s *suite) add(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	s.texts[dir] += string(text)
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
			s.tests[f.Name.Name] = append(s.tests[f.Name.Name], dir)
		}
	}
	return nil
}

func readSuite(t *testing.T, root string) *suite {
	t.Helper()
	s := &suite{map[string][]string{}, map[string]string{}}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || d.Name() != "." && strings.HasPrefix(d.Name(), ".") && path != root):
			return fs.SkipDir
		case strings.HasSuffix(path, "_test.go"):
			return s.add(path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.tests) < 500 {
		t.Fatalf("found %d tests below %s", len(s.tests), root)
	}
	return s
}

// check returns what is wrong with a test that a cell names; empty if nothing is.
func (s *suite) check(name, mentions string) string {
	name, sub, _ := strings.Cut(name, "/")
	dirs := s.tests[name]
	if len(dirs) == 0 {
		return "there is no such test"
	}
	for _, dir := range dirs {
		if strings.Contains(s.texts[dir], mentions) && strings.Contains(s.texts[dir], `"`+sub) {
			return ""
		}
	}
	return "its folder mentions neither " + sub + " nor " + mentions
}

func TestTheMatrixHasNoEmptyCellAndNamesWhatIsThere(t *testing.T) {
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	events, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	all := readSuite(t, root)
	for _, e := range events {
		for _, kind := range Kinds {
			for _, engine := range Engines {
				c := e.At(kind, engine)
				if c == nil {
					t.Errorf("%s of %s on %s: the cell is empty", e.Name, kind, engine)
					continue
				}
				for _, name := range c.Tests {
					if why := all.check(name, c.Refused); why != "" {
						t.Errorf("%s of %s on %s: %s: %s", e.Name, kind, engine, name, why)
					}
				}
			}
		}
	}
	path := filepath.Join(root, "docs", "guarantees.md")
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(doc), begin)
	was, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no part between %q and %q", path, begin, end)
	}
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+Table(events)+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if was != Table(events) {
		t.Errorf("%s says something else than matrix.txt: run go test ./tests/matrix -run HasNoEmptyCell -update", path)
	}
}

// A table with any of these faults is not taken.
func TestATableThatSaysNothingSoundIsRefused(t *testing.T) {
	sound := text
	defer func() { text = sound }()
	for _, bad := range []string{"all: TestX", "event x", "event x | y\nnobody: TestX", "event x | y\nall @paper: TestX", "event x | y\nall", "event x | y\nall: refused TestX"} {
		if text = bad; loads() {
			t.Errorf("%q was taken", bad)
		}
	}
	text = "event x | y\nordinary: TestX"
	events, err := Load()
	if err != nil || events[0].At("strict", "etcd") != nil || events[0].At("ordinary", "etcd") == nil {
		t.Errorf("an empty cell is not seen: %v", err)
	}
	if why := (&suite{}).check("TestThatIsNot", ""); why == "" {
		t.Error("a test that does not exist is not seen")
	}
}

func loads() bool {
	_, err := Load()
	return err == nil
}
