package migration

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// step is one code span of a row, and what must be in its answer.
type step struct{ line, want string }

// span is a code span, perhaps with an arrow before it.
var span = regexp.MustCompile("(→ )?`([^`]+)`")

// rows returns the rows of the table, by the first column.
func rows(t *testing.T) map[string][]step {
	t.Helper()
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "ids.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Coming from\n")
	section, _, _ = strings.Cut(section, "\n## ")
	out := map[string][]step{}
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 || strings.TrimSpace(cells[1]) == "from" || strings.HasPrefix(cells[1], "---") {
			if strings.HasPrefix(line, "|") && len(cells) != 6 {
				t.Errorf("a row of %d cells: %s", len(cells)-2, line)
			}
			continue
		}
		name := strings.TrimSpace(cells[1])
		for _, found := range span.FindAllStringSubmatch(cells[3], -1) {
			switch arrow, code := found[1] != "", found[2]; {
			case !arrow:
				out[name] = append(out[name], step{line: code})
			case len(out[name]) == 0:
				t.Errorf("%s: %q is the answer of nothing", name, code)
			default:
				out[name][len(out[name])-1].want = code
			}
		}
		if !strings.Contains(cells[3], "→") {
			t.Errorf("%s: no answer is told", name)
		}
	}
	return out
}

// systems are those that the table must have: what people come from.
var systems = []string{"Twitter snowflake", "the regional service", "Baidu UidGenerator", "Leaf segment", "Leaf snowflake", "WeChat seqsvr",
	"Redis `INCR`", "Instagram", "Discord", "UUIDv7, ULID, ObjectId"}

func TestEachRowOfComingFromHoldsOnARealCluster(t *testing.T) {
	table := rows(t)
	for _, name := range systems {
		if len(table[name]) == 0 {
			t.Errorf("docs/ids.md has no row for %s: %d rows", name, len(table))
		}
	}
	c := harness.Start(t, func(cfg *localcluster.Config) {
		harness.AskOnce(cfg)
		cfg.Args[localcluster.RoleRouter] = append(cfg.Args[localcluster.RoleRouter], "--leaf")
	})
	for name, steps := range table {
		t.Run(name, func(t *testing.T) {
			for _, s := range steps {
				got := do(t, c.GRPC(), c.HTTP(), s.line)
				if !strings.Contains(got, s.want) {
					t.Errorf("%s: want %q in\n%s", s.line, s.want, got)
				}
			}
		})
	}
}

// do runs a line, "seqctl ..." or "GET /path" or "POST /path {...}", which must succeed.
func do(t *testing.T, grpc, web, line string) string {
	t.Helper()
	words := strings.Fields(line)
	switch words[0] {
	case "seqctl":
		ended := harness.Run(t, harness.Command(harness.Within(t), t, []string{"SEQ_ADDR=" + grpc}, "seqctl", words[1:]...))
		if ended.Code != 0 {
			t.Errorf("%s: exit %d: %s", line, ended.Code, ended.Stderr)
		}
		return ended.Stdout
	case http.MethodGet, http.MethodPost:
		path, body, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, words[0])), " ")
		return ask(t, words[0], "http://"+web+path, body)
	}
	t.Errorf("%s: expected seqctl, GET or POST", line)
	return ""
}

func ask(t *testing.T, method, url, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(harness.Within(t), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("%s %s: %s %s, %v", method, url, resp.Status, answer, err)
	}
	return string(answer)
}
