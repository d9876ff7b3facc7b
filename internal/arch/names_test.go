package arch

import (
	"go/ast"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// names are those that the tree declares.
type names struct {
	makefile string
	files    map[string]bool     // files and folders, from the root
	bases    map[string]bool     // files without their folders
	tests    map[string][]string // a test, a benchmark or a fuzz target, and its folders
	words    map[string]bool     // identifiers
	dotted   map[string]bool     // package.Name, Type.member and what the code selects
	literals map[string]bool     // texts in the code
	consts   map[string]string   // constants that are texts
	flags    map[string]bool
	verbs    map[string]bool   // of seqctl, with those below them
	targets  map[string]bool   // of make
	upper    map[string]bool   // NAMES_LIKE_THIS in anything but documents
	pointers map[string]string // docs/x.md#y in anything but documents, and where
}

// collected is what collect found, which takes a second or two.
var collected *names

func collect(t *testing.T) *names {
	t.Helper()
	if collected != nil {
		return collected
	}
	set := func() map[string]bool { return map[string]bool{} }
	n := &names{files: set(), bases: set(), tests: map[string][]string{}, words: set(), dotted: set(), literals: set(),
		consts: map[string]string{}, flags: set(), verbs: set(), targets: set(), upper: set(), pointers: map[string]string{}}
	n.collectFiles(t)
	all := files(t)
	for _, f := range all {
		n.collectDeclared(f)
	}
	for _, f := range all {
		ast.Inspect(f.ast, func(node ast.Node) bool { n.collectUsed(f.name, node); return true })
	}
	for _, target := range regexp.MustCompile(`(?m)^([a-z][a-z-]*):`).FindAllStringSubmatch(n.makefile, -1) {
		n.targets[target[1]] = true
	}
	n.flags["help"] = true // of cobra and pflag
	for flag := range n.flags {
		n.upper["SEQ_"+strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))] = true // internal/base/config
	}
	collected = n
	return n
}

var pointer = regexp.MustCompile(`\bdocs/[a-z0-9/-]+\.md(?:#[a-z0-9-]+)?`)

// collectFiles reads the names of all files, and of those that are no documents the
// NAMES_LIKE_THIS and what the messages of .proto files declare.
func (n *names) collectFiles(t *testing.T) {
	t.Helper()
	upper := regexp.MustCompile(`[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+`)
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(filepath.ToSlash(strings.TrimPrefix(p, root)), "/")
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules" || name == "bin" || name == "data") {
			return fs.SkipDir
		}
		n.files[name] = true
		n.bases[path.Base(name)] = true
		if d.IsDir() || strings.HasSuffix(name, ".md") || strings.Contains(name, "testdata/") || !d.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		if under(name, "internal/arch") {
			return nil // the made-up document is here
		}
		for _, found := range pointer.FindAllString(string(text), -1) {
			n.pointers[found] = name
		}
		for _, found := range upper.FindAllString(string(text), -1) {
			n.upper[found] = true
			n.upper[strings.TrimPrefix(found, "ERROR_CODE_")] = true
		}
		if name == "Makefile" {
			n.makefile = string(text)
		}
		if strings.HasSuffix(name, ".proto") {
			n.collectProto(string(text))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (n *names) collectProto(text string) {
	block := regexp.MustCompile(`^(?:message|service|enum) (\w+)`)
	member := regexp.MustCompile(`^\s+(?:rpc (\w+)|(?:[\w.]+ )*(\w+) = \d+)`)
	pkg := "seqsvr.v1."
	within := ""
	for line := range strings.Lines(text) {
		if m := block.FindStringSubmatch(line); m != nil {
			within = m[1]
		}
		if m := member.FindStringSubmatch(line); m != nil {
			n.dotted[within+"."+m[1]+m[2]] = true
			n.literals[pkg+within+"/"+m[1]] = true
			n.literals[within+"/"+m[1]] = true
		}
	}
}

// collectDeclared takes what a file declares at its top.
func (n *names) collectDeclared(f file) {
	pkg := strings.TrimSuffix(f.ast.Name.Name, "_test")
	if pkg == "main" {
		pkg = path.Base(path.Dir(f.name))
	}
	for _, decl := range f.ast.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			n.dotted[pkg+"."+d.Name.Name] = true
			if d.Recv != nil {
				n.dotted[receiver(d)+"."+d.Name.Name] = true
			} else if strings.HasSuffix(f.name, "_test.go") || strings.HasPrefix(f.name, "tests/") {
				n.tests[d.Name.Name] = append(n.tests[d.Name.Name], path.Dir(f.name))
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				n.collectSpec(pkg, spec)
			}
		}
	}
}

func receiver(d *ast.FuncDecl) string {
	expr := d.Recv.List[0].Type
	if star, ok := expr.(*ast.StarExpr); ok {
		expr = star.X
	}
	if index, ok := expr.(*ast.IndexExpr); ok {
		expr = index.X
	}
	if id, ok := expr.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

func (n *names) collectSpec(pkg string, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for i, id := range s.Names {
			n.dotted[pkg+"."+id.Name] = true
			if i < len(s.Values) {
				n.consts[id.Name] = n.text(s.Values[i])
			}
		}
	case *ast.TypeSpec:
		n.dotted[pkg+"."+s.Name.Name] = true
		var fields *ast.FieldList
		switch body := s.Type.(type) {
		case *ast.StructType:
			fields = body.Fields
		case *ast.InterfaceType:
			fields = body.Methods
		default:
			return
		}
		for _, field := range fields.List {
			for _, id := range field.Names {
				n.dotted[s.Name.Name+"."+id.Name] = true
			}
		}
	}
}

// collectUsed takes identifiers, selections, texts, flags and verbs.
func (n *names) collectUsed(file string, node ast.Node) {
	switch x := node.(type) {
	case *ast.Ident:
		n.words[x.Name] = true
	case *ast.SelectorExpr:
		if id, ok := x.X.(*ast.Ident); ok {
			n.dotted[id.Name+"."+x.Sel.Name] = true
		}
	case *ast.BasicLit:
		if text := n.text(x); len(text) < 100 && !under(file, "internal/arch") {
			n.literals[text] = true
		}
	case *ast.CallExpr:
		n.collectFlag(x)
		if id, ok := x.Fun.(*ast.Ident); ok && id.Name == "group" && under(file, "cmd/seqctl") {
			n.verbs[n.text(x.Args[0])] = true
		}
	case *ast.KeyValueExpr:
		if id, ok := x.Key.(*ast.Ident); ok && id.Name == "Use" && under(file, "cmd/seqctl") {
			verb, _, _ := strings.Cut(n.text(x.Value), " ")
			n.verbs[verb] = true
		}
		if list, ok := x.Value.(*ast.CompositeLit); ok && under(file, "cmd/seqctl") {
			if id, ok := x.Key.(*ast.Ident); ok && id.Name == "Aliases" {
				for _, alias := range list.Elts {
					n.verbs[n.text(alias)] = true
				}
			}
		}
	}
}

// text returns the text of a string literal or a string constant, or "".
func (n *names) text(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.BasicLit:
		s, _ := strconv.Unquote(x.Value)
		return s
	case *ast.Ident:
		return n.consts[x.Name]
	case *ast.SelectorExpr:
		return n.consts[x.Sel.Name]
	}
	return ""
}

var declaresFlag = regexp.MustCompile(`^(?:String|Bool|Int|Uint|Int64|Uint64|Uint32|Duration|Float64|Func|StringSlice|StringArray|)(?:Var)?P?F?$`)

// collectFlag takes the name out of fs.StringVar(&x, "name", ...) and its like.
func (n *names) collectFlag(call *ast.CallExpr) {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !declaresFlag.MatchString(sel.Sel.Name) {
		return
	}
	for _, arg := range call.Args[:min(2, len(call.Args))] {
		if name := n.text(arg); name != "" {
			n.flags[name] = true
			return
		}
	}
}

var run = regexp.MustCompile(`-(?:run|bench) (?:'([^']*)'|(\S+))`)

// checkCommand looks at the flags, targets, verbs, tests and folders of a line.
func (n *names) checkCommand(line string) (out []wrong) {
	for _, flag := range flagName.FindAllStringSubmatch(line, -1) {
		if !n.flags[flag[1]] {
			out = append(out, wrong{"--" + flag[1], "no command declares it"})
		}
	}
	base := ""
	for _, command := range regexp.MustCompile(`&&|;|\|`).Split(maskQuotes(line), -1) {
		words := strings.Fields(command)
		if len(words) == 0 {
			continue
		}
		switch strings.TrimPrefix(words[0], "bin/") {
		case "cd":
			base = words[len(words)-1]
		case "make":
			out = append(out, n.checkTargets(words[1:])...)
		case "seqctl":
			if len(words) > 1 && regexp.MustCompile(`^[a-z][a-z-]*$`).MatchString(words[1]) && !n.verbs[words[1]] {
				out = append(out, wrong{"seqctl " + words[1], "no such verb"})
			}
		}
		if strings.Contains(command, "go test ") {
			out = append(out, n.checkGoTest(base, unmask(command))...)
		}
	}
	return out
}

// maskQuotes hides separators inside of quotes, for which unmask brings them back.
func maskQuotes(line string) string {
	return regexp.MustCompile(`'[^']*'`).ReplaceAllStringFunc(line, func(s string) string { return strings.ReplaceAll(s, "|", "\x00") })
}

func unmask(line string) string { return strings.ReplaceAll(line, "\x00", "|") }

func (n *names) checkTargets(words []string) (out []wrong) {
	for _, word := range words {
		if regexp.MustCompile(`^[a-z][a-z-]*$`).MatchString(word) && !n.targets[word] {
			out = append(out, wrong{"make " + word, "no such target"})
		}
	}
	return out
}

// checkGoTest asks that the folders of a go test exist, and that each part of what it
// runs matches a test in one of them.
func (n *names) checkGoTest(base, command string) (out []wrong) {
	var folders []string
	for _, word := range strings.Fields(command) {
		if !strings.HasPrefix(word, "./") {
			continue
		}
		folder := path.Join(base, strings.TrimSuffix(strings.TrimSuffix(word, "..."), "/"))
		if !n.files[folder] && folder != "." {
			out = append(out, wrong{word, "no such folder"})
		}
		folders = append(folders, folder)
	}
	for _, pattern := range run.FindAllStringSubmatch(command, -1) {
		for _, part := range strings.Split(pattern[1]+pattern[2], "|") {
			part, _, _ = strings.Cut(part, "/")
			if part != "" && part != "^$" && part != "." && part != "xxx" && !n.anyTest(folders, part) {
				out = append(out, wrong{part, "no such test in " + strings.Join(folders, " ")})
			}
		}
	}
	return out
}

func (n *names) anyTest(folders []string, pattern string) bool {
	match, err := regexp.Compile(pattern)
	if err != nil {
		return false
	}
	for test, places := range n.tests {
		if testName.FindString(test) != test || !match.MatchString(test) {
			continue
		}
		for _, place := range places {
			for _, folder := range folders {
				if folder == "." || under(place, folder) {
					return true
				}
			}
		}
	}
	return false
}
