package arch

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// rooms are the packages inside allocsvr and internal/sdk, each with those that it may import. allocsvr
// itself wires its rooms, as client does the others, and none of them imports it.
var rooms = map[string][]string{
	"allocsvr/tenure":            {},
	"allocsvr/tenure/tenuretest": {"allocsvr/tenure"},
	"allocsvr/counters":          {},
	"allocsvr/handover":          {"allocsvr/counters"},
	"allocsvr/nodes":             {},
	"allocsvr/arbiter/placement": {},
	"allocsvr/arbiter":           {"allocsvr/arbiter/placement", "allocsvr/tenure"},
	"allocsvr/logs":              {},
	"allocsvr/section":           {"allocsvr/counters", "allocsvr/logs", "allocsvr/tenure"},
	"allocsvr/owner": {"allocsvr/arbiter", "allocsvr/counters", "allocsvr/handover", "allocsvr/nodes", "allocsvr/section",
		"allocsvr/tenure"},
	"allocsvr/api": {"allocsvr/arbiter", "allocsvr/counters", "allocsvr/globalid/namespaces", "allocsvr/handover", "allocsvr/keyhash", "allocsvr/nodes", "allocsvr/owner",
		"allocsvr/section", "allocsvr/setdocs", "allocsvr/tenure"},
	"allocsvr/documents":           {},
	"allocsvr/keyhash":             {"allocsvr/documents"},
	"allocsvr/setdocs":             {"allocsvr/documents"},
	"allocsvr/spaces":              {"allocsvr/documents"},
	"allocsvr/numbers":             {},
	"allocsvr/segment":             {"allocsvr/documents", "allocsvr/numbers", "allocsvr/tenure"},
	"allocsvr/globalid/namespaces": {"allocsvr/documents"},
	"allocsvr/globalid/workers":    {"allocsvr/globalid/namespaces", "allocsvr/tenure"},
	"allocsvr/globalid/audit":      {},
	"allocsvr/globalid":            {"allocsvr/documents", "allocsvr/globalid/audit", "allocsvr/globalid/namespaces", "allocsvr/globalid/workers", "allocsvr/tenure"},
	"internal/sdk/call":            {"internal/sdk/route", "internal/sdk/stream"},
	"internal/sdk/route":           {},
	"internal/sdk/stream":          {},
}

// wirers are the folders that wire rooms. No room imports one.
var wirers = map[string]string{"allocsvr": "allocsvr", "internal/sdk": "client"}

func TestTheRoomsOfAllocsvrImportDownOnly(t *testing.T) { importDownOnly(t, "allocsvr") }

func TestTheRoomsOfTheSDKImportDownOnly(t *testing.T) { importDownOnly(t, "internal/sdk") }

// importDownOnly judges all rooms of a house.
func importDownOnly(t *testing.T, house string) {
	t.Helper()
	for folder, targets := range imports(t) {
		if folder == house || !under(folder, house) {
			continue
		}
		allowed, known := rooms[folder]
		if !known {
			t.Errorf("%s has no rule in this test", folder)
		}
		for _, target := range targets {
			if ours, ok := strings.CutPrefix(target, module); ok && (under(ours, house) || under(ours, wirers[house])) && !slices.Contains(allowed, ours) {
				t.Errorf("%s imports %s, it may import %v", folder, ours, allowed)
			}
		}
	}
}

// TestOneRoomWritesRegisters: a package that puts a PREPARE or a STEP together is tenure, or
// passes on what tenure did and counts it.
func TestOneRoomWritesRegisters(t *testing.T) {
	seen := false
	for _, f := range files(t) {
		if !under(f.name, "allocsvr") || strings.HasSuffix(f.name, "_test.go") {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			sel, ok := lit.Type.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "PrepareItem" && sel.Sel.Name != "StepItem" {
				return true
			}
			// The records of exact sections travel as steps, too, and raise no register.
			if seen = true; path.Dir(f.name) != "allocsvr/tenure" && (path.Dir(f.name) != "allocsvr/logs" || sel.Sel.Name != "StepItem") {
				t.Errorf("%s makes a quorum.%s: package tenure alone writes registers", f.name, sel.Sel.Name)
			}
			return true
		})
	}
	if !seen {
		t.Error("nobody writes registers")
	}
}
