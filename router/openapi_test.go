package router

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/seqsvr/seqsvr/internal/rpc"
)

func TestEveryPathServedIsDescribedAndTheOtherWayRound(t *testing.T) {
	var described struct {
		OpenAPI string                    `yaml:"openapi"`
		Paths   map[string]map[string]any `yaml:"paths"`
	}
	if err := yaml.Unmarshal(openAPIText, &described); err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for path, methods := range described.Paths {
		got[path] = slices.Sorted(maps.Keys(methods))
	}
	want := map[string][]string{}
	for _, to := range (&front{}).routes() {
		path := strings.TrimSuffix(to.path, "{$}")
		want[path] = append(want[path], strings.ToLower(to.method))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("served (-) and described (+)\n%s", diff)
	}
	if !strings.HasPrefix(described.OpenAPI, "3.") {
		t.Errorf("openapi is %q", described.OpenAPI)
	}
}

func TestEveryReferenceOfTheDescriptionHasItsTarget(t *testing.T) {
	var all map[string]any
	if err := yaml.Unmarshal(openAPIText, &all); err != nil {
		t.Fatal(err)
	}
	found := 0
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, one := range v {
				walk(one)
			}
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				found++
				var at any = all
				for _, step := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
					m, _ := at.(map[string]any)
					at = m[step]
				}
				if at == nil {
					t.Errorf("%s points nowhere", ref)
				}
			}
			for _, one := range v {
				walk(one)
			}
		}
	}
	walk(all)
	if found == 0 {
		t.Error("no reference found")
	}
}

func TestTheDescriptionIsServed(t *testing.T) {
	f := &front{inWork: rpc.NewAdmission(rpc.DefaultMaxInWork)}
	w := httptest.NewRecorder()
	f.serve(route{http.MethodGet, "/openapi.yaml", f.openAPI, plainFault}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/openapi.yaml", nil))
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/yaml" || w.Body.String() != string(openAPIText) {
		t.Errorf("got %d, %v, %d bytes", w.Code, w.Header(), w.Body.Len())
	}
}
