package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
)

// switchFile is added to every package with switched mutants. MUTANT_ON is the number of
// the mutant that is on; MUTANT_REACHED names a file for the numbers that a process came by.
const switchFile = "zz_mutants.go"

const switchText = `package PACKAGE

import (
	mutantOS "os"
	mutantConv "strconv"
	mutantSync "sync"
)

var (
	mutantActive, _ = mutantConv.Atoi(mutantOS.Getenv("MUTANT_ON"))
	mutantLog       = mutantOS.Getenv("MUTANT_REACHED")
	mutantSeen      mutantSync.Map
)

func mutantOn(n int) bool {
	if mutantLog != "" {
		if _, seen := mutantSeen.LoadOrStore(n, true); !seen {
			if f, err := mutantOS.OpenFile(mutantLog, mutantOS.O_APPEND|mutantOS.O_CREATE|mutantOS.O_WRONLY, 0o600); err == nil {
				_, _ = f.WriteString(mutantConv.Itoa(n) + "\n")
				_ = f.Close()
			}
		}
	}
	return mutantActive == n
}
`

// source is a file of Go with its declarations.
type source struct {
	text string
	fset *token.FileSet
	tree *ast.File
}

func parse(text string) (*source, error) {
	s := &source{text: text, fset: token.NewFileSet()}
	var err error
	s.tree, err = parser.ParseFile(s.fset, "", text, parser.SkipObjectResolution)
	return s, err
}

func (s *source) offset(p token.Pos) int { return s.fset.PositionFor(p, false).Offset }

func (s *source) between(from, to token.Pos) string { return s.text[s.offset(from):s.offset(to)] }

// insertion replaces n bytes at an offset.
type insertion struct {
	at, n int
	text  string
}

// switched returns the file with all of the mutants in it that change nothing but bodies
// of functions: each such function gets a twin with the mutant's text, and calls the twin
// if the mutant is on. The numbers of these mutants are returned too.
func switched(name, text string, of map[int]mutant) (string, []int, error) {
	plain, err := parse(text)
	if err != nil || strings.HasSuffix(name, "_test.go") {
		return text, nil, err
	}
	var in []int
	edits := map[int]insertion{}
	var twins strings.Builder
	for n, m := range sorted(of) {
		changed, err := m.apply(text)
		if err != nil {
			return "", nil, err
		}
		after, err := parse(changed)
		if err != nil {
			continue // the compiler says it better
		}
		pairs, ok := changes(plain, after)
		if !ok {
			continue
		}
		in = append(in, n)
		for _, p := range pairs {
			before := p[0]
			call := plain.call(before, n, edits)
			at := plain.offset(before.Body.Lbrace) + 1
			edits[at] = insertion{at: at, text: edits[at].text + fmt.Sprintf(" if mutantOn(%d) { %s };", n, call)}
			fmt.Fprintf(&twins, "\n\n//line mutant%d.go:%d\n%s", n, after.fset.Position(p[1].Pos()).Line, after.twin(p[1], n))
		}
	}
	return plain.edited(edits) + twins.String() + "\n", in, nil
}

func sorted(of map[int]mutant) func(func(int, mutant) bool) {
	return func(yield func(int, mutant) bool) {
		var numbers []int
		for n := range of {
			numbers = append(numbers, n)
		}
		slices.Sort(numbers)
		for _, n := range numbers {
			if !yield(n, of[n]) {
				return
			}
		}
	}
}

// changes pairs the functions whose bodies differ. It reports false if anything else
// differs, or if a function cannot have a twin.
func changes(before, after *source) (pairs [][2]*ast.FuncDecl, ok bool) {
	if len(before.tree.Decls) != len(after.tree.Decls) {
		return nil, false
	}
	for i, d := range before.tree.Decls {
		e := after.tree.Decls[i]
		if before.between(d.Pos(), d.End()) == after.between(e.Pos(), e.End()) {
			continue
		}
		f, isFunc := d.(*ast.FuncDecl)
		g, stays := e.(*ast.FuncDecl)
		if !isFunc || !stays || f.Body == nil || g.Body == nil || recovers(f) || recovers(g) ||
			before.between(f.Pos(), f.Body.Lbrace) != after.between(g.Pos(), g.Body.Lbrace) {
			return nil, false
		}
		pairs = append(pairs, [2]*ast.FuncDecl{f, g})
	}
	return pairs, len(pairs) > 0
}

// recovers reports whether the function itself calls recover, which a twin cannot do for it.
func recovers(f *ast.FuncDecl) (found bool) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if _, other := n.(*ast.FuncLit); other {
			return false
		}
		if call, ok := n.(*ast.CallExpr); ok {
			if id, ok := call.Fun.(*ast.Ident); ok && id.Name == "recover" {
				found = true
			}
		}
		return true
	})
	return found
}

func twinName(f *ast.FuncDecl, n int) string { return fmt.Sprintf("mutant%d_%s", n, f.Name.Name) }

// call returns the statement by which a function leaves everything to its twin.
func (s *source) call(f *ast.FuncDecl, n int, edits map[int]insertion) string {
	call := twinName(f, n) + s.forward(f, edits)
	if f.Recv != nil {
		call = f.Recv.List[0].Names[0].Name + "." + call
	}
	if f.Type.Results.NumFields() > 0 {
		return "return " + call
	}
	return call + "; return"
}

// forward returns the arguments that pass on the parameters of a function. It names the
// ones without a name.
func (s *source) forward(f *ast.FuncDecl, edits map[int]insertion) string {
	count := 0
	name := func(fields *ast.FieldList) (names []string) {
		if fields == nil {
			return nil
		}
		for _, field := range fields.List {
			if len(field.Names) == 0 {
				field.Names = []*ast.Ident{{Name: fmt.Sprint("mutantArg", count)}}
				at := s.offset(field.Type.Pos())
				edits[at] = insertion{at: at, text: field.Names[0].Name + " "}
				count++
			}
			for _, id := range field.Names {
				if id.Name == "_" {
					id.Name = fmt.Sprint("mutantArg", count)
					at := s.offset(id.Pos())
					edits[at] = insertion{at: at, n: 1, text: id.Name}
					count++
				}
				names = append(names, id.Name)
			}
			if _, variadic := field.Type.(*ast.Ellipsis); variadic {
				names[len(names)-1] += "..."
			}
		}
		return names
	}
	name(f.Recv)
	args := "(" + strings.Join(name(f.Type.Params), ", ") + ")"
	if f.Type.TypeParams != nil {
		args = "[" + strings.Join(name(f.Type.TypeParams), ", ") + "]" + args
	}
	return args
}

// twin is the text of a function under the name of its mutant.
func (s *source) twin(f *ast.FuncDecl, n int) string {
	return s.between(f.Pos(), f.Name.Pos()) + twinName(f, n) + s.between(f.Name.End(), f.End())
}

// edited is the text with the insertions in it.
func (s *source) edited(edits map[int]insertion) string {
	var out strings.Builder
	done := 0
	at := make([]int, 0, len(edits))
	for i := range edits {
		at = append(at, i)
	}
	slices.Sort(at)
	for _, i := range at {
		e := edits[i]
		out.WriteString(s.text[done:e.at] + e.text)
		done = e.at + e.n
	}
	out.WriteString(s.text[done:])
	return out.String()
}

// switches returns the overlay of the module, by path in it, with every mutant that can be
// switched, and the numbers of these by mutant.
func (l *lab) switches(todo []mutant) (overlay map[string]string, numbers map[string]int, err error) {
	files := map[string]map[int]mutant{}
	for _, m := range todo {
		if files[m.file] == nil {
			files[m.file] = map[int]mutant{}
		}
		files[m.file][m.number()] = m
	}
	overlay, numbers = map[string]string{}, map[string]int{}
	for name, of := range files {
		if path.Ext(name) != ".go" {
			continue
		}
		text, err := l.read(name)
		if err != nil {
			return nil, nil, err
		}
		changed, in, err := switched(name, text, of)
		if err != nil {
			return nil, nil, err
		}
		if len(in) == 0 {
			continue
		}
		s, err := parse(text)
		if err != nil {
			return nil, nil, err
		}
		overlay[name] = changed
		overlay[path.Join(path.Dir(name), switchFile)] = strings.Replace(switchText, "PACKAGE", s.tree.Name.Name, 1)
		for _, n := range in {
			numbers[of[n].String()] = n
		}
	}
	return overlay, numbers, nil
}
