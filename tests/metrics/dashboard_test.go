package metrics

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestTheDashboardShowsTheClusterAndTheInstancesThatWereChosen(t *testing.T) {
	var dashboard struct {
		Templating struct {
			List []struct{ Name, Type, AllValue string }
		}
	}
	if err := json.Unmarshal(read(t, "deploy/dashboards/seqsvr.json"), &dashboard); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, v := range dashboard.Templating.List {
		found[v.Name] = v.Type == "query" && v.AllValue == ".*" // of one cluster without such a label, too
	}
	if !found["cluster"] || !found["instance"] {
		t.Errorf("variables %+v, want cluster and instance", dashboard.Templating.List)
	}
	for where, expr := range expressions(t) {
		if !strings.HasPrefix(where, "panel ") {
			continue
		}
		for _, s := range selector.FindAllStringSubmatch(expr, -1) {
			if !strings.Contains(s[2], `cluster=~"$cluster"`) || !strings.Contains(s[2], `instance=~"$instance"`) {
				t.Errorf("%s: %s is of every cluster and instance", where, s[0])
			}
		}
	}
}
