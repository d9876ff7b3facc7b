package router

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// node is a mapping of the description.
type node map[string]any

// description reads openapi.yaml.
func description(t testing.TB) node {
	t.Helper()
	var all node
	if err := yaml.Unmarshal(openAPIText, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// at follows names down from n, and resolves references on the way. It returns nil if a name is missing.
func (n node) at(root node, names ...string) node {
	for {
		ref, ok := n["$ref"].(string)
		if !ok {
			break
		}
		n = root.at(root, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	if len(names) == 0 || n == nil {
		return n
	}
	next, _ := n[names[0]].(node)
	return next.at(root, names[1:]...)
}

// described is the path of a route as the description has it.
func (r route) described() string { return strings.TrimSuffix(r.path, "{$}") }

func TestEveryPathServedIsDescribedAndTheOtherWayRound(t *testing.T) {
	all := description(t)
	got := map[string][]string{}
	for path := range all.at(all, "paths") {
		got[path] = slices.Sorted(maps.Keys(all.at(all, "paths", path)))
	}
	want := map[string][]string{}
	for _, to := range (&front{}).routes() {
		want[to.described()] = append(want[to.described()], strings.ToLower(to.method))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("served (-) and described (+)\n%s", diff)
	}
	if version, _ := all["openapi"].(string); !strings.HasPrefix(version, "3.") {
		t.Errorf("openapi is %q", version)
	}
	if servers, _ := all["servers"].([]any); len(servers) == 0 {
		t.Error("no servers")
	}
}

func TestEveryOperationHasANameOfItsOwn(t *testing.T) {
	all := description(t)
	seen := map[any]string{}
	for _, to := range (&front{}).routes() {
		op := all.at(all, "paths", to.described(), strings.ToLower(to.method))
		id, summary := op["operationId"], op["summary"]
		if id == nil || seen[id] != "" || summary == nil {
			t.Errorf("%s: operationId %v (of %s, too), summary %v", to.path, id, seen[id], summary)
		}
		seen[id] = to.path
	}
}

// A comma within {} ends a value in YAML, so the rest of the sentence becomes a key without a value.
func TestNoSentenceOfTheDescriptionIsBroken(t *testing.T) {
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case nil:
			t.Errorf("%s has no value", path)
		case []any:
			for _, one := range v {
				walk(path, one)
			}
		case node:
			for key, one := range v {
				walk(path+"/"+key, one)
			}
		}
	}
	walk("", description(t))
}

func TestEveryReferenceOfTheDescriptionHasItsTarget(t *testing.T) {
	all := description(t)
	found := 0
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, one := range v {
				walk(one)
			}
		case node:
			if ref, ok := v["$ref"]; ok {
				found++
				if v.at(all) == nil {
					t.Errorf("%v points nowhere", ref)
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

func TestTheDescriptionHasEveryFieldOfTheMessages(t *testing.T) {
	all := description(t)
	for _, to := range (&front{}).routes() {
		if to.in == nil {
			continue
		}
		op := all.at(all, "paths", to.described(), strings.ToLower(to.method))
		asked := op.at(all, "requestBody", "content", "application/json", "schema")
		if to.method == http.MethodGet {
			asked = node{"properties": parametersOf(op)}
		}
		in := to.in.ProtoReflect()
		compare(t, all, to.path+" request", asked, in.Descriptor(), true)
		compare(t, all, to.path+" answer", op.at(all, "responses", "200", "content", "application/json", "schema"), to.out.ProtoReflect().Descriptor(), false)
		in.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			if d := asked.at(all, "properties", string(fd.Name()))["default"]; d != int(v.Uint()) {
				t.Errorf("%s: without %s it is %v, described as %v", to.path, fd.Name(), v, d)
			}
			return true
		})
		required, _ := asked["required"].([]any)
		if must := len(to.needs) == 1; must != (len(required) == 1 && required[0] == to.needs[0]) {
			t.Errorf("%s needs one of %v, described as %v", to.path, to.needs, required)
		}
	}
}

// parametersOf returns the query parameters of an operation, as properties.
func parametersOf(op node) node {
	out := node{}
	list, _ := op["parameters"].([]any)
	for _, one := range list {
		if p := one.(node); p["in"] == "query" {
			out[p["name"].(string)] = p["schema"]
		}
	}
	return out
}

// compare is about the names and types of the fields of a message.
func compare(t *testing.T, all node, what string, schema node, m protoreflect.MessageDescriptor, asked bool) {
	t.Helper()
	want := map[string]bool{}
	for i := range m.Fields().Len() {
		fd := m.Fields().Get(i)
		if internal(fd) {
			continue
		}
		name := string(fd.Name())
		want[name] = true
		got := schema.at(all, "properties", name)
		if fd.IsList() {
			if got["type"] != "array" {
				t.Errorf("%s: %s is %v, want an array", what, name, got["type"])
			}
			got = got.at(all, "items")
		}
		if diff := cmp.Diff(typeOf(fd, asked), got["type"]); diff != "" {
			t.Errorf("%s: %s: (-want +got)\n%s", what, name, diff)
		}
		if fd.Kind() == protoreflect.MessageKind {
			compare(t, all, what+" "+name, got, fd.Message(), asked)
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(schema.at(all, "properties")))); diff != "" {
		t.Errorf("%s: the fields and (+) the description\n%s", what, diff)
	}
}

// typeOf is the JSON type of a field's values.
func typeOf(fd protoreflect.FieldDescriptor, asked bool) any {
	switch fd.Kind() {
	case protoreflect.MessageKind:
		return "object"
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.EnumKind:
		return "string"
	case protoreflect.BoolKind:
		return "boolean"
	}
	if asked {
		return []any{"integer", "string"}
	}
	if quoteOf(fd) != "" {
		return "string"
	}
	return "integer"
}

func TestTheDescriptionIsServedAndTheRootLeadsToIt(t *testing.T) {
	front := idleFront(t)
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		front.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil))
		return w
	}
	w := get("/openapi.yaml")
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/yaml" || w.Body.String() != string(openAPIText) {
		t.Errorf("got %d, %v, %d bytes", w.Code, w.Header(), w.Body.Len())
	}
	if w := get("/"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"openapi":"/openapi.yaml"`) {
		t.Errorf("/: got %d, %s", w.Code, w.Body)
	}
	if w := get("/nowhere"); w.Code != http.StatusNotFound {
		t.Errorf("a path that is none: got %d, %s", w.Code, w.Body)
	}
}

// asked is a request that each path with a guard accepts, where it needs more than nothing.
var asked = map[string]struct{ query, body string }{
	"/v1/next":                  {"", `{"uid":1}`},
	"/v1/batch":                 {"", `{"uids":[1]}`},
	"/v1/lookup":                {"?space=orders&uid=1&request_id=a", ""},
	"/v1/current":               {"?uids=1", ""},
	"/v1/current/batch":         {"", `{"uids":[1]}`},
	"/v1/raise":                 {"", `{"uid":1,"at_least":5}`},
	"/v1/raise/batch":           {"", `{"uids":[1],"at_least":[5]}`},
	"/v1/snowflake/generate":    {"", `{}`},
	"/v1/snowflake/decode":      {"?number=5&layout=leaf", ""},
	"/v1/snowflake/compose":     {"", `{"layout":"leaf","tick":5}`},
	"/v1/segment/take":          {"", `{"tag":"t"}`},
	"/api/snowflake/v1/gen/{$}": {"", `{"namespace":1}`},
	"/api/snowflake/v1/gen":     {"", `{"namespace":1}`},
	"/api/segment/get/{tag}":    {"", ""},
	"/api/snowflake/get/{key}":  {"", ""},
	"/decodeSnowflakeId":        {"?snowflakeId=5", ""},
	"/cache":                    {"", ""},
	"/db":                       {"", ""},
	"/v1/snowflake/layouts":     {"", ""},
}

// TestWhatTheGuardAnswersIsDescribed asks each path as nobody, as a principal without
// grants, and as one whose rate is used up.
func TestWhatTheGuardAnswersIsDescribed(t *testing.T) {
	everything := "{space: '*', verbs: [take, read, raise], max_raise: 9, rate: 1}, {namespace: '*', verbs: [take], rate: 1}, {tag: '*', verbs: [take, read], rate: 1}"
	policy, tokens := "principals:\n", map[string]auth.Token{"nothing": auth.NewToken(), "everything": auth.NewToken()}
	for name, grants := range map[string]string{"nothing": "", "everything": everything} {
		policy += fmt.Sprintf("  - {name: %s, role: caller, tokens: [%q], grants: [%s]}\n", name, tokens[name].Hash().Hex(), grants)
	}
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	guard, err := auth.New(auth.Config{Mode: auth.Require, Cluster: "c1", PolicyFile: file})
	if err != nil {
		t.Fatal(err)
	}
	spent := auth.Credentials{Token: tokens["everything"].Secret()}
	for method, demand := range map[string]auth.Demand{
		pb.Sequence_Next_FullMethodName:      {Kind: auth.Space, Name: "user", Verb: auth.Take, Keys: 1 << 30},
		pb.Snowflake_Generate_FullMethodName: {Kind: auth.Namespace, Name: "default", Verb: auth.Take, Keys: 1 << 30},
		pb.Segment_Take_FullMethodName:       {Kind: auth.Tag, Name: "t", Verb: auth.Take, Keys: 1 << 30},
	} {
		if err := guard.Ask(spent, method, demand); err != nil {
			t.Fatal(err)
		}
	}
	f := &front{methods: methodsOf(services{}, guard, rpc.NewChanges(slog.New(slog.DiscardHandler), guard, nil)), guard: guard, maxBody: new(atomic.Int64), bodies: gate.NewBudget(1 << 20), log: slog.New(slog.DiscardHandler),
		shown: func(*tls.ConnectionState) auth.Evidence { return auth.Evidence{} }, leaf: true}
	f.maxBody.Store(1 << 20)
	all, met := description(t), map[int]int{}
	for _, to := range f.routes() {
		request, guarded := asked[to.path]
		if !guarded {
			continue
		}
		mux := http.NewServeMux()
		mux.Handle(to.path, f.serve(to))
		for who, token := range map[string]string{"nobody": "", "nothing": tokens["nothing"].Secret(), "everything": spent.Token} {
			path := strings.NewReplacer("{$}", "", "{tag}", "t", "{key}", "default").Replace(to.path)
			r := httptest.NewRequest(to.method, path+request.query, strings.NewReader(request.body))
			r.Host = "localhost"
			r.Header.Set("Content-Type", "application/json")
			if token != "" {
				r.Header.Set(rpc.AuthHeader, "Bearer "+token)
			}
			w := httptest.NewRecorder()
			func() {
				defer func() {
					if recover() != nil { // it was let in, and there is no cluster behind
						w.Code = http.StatusOK
					}
				}()
				mux.ServeHTTP(w, r)
			}()
			met[w.Code]++
			responses := all.at(all, "paths", to.described(), strings.ToLower(to.method), "responses")
			if responses[strconv.Itoa(w.Code)] == nil {
				t.Errorf("%s %s as %s: %d %s is not described", to.method, to.path, who, w.Code, w.Body)
			}
			if who == "nobody" && w.Code != http.StatusUnauthorized {
				t.Errorf("%s %s as nobody: %d %s", to.method, to.path, w.Code, w.Body)
			}
		}
	}
	if met[401] < len(asked) || met[403] < 8 || met[429] < 8 {
		t.Errorf("met %v", met)
	}
}
