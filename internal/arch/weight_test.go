package arch

import (
	"flag"
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// weightFile has a line for each number: its name, the number, and the reason of a raise.
const weightFile = "weight.txt"

var lowered = flag.Bool("lowered", false, "write the numbers that fell into "+weightFile)

// habits are constructions of English that stop a reader (CONTRIBUTING.md, English). Each is
// looked for in sentences.
var habits = []struct {
	name    string
	pattern *regexp.Regexp
}{
	{"subject", regexp.MustCompile(`^(Who|Whoever|What|Whatever|Nobody|Somebody)\b`)},
	{"that-of", regexp.MustCompile(`\b(that of|those of|the ones? of)\b`)},
	{"old", regexp.MustCompile(`\b(anew|hence|lest|shall|till|but for|save for|to and fro)\b`)},
	{"is-how", regexp.MustCompile(`^\w+ (is|are) (of|for|by|before|after|beside|with|at|from|until|since|how|told) \w+`)},
	{"zero", regexp.MustCompile(`(^|[;., ])(nil|0|empty|false|true|""|-1|none): \w+`)},
}

var (
	sentenceEnd = regexp.MustCompile(`[.!?]\s+|\s*\|\s*|\n\s*\n|\n\s*[-*] |\n\s*\d+\. `)
	word        = regexp.MustCompile(`[\pL\pN]`)
)

// sentences splits a text at full stops, paragraphs, items and cells of tables.
func sentences(text string) (out []string) {
	for _, s := range sentenceEnd.Split(text, -1) {
		if s = strings.Join(strings.Fields(s), " "); s != "" {
			out = append(out, strings.TrimLeft(s, "*-# "))
		}
	}
	return out
}

// habitsIn counts the habits in a text.
func habitsIn(text string, count func(habit string)) {
	for _, s := range sentences(text) {
		for _, h := range habits {
			if !strings.HasPrefix(s, "What belongs here") && !strings.HasPrefix(s, "What does not") {
				for range h.pattern.FindAllString(s, -1) {
					count(h.name)
				}
			}
		}
	}
}

// wordsOf counts the words of a document: the fields with a letter or a digit. A part that a
// program writes, between <!-- matrix and the end of it, does not count.
func wordsOf(text string) (n int) {
	before, rest, _ := strings.Cut(text, "<!-- matrix:")
	_, after, _ := strings.Cut(rest, "<!-- end of the matrix -->")
	for _, field := range strings.Fields(before + after) {
		if word.MatchString(field) {
			n++
		}
	}
	return n
}

// generated are the documents that programs write.
var generated = []string{"docs/benchmarks.md", "docs/failover.md"}

// weigh counts all that weightFile has a number for.
func weigh(t *testing.T) map[string]int {
	t.Helper()
	now := map[string]int{"documents words": 0, "client.Client methods": 0}
	packages := map[string]bool{}
	for _, f := range files(t) {
		area := top(f.name)
		for _, group := range f.ast.Comments {
			habitsIn(group.Text(), func(habit string) { now[area+" "+habit]++ })
		}
		if !strings.HasSuffix(f.name, "_test.go") {
			packages[path.Dir(f.name)] = true
		}
		if path.Dir(f.name) != "client" || strings.HasSuffix(f.name, "_test.go") {
			continue
		}
		for _, decl := range f.ast.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && d.Recv != nil && receiver(d) == "Client" && d.Name.IsExported() {
				now["client.Client methods"]++
			}
		}
	}
	now["packages"] = len(packages)
	for _, name := range append(documents(t), "CHANGELOG.md") {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		prose, _ := split(string(text))
		habitsIn(prose, func(habit string) { now["documents "+habit]++ })
		if !slices.Contains(generated, name) {
			now["documents words"] += wordsOf(string(text))
		}
	}
	return now
}

// weights reads weightFile.
func weights(t *testing.T) (lines []string, most map[string]int) {
	t.Helper()
	text, err := os.ReadFile(weightFile)
	if err != nil {
		t.Fatal(err)
	}
	lines, most = strings.Split(strings.TrimSpace(string(text)), "\n"), map[string]int{}
	for _, line := range lines {
		if name, n, ok := weight(line); ok {
			most[name] = n
		} else if line != "" && line[0] != '#' {
			t.Errorf("%s: %q is no name with a number", weightFile, line)
		}
	}
	return lines, most
}

var weightLine = regexp.MustCompile(`^([a-z][\w.]*(?: [\w-]+)?)\s+(\d+)(\s+#.*)?$`)

func weight(line string) (name string, n int, ok bool) {
	found := weightLine.FindStringSubmatch(line)
	if found == nil {
		return "", 0, false
	}
	n, err := strconv.Atoi(found[2])
	return found[1], n, err == nil
}

// TestNothingGetsHeavier holds the counts of words, habits, packages and methods to weight.txt: a count may only
// fall. A number is raised by hand, with its reason beside it.
func TestNothingGetsHeavier(t *testing.T) {
	now := weigh(t)
	lines, most := weights(t)
	for _, name := range slices.Sorted(maps.Keys(now)) {
		switch n, limit := now[name], most[name]; {
		case n > limit:
			t.Errorf("%s: %d, and %s allows %d. See CONTRIBUTING.md, English; or raise the number and write the reason beside it", name, n, weightFile, limit)
		case n < limit:
			t.Logf("%s fell from %d to %d: go test ./internal/arch -run Heavier -lowered", name, limit, n)
		}
	}
	if !*lowered {
		return
	}
	for i, line := range lines {
		if name, n, ok := weight(line); ok && now[name] < n {
			lines[i] = strings.Replace(line, strconv.Itoa(n), fmt.Sprint(now[name]), 1)
		}
	}
	if err := os.WriteFile(weightFile, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestHabitsAreFoundInSentences(t *testing.T) {
	got := map[string]int{}
	habitsIn("Who comes later waits. X is how it works. The epoch of A and that of B.\n\n- If nil, none. Traces: nil: none at all.\n"+
		"| till then | the client retries |\nWhat belongs here: rules. The client is told what happened.", func(habit string) { got[habit]++ })
	want := map[string]int{"subject": 1, "is-how": 1, "that-of": 1, "zero": 1, "old": 1}
	if !maps.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
	if n := wordsOf("one | two\n<!-- matrix: x -->\nnot these\n<!-- end of the matrix -->\nthree"); n != 3 {
		t.Errorf("counted %d words, want 3", n)
	}
}
