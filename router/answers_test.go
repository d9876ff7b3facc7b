package router

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// CheckAnswer compares the names and types in an answer with the description, for the
// tests that ask a router from outside.
func CheckAnswer(t testing.TB, method, path string, status int, body []byte) {
	t.Helper()
	all := description(t)
	schema := all.at(all, "components", "schemas", "Fault")
	mux := http.NewServeMux()
	for _, to := range (&front{}).routes() {
		mux.Handle(to.path, http.NotFoundHandler())
	}
	r, err := http.NewRequest(method, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, at := mux.Handler(r); at != "" {
		// A method that is not allowed is answered as the path answers what is wrong.
		for _, op := range all.at(all, "paths", strings.TrimSuffix(at, "{$}")) {
			answers := op.(node).at(all, "responses")
			answer := answers.at(all, strconv.Itoa(status))
			if answer == nil {
				answer = answers.at(all, "default")
			}
			schema = answer.at(all, "content", "application/json", "schema")
		}
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		t.Fatalf("%s %s: %q: %v", method, path, body, err)
	}
	if err := fits(all, schema, value, "answer"); err != nil {
		t.Errorf("%s %s: status %d, %s: %v", method, path, status, body, err)
	}
}

// fits says where a value differs from its schema in a name or a type.
func fits(all, schema node, value any, at string) error {
	schema = schema.at(all)
	parts, _ := schema["allOf"].([]any)
	properties := node{}
	for _, one := range append(parts, schema) {
		for name, p := range one.(node).at(all, "properties") {
			properties[name] = p
		}
	}
	if c, ok := schema["const"]; ok {
		if fmt.Sprint(c) != fmt.Sprint(value) {
			return fmt.Errorf("%s is %v, described as %v", at, value, c)
		}
		return nil
	}
	kind := map[string]bool{}
	switch v := value.(type) {
	case nil:
		kind["null"] = true
	case string:
		kind["string"] = true
	case bool:
		kind["boolean"] = true
	case float64:
		kind["integer"] = v == math.Trunc(v)
	case []any:
		kind["array"] = true
		for i, one := range v {
			if err := fits(all, schema.at(all, "items"), one, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	case map[string]any:
		kind["object"] = true
		for name, one := range v {
			p, ok := properties[name].(node)
			if !ok {
				return fmt.Errorf("%s.%s is not described", at, name)
			}
			if err := fits(all, p, one, at+"."+name); err != nil {
				return err
			}
		}
	}
	if want, ok := schema["type"].(string); ok && !kind[want] {
		return fmt.Errorf("%s is %v, described as %s", at, value, want)
	}
	if schema == nil {
		return fmt.Errorf("%s is not described", at)
	}
	return nil
}
