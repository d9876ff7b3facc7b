package metrics

import (
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

func TestEverythingThatOperatorsReadOfExistsInACluster(t *testing.T) {
	c := start(t)
	for _, o := range c.all() {
		o.ready(t, true)
	}
	c.traffic(t)
	shown := c.gather(t)
	for where, expr := range expressions(t) {
		for _, wrong := range shown.check(expr) {
			t.Errorf("%s: %s: in %s", where, wrong, expr)
		}
	}
	for _, doc := range documents(t) {
		for _, name := range mention.FindAllString(string(read(t, doc)), -1) {
			if shown[name] == nil && shown[name+"_bucket"] == nil {
				t.Errorf("%s: no metric %s", doc, name)
			}
		}
	}
	for name, labels := range shown {
		for label, values := range labels {
			if len(values) > 100 {
				t.Errorf("%s has %d values of %s after a little traffic", name, len(values), label)
			}
			for value := range values {
				if strings.Contains(value, "secret") || strings.Contains(value, strconv.FormatUint(secretUID, 10)) {
					t.Errorf("%s: %s=%q comes from a caller", name, label, value)
				}
			}
		}
	}
	checkCounted(t, c)
}

// checkCounted compares what the traffic took with what the metrics say of it.
func checkCounted(t *testing.T, c *cluster) {
	t.Helper()
	harness.Until(t, "the third store answers, too", func() bool { // two are enough to be ready
		_, text := get(t, c.alloc.admin.URL+"/metrics")
		return strings.Contains(text, "\n"+`seq_alloc_stores{what="answering"} 3`+"\n")
	})
	for _, row := range []struct {
		of   *one
		want string
	}{
		{c.alloc, `seq_alloc_numbers_total{space="user"} 253`},
		{c.alloc, `seq_segment_numbers_total 3`},
		{c.alloc, `seq_snowflake_ids_total{namespace="default"} 10`},
		{c.alloc, `seq_snowflake_agent_ids_total{agent="mailer"} 10`},
		{c.alloc, `seq_alloc_sections{state="served"} 16`},
		{c.alloc, `seq_alloc_arbiter 1`},
		{c.router, `seq_grpc_server_calls_total{code="InvalidArgument",method="/seqsvr.v1.Sequence/Next"} 1`},
		{c.router, `seq_grpc_server_calls_total{code="OK",method="/seqsvr.v1.Sequence/Next"} 2`},
		{c.router, `seq_router_http_requests_total{code="200",route="/v1/next"} 1`},
		{c.router, `seq_router_http_requests_total{code="404",route="(other)"} 1`},
		{c.router, `seq_router_resp_commands_total{command="incr",result="ok"} 1`},
		{c.router, `seq_router_resp_commands_total{command="(other)",result="error"} 1`},
		{c.router, `seq_router_resp_connections_total{result="served"} 1`},
		{c.router, `seq_admission_refused_total 0`},
		{c.alloc, `seq_admission_limit_keys 1.048576e+06`},
		{c.stores[0], `seq_store_state{state="voting"} 1`},
		{c.router, `seq_auth_refused_total{reason="forbidden"} 0`},
		{c.alloc, `seq_auth_refused_total{reason="quota"} 0`},
		{c.stores[0], `seq_auth_refused_total{reason="unauthenticated"} 0`},
		{c.stores[0], `seq_store_sessions 1`},
		{c.stores[0], `seq_store_boots_total 1`},
	} {
		_, text := get(t, row.of.admin.URL+"/metrics")
		if !strings.Contains(text, "\n"+row.want+"\n") {
			name, _, _ := strings.Cut(row.want, "{")
			t.Errorf("%s: want %s, got %q", row.of.kind, row.want, regexp.MustCompile(`(?m)^`+name+`.*$`).FindAllString(text, 8))
		}
	}
}

func TestTheProbesFollowTheQuorumAndTheDrain(t *testing.T) {
	c := start(t)
	for _, o := range c.all() {
		o.ready(t, true)
	}
	c.stores[2].halt()
	c.alloc.ready(t, true) // two of three are enough
	c.stores[1].halt()
	harness.Until(t, "a node without a quorum says how many stores answered", func() bool {
		code, text := get(t, c.alloc.admin.URL+"/readyz")
		return code != http.StatusOK && strings.Contains(text, "1 of 3 answered")
	})
	if code, _ := get(t, c.alloc.admin.URL+"/livez"); code != http.StatusOK {
		t.Errorf("a node without a quorum lives: got %d", code)
	}
	if _, text := get(t, c.alloc.admin.URL+"/metrics"); !strings.Contains(text, "\nseq_ready 0\n") || !strings.Contains(text, `seq_alloc_sections{state="served"} 0`) {
		t.Error("without a quorum the metrics say that the node is ready, or serves")
	}
	c.alloc.Service.(*allocsvr.Server).Close() // it would wait for somebody to take its sections
	c.router.halt()
	if text := c.router.ready(t, false); !strings.Contains(text, "shutting down") {
		t.Errorf("a router that has left: got %q", text)
	}
}

func TestEveryAlertSaysWhatToDo(t *testing.T) {
	runbook := string(read(t, "docs/operations.md"))
	tests := string(read(t, "deploy/alerts/seqsvr.test.yml"))
	anchors := map[string]bool{}
	for _, h := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(runbook, -1) {
		anchor := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(h[1]), "")
		anchors[strings.ReplaceAll(anchor, " ", "-")] = true
	}
	for _, g := range readRules(t).Groups {
		for _, r := range g.Rules {
			want := "{{ with $externalLabels.runbooks }}{{ . }}{{ else }}docs/operations.md{{ end }}#" + strings.ToLower(r.Alert)
			if got := r.Annotations["runbook_url"]; got != want {
				t.Errorf("%s: runbook_url is %q, want %q", r.Alert, got, want)
			}
			if !anchors[strings.ToLower(r.Alert)] {
				t.Errorf("docs/operations.md has no section %s", r.Alert)
			}
			if s := r.Labels["severity"]; s != "critical" && s != "warning" {
				t.Errorf("%s: severity %q, expected critical or warning", r.Alert, s)
			}
			if r.Annotations["summary"] == "" {
				t.Errorf("%s has no summary", r.Alert)
			}
			if !strings.Contains(tests, `{alertname="`+r.Alert+`", severity="`+r.Labels["severity"]+`"}`) {
				t.Errorf("%s fires in no test of seqsvr.test.yml", r.Alert)
			}
		}
	}
	for _, link := range regexp.MustCompile(`\]\(#([^)]+)\)`).FindAllStringSubmatch(runbook, -1) {
		if !anchors[link[1]] {
			t.Errorf("docs/operations.md links to #%s, which is not there", link[1])
		}
	}
}

func TestPromtoolFindsTheRulesWell(t *testing.T) {
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed (Debian: prometheus)")
	}
	for _, args := range [][]string{{"check", "rules", "seqsvr.rules.yml"}, {"check", "config", "scrape.yml"}, {"test", "rules", "seqsvr.test.yml"}} {
		cmd := exec.CommandContext(t.Context(), tool, args...)
		cmd.Dir = root + "/deploy/alerts"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
