package reading

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// curls is a comment with a command of curl.
var curls = regexp.MustCompile(`# curl (?:-d '([^']*)' )?'?\.\.\.([^' ]*)`)

// enough ends a command that runs on.
var enough = map[string][]string{"watch": {"--changes", "1"}}

// answer is what the commands answer; each has some of it.
type answer struct {
	First, Last, Ticket json.Number
}

func TestTheCommandsOfReadingRun(t *testing.T) {
	c := harness.Start(t, func(cfg *localcluster.Config) { cfg.Sections, cfg.Allocs = 4, 1 })
	var last answer // of the latest open
	ran := map[string]int{}
	for line := range strings.Lines(document(t)) {
		command, comment, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if !strings.HasPrefix(line, "    seqctl ") {
			continue
		}
		opened := strings.NewReplacer("FIRST", last.First.String(), "TICKET", last.Ticket.String(), "wait=30s", "wait=100ms")
		args := strings.Fields(strings.ReplaceAll(opened.Replace(command), "'", ""))[1:]
		args = append(args, enough[args[0]]...)
		ended := harness.Run(t, harness.Command(harness.Within(t), t, []string{"SEQ_ADDR=" + c.GRPC()}, "seqctl", append(args, "-o", "json")...))
		if ended.Code != 0 {
			t.Fatalf("%s: exit %d: %s", command, ended.Code, ended.Stderr)
		}
		if ran[args[0]]++; args[0] == "open" {
			if err := json.Unmarshal([]byte(ended.Stdout), &last); err != nil {
				t.Fatalf("%s: %v in %s", command, err, ended.Stdout)
			}
		}
		if found := curls.FindStringSubmatch(comment); found != nil {
			ran["curl"]++
			got := fetch(t, "http://"+c.HTTP()+opened.Replace(found[2]), found[1])
			if want := fmt.Sprintf(`"%s"`, map[string]string{"open": "ticket", "mark": "marks", "watch": "mark"}[args[0]]); !strings.Contains(got, want) {
				t.Errorf("%s: want %s in %s", found[0], want, got)
			}
		}
	}
	for _, verb := range []string{"space", "open", "done", "mark", "watch", "curl"} {
		if ran[verb] == 0 {
			t.Errorf("docs/reading.md has no line with %s: %v", verb, ran)
		}
	}
}

// fetch gets the URL, or posts the body to it.
func fetch(t *testing.T, url, body string) string {
	t.Helper()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
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
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("%s %s: %s %s, %v", method, url, resp.Status, text, err)
	}
	return string(text)
}
