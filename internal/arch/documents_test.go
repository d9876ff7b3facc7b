package arch

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// excepted are names in documents that this tree does not declare, each with its reason.
var excepted = map[string]string{
	"WORKER_NODE":                 "a table of Baidu's UidGenerator",
	"CachedUidGenerator":          "a class of the same",
	"AuditLogEntry":               "a message of Twitter's snowflake",
	"AUTO_INCREMENT":              "MySQL's",
	"LimitNOFILE":                 "systemd's",
	"nextBatch":                   "a method of the libraries in clients/",
	"grpc.health.v1":              "the package of gRPC's health service",
	"--unsafe-no-fsync":           "a flag of etcd",
	"--auto-compaction-retention": "a flag of etcd",
	"--quota-backend-bytes":       "a flag of etcd",
}

// documents are the texts whose names are followed. CHANGELOG.md is not among them: it
// tells of what was.
func documents(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, pattern := range []string{"*.md", "docs/*.md", "deploy/*.md", "examples/*.md", "tests/*.md", "tests/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range found {
			if name := filepath.ToSlash(strings.TrimPrefix(p, root+string(filepath.Separator))); name != "CHANGELOG.md" {
				out = append(out, name)
			}
		}
	}
	if len(out) < 15 {
		t.Fatalf("found %d documents below %s: %v", len(out), root, out)
	}
	return out
}

func TestNamesInDocumentsAreThoseOfTheTree(t *testing.T) {
	known := collect(t)
	used := map[string]bool{}
	for _, name := range documents(t) {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range known.check(name, string(text)) {
			if _, ok := excepted[wrong.name]; ok {
				used[wrong.name] = true
				continue
			}
			t.Errorf("%s: %s: %s", name, wrong.name, wrong.why)
		}
	}
	for name := range excepted {
		if !used[name] {
			t.Errorf("the exception %q is no longer needed", name)
		}
	}
}

func TestTheIndexOfDocumentsIsComplete(t *testing.T) {
	index, err := os.ReadFile(filepath.Join(root, "docs/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range documents(t) {
		rel, ok := strings.CutPrefix(name, "docs/")
		if ok && rel != "README.md" && !strings.Contains(rel, "/") && !strings.Contains(string(index), "]("+rel+")") {
			t.Errorf("docs/README.md has no link to %s", rel)
		}
	}
}

func TestDocumentsThatTheTreePointsToAreThere(t *testing.T) {
	known := collect(t)
	if len(known.pointers) < 10 {
		t.Errorf("found %d pointers to documents: %v", len(known.pointers), known.pointers)
	}
	for target, from := range known.pointers {
		for _, wrong := range known.checkLink("README.md", "", target) {
			t.Errorf("%s: %s: %s", from, wrong.name, wrong.why)
		}
	}
}

func TestANameThatIsGoneIsFoundInADocument(t *testing.T) {
	known := collect(t)
	text := strings.Join([]string{
		"# A made-up document",
		"",
		"`TestNamesInDocumentsAreThoseOfTheTree` is there, TestNobodyWroteThis is not.",
		"`seq.UID` is there, `seq.Nothing` is not; `Space.SectionOf` is, `Space.Nowhere` is not.",
		"`seq/mapping.go` and `seq` are there, `seq/atlas.go` is not, nor `atlas.go`.",
		"[here](../README.md), [there](gone.md), [section](#a-made-up-document), [none](#no-such-part).",
		"`NO_QUORUM` is a name, `NO_SUCH_NAME` is not; `splitMix` neither.",
		"`make test` works, `make coffee` does not; `--lease` is a flag, `--lift` is not.",
		"`seqctl status` is a verb, `seqctl dance` is not.",
		"",
		"    make lint && go test -run 'NamesInDocuments|NoSuchTest' ./internal/arch",
		"    go test ./internal/nowhere",
		"",
		"```sh",
		"bin/seqctl next 42 --sideways   # not a flag",
		"```",
		"",
		"```go",
		"x := y.NotLookedAt // --nor-this",
		"```",
	}, "\n")
	var got []string
	for _, wrong := range known.check("docs/made-up.md", text) {
		got = append(got, wrong.name)
	}
	want := []string{
		"#no-such-part", "--lift", "--sideways", "./internal/nowhere", "NO_SUCH_NAME", "NoSuchTest", "Space.Nowhere",
		"TestNobodyWroteThis", "atlas.go", "gone.md", "make coffee", "seq.Nothing", "seq/atlas.go", "seqctl dance", "splitMix",
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("found\n%v, want\n%v", got, want)
	}
}

// wrong is a name in a document that leads nowhere.
type wrong struct{ name, why string }

var (
	spanText   = regexp.MustCompile("`([^`]+)`")
	linkTarget = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	testName   = regexp.MustCompile(`\b(?:Test|Benchmark|Fuzz)[A-Z]\w+`)
	flagName   = regexp.MustCompile(`(?:^|[\s\[(|])--([a-z][a-z0-9-]*)`)
	pathName   = regexp.MustCompile(`^[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.*-]+)*/?$`)
	fileName   = regexp.MustCompile(`^[A-Za-z0-9_*-]+\.(?:go|md|proto|sh|yaml|yml|txt|pml|inc|svg)$`)
	dottedName = regexp.MustCompile(`^\*?[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$`)
	upperName  = regexp.MustCompile(`^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$`)
	goName     = regexp.MustCompile(`^(?:[A-Z][a-z]\w*|[a-z]+[A-Z]\w*|[A-Z]+[a-z]\w*)$`)
)

// check names what the document of that name mentions and the tree does not have.
func (n *names) check(document, text string) (out []wrong) {
	prose, commands := split(text)
	for _, link := range linkTarget.FindAllStringSubmatch(prose, -1) {
		out = append(out, n.checkLink(document, text, link[1])...)
	}
	for _, test := range testName.FindAllString(spanText.ReplaceAllString(prose, ""), -1) {
		out = append(out, n.checkTest(test)...)
	}
	for _, span := range spanText.FindAllStringSubmatch(prose, -1) {
		word := strings.Join(strings.Fields(span[1]), " ")
		if strings.Contains(word, " ") || strings.HasPrefix(word, "-") {
			commands = append(commands, word)
			continue
		}
		out = append(out, n.checkWord(path.Dir(document), strings.TrimSuffix(word, "()"))...)
	}
	for _, line := range commands {
		out = append(out, n.checkCommand(line)...)
	}
	return out
}

// split parts a document into its prose and the lines of its commands. Commands are in indented blocks and
// in fenced ones, except blocks of Go.
func split(text string) (prose string, commands []string) {
	fence, blank := "", true
	var kept []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		mark, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && fence == "":
			fence = "in " + mark
		case isFence:
			fence = ""
		case fence == "in go":
		case fence != "" || blank && strings.HasPrefix(line, "    "):
			commands = append(commands, strings.SplitN(strings.TrimSpace(line), "  #", 2)[0])
			continue
		default:
			kept = append(kept, line)
		}
		blank = strings.TrimSpace(line) == ""
	}
	return strings.Join(kept, "\n"), commands
}

func (n *names) checkLink(document, text, target string) []wrong {
	if strings.Contains(target, "://") {
		return nil
	}
	file, anchor, hasAnchor := strings.Cut(target, "#")
	if file != "" {
		to := path.Join(path.Dir(document), file)
		if !n.files[to] {
			return []wrong{{target, "no such file"}}
		}
		if !hasAnchor {
			return nil
		}
		body, err := os.ReadFile(filepath.Join(root, to))
		if err != nil {
			return []wrong{{target, err.Error()}}
		}
		text = string(body)
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") && anchorOf(strings.TrimSpace(strings.TrimLeft(line, "#"))) == anchor {
			return nil
		}
	}
	return []wrong{{target, "no such heading"}}
}

// anchorOf is the name by which a link comes to a heading.
func anchorOf(heading string) string {
	kept := strings.Map(func(r rune) rune {
		if r == ' ' {
			return '-'
		}
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-_", r) {
			return r
		}
		return -1
	}, strings.ToLower(heading))
	return kept
}

func (n *names) checkTest(name string) []wrong {
	if len(n.tests[name]) == 0 {
		return []wrong{{name, "no such test"}}
	}
	return nil
}

// checkWord looks at a span without blanks. It accepts a word that does not have the shape of a name.
func (n *names) checkWord(folder, word string) []wrong {
	switch {
	case testName.FindString(word) == word:
		return n.checkTest(word)
	case fileName.MatchString(word):
		if !n.hasFile(folder, word) && !n.bases[word] {
			return []wrong{{word, "no file of that name"}}
		}
	case strings.Contains(word, "/") && pathName.MatchString(word):
		if !n.hasFile(folder, word) && (path.Ext(word) == ".go" || !n.literals[word]) {
			return []wrong{{word, "no such file or folder"}}
		}
	case dottedName.MatchString(word):
		if !n.hasDotted(strings.TrimPrefix(word, "*")) {
			return []wrong{{word, "no such name in the code"}}
		}
	case upperName.MatchString(word):
		if !n.upper[word] {
			return []wrong{{word, "no such name in the code"}}
		}
	case goName.MatchString(word):
		if !n.words[word] && !n.literals[word] {
			return []wrong{{word, "no such name in the code"}}
		}
	}
	return nil
}

// hasFile reports whether a name leads to a file or folder from the root, or from the document's folder.
// Programs in bin/ are the programs of cmd/ and of the Makefile.
func (n *names) hasFile(folder, name string) bool {
	name = strings.TrimSuffix(strings.TrimPrefix(name, "./"), "/")
	if program, ok := strings.CutPrefix(name, "bin/"); ok {
		return n.files["cmd/"+program] || strings.Contains(n.makefile, name)
	}
	if name == "bin" || name == "data" || strings.HasPrefix(name, "data/") {
		return true // made by what runs
	}
	if strings.Contains(name, "*") {
		found, err := filepath.Glob(filepath.Join(root, name))
		return err == nil && len(found) > 0
	}
	return n.files[name] || n.files[path.Join(folder, name)]
}

// hasDotted takes the last two parts of a.b.c for the name: of a package and what it
// declares, of a type and its member, or as the code itself selects it.
func (n *names) hasDotted(name string) bool {
	parts := strings.Split(name, ".")
	return n.dotted[strings.Join(parts[len(parts)-2:], ".")] || n.literals[name]
}
