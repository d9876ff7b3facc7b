package arch

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

const (
	module   = "github.com/seqsvr/seqsvr/"
	root     = "../.."
	maxLines = 800
)

// may lists, for each folder, what of this module its shipped files may import. A
// folder stands for everything below it.
var may = map[string][]string{
	"seq":        {},
	"snowflake":  {},
	"proto":      {},
	"exact":      {"seq", "internal/base/counters"},
	"sets":       {"seq"},
	"quorum":     {"seq", "internal/base/clock", "internal/base/wake"},
	"membership": {"seq"},
	"client":     {"seq", "sets", "proto", "internal", "snowflake"},
	"storesvr":   {"seq", "exact", "sets", "proto", "quorum", "internal", "membership", "storesvr"},
	"allocsvr":   {"seq", "exact", "sets", "proto", "quorum", "internal", "membership", "snowflake", "allocsvr"},
	"router":     {"seq", "sets", "proto", "internal", "membership", "client", "snowflake", "router"},
	"internal":   {"seq", "exact", "sets", "proto", "quorum", "membership", "snowflake", "client", "internal"},
	"cmd":        {"seq", "sets", "proto", "quorum", "internal", "membership", "snowflake", "client", "storesvr", "allocsvr", "router", "cmd"},
	"tests":      {"seq", "exact", "sets", "proto", "quorum", "internal", "membership", "snowflake", "client", "storesvr", "allocsvr", "router", "tests"},
	"deploy":     {},
	"examples":   {"client", "seq", "snowflake"},
}

// pure folders use the standard library and this module only.
var pure = []string{"seq", "exact", "sets", "snowflake", "quorum", "storesvr/acceptor", "internal/base/counters", "allocsvr/handover", "allocsvr/arbiter/placement"}

type file struct {
	name string // relative to the root, with slashes
	ast  *ast.File
	text []byte
}

func files(t *testing.T) []file {
	t.Helper()
	var out []file
	set := token.NewFileSet()
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(p, root), string(filepath.Separator)))
		if d.IsDir() {
			if name != "" && (strings.HasPrefix(d.Name(), ".") || name == "bin" || name == "data" || d.Name() == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, ".pb.go") {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(set, p, text, parser.ParseComments)
		if err != nil {
			return err
		}
		out = append(out, file{name, parsed, text})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 50 {
		t.Fatalf("found %d files below %s, expected the whole module", len(out), root)
	}
	return out
}

func under(name, folder string) bool { return name == folder || strings.HasPrefix(name, folder+"/") }

func top(name string) string { return strings.SplitN(name, "/", 2)[0] }

func TestImportsGoDownOnly(t *testing.T) {
	for _, f := range files(t) {
		if strings.HasSuffix(f.name, "_test.go") {
			continue
		}
		allowed, known := may[top(f.name)]
		if !known {
			t.Errorf("%s: folder %s has no rule in this test", f.name, top(f.name))
			continue
		}
		for _, spec := range f.ast.Imports {
			target, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module)
			if !ours || under(target, top(f.name)) {
				continue
			}
			ok := false
			for _, a := range allowed {
				ok = ok || under(target, a)
			}
			if !ok {
				t.Errorf("%s imports %s: %s may use %v", f.name, target, top(f.name), allowed)
			}
		}
	}
}

func TestPureFoldersUseTheStandardLibraryOnly(t *testing.T) {
	for _, f := range files(t) {
		if strings.HasSuffix(f.name, "_test.go") {
			continue
		}
		for _, folder := range pure {
			if !under(path.Dir(f.name), folder) {
				continue
			}
			for _, spec := range f.ast.Imports {
				p := strings.Trim(spec.Path.Value, `"`)
				if strings.Contains(strings.SplitN(p, "/", 2)[0], ".") && !strings.HasPrefix(p, module) {
					t.Errorf("%s imports %s: %s is to stay free of it", f.name, p, folder)
				}
			}
		}
	}
}

func TestFilesFitInTheHead(t *testing.T) {
	for _, f := range files(t) {
		if n := bytes.Count(f.text, []byte("\n")); n > maxLines && !strings.HasSuffix(f.name, "_test.go") {
			t.Errorf("%s has %d lines, expected at most %d", f.name, n, maxLines)
		}
	}
}

func TestNothingIsLeftOpenInTheText(t *testing.T) {
	marks := []string{"TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"}
	for _, f := range files(t) {
		for _, group := range f.ast.Comments {
			for _, mark := range marks {
				if strings.Contains(group.Text(), mark) {
					t.Errorf("%s: a comment has %q", f.name, mark)
				}
			}
		}
	}
}

func TestExportedNamesAreDocumented(t *testing.T) {
	for _, f := range files(t) {
		if strings.HasSuffix(f.name, "_test.go") || f.ast.Name.Name == "main" {
			continue
		}
		for _, decl := range f.ast.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && exportedReceiver(d) && d.Doc == nil {
					t.Errorf("%s: %s has no comment", f.name, d.Name.Name)
				}
			case *ast.GenDecl:
				checkDecl(t, f.name, d)
			}
		}
	}
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	expr := d.Recv.List[0].Type
	if star, ok := expr.(*ast.StarExpr); ok {
		expr = star.X
	}
	if index, ok := expr.(*ast.IndexExpr); ok {
		expr = index.X
	}
	id, ok := expr.(*ast.Ident)
	return ok && id.IsExported()
}

func checkDecl(t *testing.T, name string, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		if s, ok := spec.(*ast.TypeSpec); ok && s.Name.IsExported() && s.Doc == nil && d.Doc == nil {
			t.Errorf("%s: type %s has no comment", name, s.Name.Name)
		}
		if s, ok := spec.(*ast.ValueSpec); ok && s.Names[0].IsExported() && s.Doc == nil && s.Comment == nil && d.Doc == nil {
			t.Errorf("%s: %s has no comment", name, s.Names[0].Name)
		}
	}
}

func TestEveryPackageSaysWhatBelongsInIt(t *testing.T) {
	has := map[string]bool{}
	for _, f := range files(t) {
		dir := path.Dir(f.name)
		if f.ast.Name.Name == "main" || strings.HasSuffix(f.name, "_test.go") {
			continue
		}
		has[dir] = has[dir] || f.ast.Doc != nil
	}
	for dir, ok := range has {
		if !ok {
			t.Errorf("%s has no package comment", dir)
		}
	}
}
