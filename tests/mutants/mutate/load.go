package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// subject is the package that is changed.
type subject struct {
	dir, name string
	files     []*source
	places    []*place
}

// source is one file of it.
type source struct {
	name  string // without folder
	path  string
	text  []byte
	tree  *ast.File
	edits []edit
}

type listed struct {
	ImportPath, Dir, Name, Export string
	GoFiles                       []string
	DepOnly                       bool
}

// load reads and checks a package; names are the files to change, all if there are none.
func load(ctx context.Context, path string, names []string) (*subject, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-export", "-deps", "-json=ImportPath,Dir,Name,Export,GoFiles,DepOnly", path)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", path, err)
	}
	exports, it := map[string]string{}, listed{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly {
			it = p
		}
	}
	s := &subject{dir: it.Dir, name: it.Name}
	fset := token.NewFileSet()
	var trees []*ast.File
	for _, name := range it.GoFiles {
		f := &source{name: name, path: filepath.Join(it.Dir, name)}
		if f.text, err = os.ReadFile(f.path); err != nil {
			return nil, err
		}
		if f.tree, err = parser.ParseFile(fset, f.path, f.text, parser.SkipObjectResolution); err != nil {
			return nil, err
		}
		trees = append(trees, f.tree)
		if len(names) == 0 || slices.Contains(names, name) {
			s.files = append(s.files, f)
		}
	}
	if len(s.files) == 0 || len(names) > 0 && len(s.files) < len(names) {
		return nil, fmt.Errorf("%w: %s has no files %v", errUsage, path, names)
	}
	cfg := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	if _, err := cfg.Check(it.ImportPath, fset, trees, info); err != nil {
		return nil, fmt.Errorf("check %s: %w", path, err)
	}
	for _, f := range s.files {
		s.places = append(s.places, find(fset, f, info)...)
	}
	s.number()
	return s, nil
}

// number gives every place its number, and a name of its own.
func (s *subject) number() {
	times := map[string]int{}
	for i, p := range s.places {
		p.id = i + 1
		key := filepath.Base(s.dir) + "/" + p.file + ":" + p.function + ":" + p.what
		if times[key]++; times[key] > 1 {
			key += " #" + strconv.Itoa(times[key])
		}
		p.key = key
	}
}

//go:embed helpers.go.txt
var helpers string

// refused is where the compiler does not take a change.
var refused = regexp.MustCompile(`(?m)^(\S+\.go):(\d+):\d+: .*$`)

// build compiles the tests of the packages with all changes in the subject. A line with a
// change that does not compile loses all of its changes.
func (s *subject) build(ctx context.Context, dir string, packages []string) ([]*suite, error) {
	for range 40 {
		overlay, err := s.write(dir)
		if err != nil {
			return nil, err
		}
		var suites []*suite
		var output []byte
		for i, pkg := range packages {
			x := &suite{pkg: pkg, binary: filepath.Join(dir, fmt.Sprint("tests", i))}
			cmd := exec.CommandContext(ctx, "go", "test", "-c", "-trimpath", "-vet=off", "-gcflags=-e", "-overlay", overlay, "-o", x.binary, pkg)
			if output, err = cmd.CombinedOutput(); err != nil {
				break
			}
			suites = append(suites, x)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil {
			return suites, nil
		}
		n := len(s.places)
		for _, at := range refused.FindAllSubmatch(output, -1) {
			line, _ := strconv.Atoi(string(at[2]))
			s.drop(filepath.Base(string(at[1])), line)
		}
		if len(s.places) == n {
			return nil, fmt.Errorf("the changes do not compile: %w\n%s", err, output)
		}
	}
	return nil, errors.New("the changes do not compile")
}

func (s *subject) drop(file string, line int) {
	s.places = slices.DeleteFunc(s.places, func(p *place) bool { return p.file == file && p.line == line })
	for _, f := range s.files {
		if f.name == file {
			f.edits = slices.DeleteFunc(f.edits, func(e edit) bool { return e.places[0].line == line })
		}
	}
	s.number()
}

// write puts the changed files beside the tree, and an overlay that puts them into it.
func (s *subject) write(dir string) (overlay string, err error) {
	text := strings.NewReplacer("PACKAGE", s.name, "COUNT", strconv.Itoa(len(s.places))).Replace(helpers)
	replace := map[string]string{filepath.Join(s.dir, "zz_mutate.go"): filepath.Join(dir, "zz_mutate.go")}
	if err := os.WriteFile(filepath.Join(dir, "zz_mutate.go"), []byte(text), 0o600); err != nil {
		return "", err
	}
	for _, f := range s.files {
		to := filepath.Join(dir, f.name)
		if err := os.WriteFile(to, f.changed(), 0o600); err != nil {
			return "", err
		}
		replace[f.path] = to
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, data, 0o600)
}
