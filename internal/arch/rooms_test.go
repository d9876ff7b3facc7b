package arch

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// rooms are the packages inside allocsvr, internal/sdk and router, each with those that it may import. allocsvr
// and router themselves wire their rooms, as client does the others, and none of them imports it.
var rooms = map[string][]string{
	"allocsvr/ownership":               {},
	"allocsvr/ownership/ownershiptest": {"allocsvr/ownership"},
	"allocsvr/handover":                {},
	"allocsvr/nodes":                   {},
	"allocsvr/arbiter/placement":       {},
	"allocsvr/arbiter":                 {"allocsvr/arbiter/placement", "allocsvr/ownership"},
	"allocsvr/logs":                    {},
	"allocsvr/section/tickets":         {},
	"allocsvr/section":                 {"allocsvr/logs", "allocsvr/ownership", "allocsvr/section/tickets"},
	"allocsvr/owner": {"allocsvr/arbiter", "allocsvr/handover", "allocsvr/nodes", "allocsvr/section",
		"allocsvr/ownership"},
	"allocsvr/api": {"allocsvr/arbiter", "allocsvr/documents", "allocsvr/globalid/namespaces", "allocsvr/handover", "allocsvr/nodes", "allocsvr/owner",
		"allocsvr/section", "allocsvr/ownership"},
	"allocsvr/documents":           {},
	"allocsvr/numbers":             {},
	"allocsvr/segment":             {"allocsvr/documents", "allocsvr/numbers", "allocsvr/ownership"},
	"allocsvr/globalid/namespaces": {"allocsvr/documents"},
	"allocsvr/globalid/workers":    {"allocsvr/globalid/namespaces", "allocsvr/ownership"},
	"allocsvr/globalid/audit":      {},
	"allocsvr/globalid/regions":    {},
	"allocsvr/globalid": {"allocsvr/documents", "allocsvr/globalid/audit", "allocsvr/globalid/namespaces",
		"allocsvr/globalid/regions", "allocsvr/globalid/workers", "allocsvr/ownership"},
	"internal/sdk/call":   {"internal/sdk/route", "internal/sdk/stream"},
	"internal/sdk/route":  {},
	"internal/sdk/stream": {},

	"router/line":          {},
	"router/line/linetest": {"router/line"},
	"router/line/resp":     {"router/line"},
}

// wirers are the folders that wire rooms. No room imports one.
var wirers = map[string]string{"allocsvr": "allocsvr", "internal/sdk": "client", "router": "router"}

func TestTheRoomsOfAllocsvrImportDownOnly(t *testing.T) { importDownOnly(t, "allocsvr") }

func TestTheRoomsOfTheSDKImportDownOnly(t *testing.T) { importDownOnly(t, "internal/sdk") }

func TestTheRoomsOfTheRouterImportDownOnly(t *testing.T) { importDownOnly(t, "router") }

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

// floors are the groups of internal, each with the groups and the public folders that it may import.
var floors = map[string][]string{
	"internal/base":    {"seq", "snowflake"},
	"internal/wire":    {"internal/base", "seq", "exact", "sets", "proto", "quorum"},
	"internal/etcd":    {"internal/base", "internal/wire", "seq", "exact", "proto", "quorum"},
	"internal/process": {"internal/base", "internal/wire", "seq", "proto", "membership"},
	"internal/sdk":     {"internal/base", "internal/wire", "seq", "sets", "proto"},
	"internal/ops":     {"internal/base", "internal/wire", "internal/process", "seq", "exact", "sets", "proto", "quorum", "snowflake", "client"},
	"internal/lab": {"internal/base", "internal/wire", "internal/etcd", "internal/process", "internal/ops",
		"seq", "exact", "sets", "proto", "quorum", "membership", "snowflake", "client"},
}

func TestTheFloorsOfInternalImportDownOnly(t *testing.T) {
	for folder, targets := range imports(t) {
		parts := strings.Split(folder, "/")
		if parts[0] != "internal" || folder == "internal/arch" {
			continue
		}
		floor := strings.Join(parts[:min(2, len(parts))], "/")
		allowed, known := floors[floor]
		if !known {
			t.Errorf("%s: %s is no group of internal", folder, floor)
			continue
		}
		for _, target := range targets {
			ours, ok := strings.CutPrefix(target, module)
			if ok && !under(ours, floor) && !slices.ContainsFunc(allowed, func(a string) bool { return under(ours, a) }) {
				t.Errorf("%s imports %s, %s may import %v", folder, ours, floor, allowed)
			}
		}
	}
}

// TestOneRoomWritesRegisters: a package that puts a PREPARE or a STEP together is ownership, or
// passes on what ownership did and counts it.
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
			if seen = true; path.Dir(f.name) != "allocsvr/ownership" && (path.Dir(f.name) != "allocsvr/logs" || sel.Sel.Name != "StepItem") {
				t.Errorf("%s makes a quorum.%s: package ownership alone writes registers", f.name, sel.Sel.Name)
			}
			return true
		})
	}
	if !seen {
		t.Error("nobody writes registers")
	}
}
