package metrics

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"go.yaml.in/yaml/v3"

	"github.com/seqsvr/seqsvr/internal/process/telemetry"
)

const root = "../.."

// catalog is what a cluster shows: name -> label -> values.
type catalog map[string]map[string]map[string]bool

func (c catalog) add(name, label, value string) {
	if c[name] == nil {
		c[name] = map[string]map[string]bool{}
	}
	if label == "" {
		return
	}
	if c[name][label] == nil {
		c[name][label] = map[string]bool{}
	}
	c[name][label][value] = true
}

// gather scrapes every daemon.
func (c *cluster) gather(t *testing.T) catalog {
	t.Helper()
	out := catalog{}
	for _, o := range c.all() {
		families, err := telemetry.Admin{Daemon: o.kind, Subject: o.Service, Dropped: func() uint64 { return 0 }}.Registry().Gather()
		if err != nil {
			t.Fatalf("%s: %v", o.kind, err)
		}
		problems, err := promlint.NewWithMetricFamilies(families).Lint()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s: %s", o.kind, p.Metric, p.Text)
		}
		for _, f := range families {
			names := []string{f.GetName()}
			if f.GetMetric()[0].GetHistogram() != nil {
				names = []string{f.GetName() + "_bucket", f.GetName() + "_sum", f.GetName() + "_count"}
				out.add(names[0], "le", "+Inf")
			}
			for _, name := range names {
				out.add(name, "", "")
				for _, m := range f.GetMetric() {
					for _, l := range m.GetLabel() {
						out.add(name, l.GetName(), l.GetValue())
					}
				}
			}
		}
	}
	return out
}

// rules is as much of a rule file as this test reads.
type rules struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert       string
			Expr        string
			Labels      map[string]string
			Annotations map[string]string
		}
	}
}

func readRules(t *testing.T) rules {
	t.Helper()
	var r rules
	if err := yaml.Unmarshal(read(t, "deploy/alerts/seqsvr.rules.yml"), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Groups) == 0 {
		t.Fatal("no groups of rules")
	}
	return r
}

// documents are the pages that may name metrics.
func documents(t *testing.T) (out []string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(found) < 10 {
		t.Fatalf("found %d documents: %v", len(found), err)
	}
	for _, name := range found {
		out = append(out, filepath.Join("docs", filepath.Base(name)))
	}
	return out
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// expressions are all that the rules and the dashboard ask for, by where they stand.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, g := range readRules(t).Groups {
		for _, r := range g.Rules {
			out["alert "+r.Alert] = r.Expr
		}
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Type    string
			Targets []struct{ Expr, RefID string }
		}
	}
	if err := json.Unmarshal(read(t, "deploy/dashboards/seqsvr.json"), &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, p := range dashboard.Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %q shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			out["panel "+p.Title+" "+target.RefID] = target.Expr
		}
	}
	if len(out) < 50 {
		t.Fatalf("%d expressions, expected those of some dozens of alerts and panels", len(out))
	}
	return out
}

var (
	selector = regexp.MustCompile(`\b((?:seq|go|process)_[a-zA-Z0-9_]+)\s*(\{[^}]*\})?`)
	matcher  = regexp.MustCompile(`(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
	grouping = regexp.MustCompile(`\b(?:by|without|on|ignoring)\s*\(([^)]*)\)`)
	mention  = regexp.MustCompile(`\bseq_[a-z0-9_]+\b`)
)

// given are the labels that Prometheus adds itself, or the configuration of its scrapes.
var given = []string{"job", "instance", "cluster"}

// check names everything in an expression that the cluster does not show.
func (c catalog) check(expr string) (wrong []string) {
	labels := slices.Clone(given)
	for _, s := range selector.FindAllStringSubmatch(expr, -1) {
		name, matchers := s[1], s[2]
		if c[name] == nil {
			wrong = append(wrong, "no metric "+name)
			continue
		}
		for label := range c[name] {
			labels = append(labels, label)
		}
		for _, m := range matcher.FindAllStringSubmatch(matchers, -1) {
			label, op, value := m[1], m[2], m[3]
			switch {
			case slices.Contains(given, label):
			case c[name][label] == nil:
				wrong = append(wrong, name+" has no label "+label)
			case (op == "=" || op == "!=") && !c[name][label][value]:
				wrong = append(wrong, name+" has no "+label+` "`+value+`"`)
			}
		}
	}
	for _, g := range grouping.FindAllStringSubmatch(expr, -1) {
		for label := range strings.SplitSeq(g[1], ",") {
			if label = strings.TrimSpace(label); !slices.Contains(labels, label) {
				wrong = append(wrong, "grouped by "+label+", which none of it has")
			}
		}
	}
	return wrong
}

func TestTheCheckFindsWhatIsNotThere(t *testing.T) {
	c := catalog{}
	c.add("seq_a_total", "code", "OK")
	c.add("seq_b_seconds_bucket", "le", "+Inf")
	for expr, want := range map[string]string{
		`sum by (job, code) (rate(seq_a_total{code="OK",job="x"}[5m]))`:                   "",
		`histogram_quantile(0.9, sum by (instance, le) (rate(seq_b_seconds_bucket[5m])))`: "",
		`rate(seq_c_total[5m])`:            "no metric seq_c_total",
		`rate(seq_b_seconds_sum[5m])`:      "no metric seq_b_seconds_sum",
		`seq_a_total{kode="OK"}`:           "seq_a_total has no label kode",
		`seq_a_total{code!="Fine"}`:        `seq_a_total has no code "Fine"`,
		`sum by (space) (seq_a_total)`:     "grouped by space, which none of it has",
		`seq_a_total / ignoring(le) seq_d`: "no metric seq_d",
	} {
		if got := c.check(expr); (want == "" && len(got) > 0) || (want != "" && !slices.Contains(got, want)) {
			t.Errorf("%s: got %q, want %q", expr, got, want)
		}
	}
}
