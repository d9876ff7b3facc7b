package main

// loanMutants break the rules of windows of worker ids that clients are lent and give back.
var loanMutants = []mutant{
	{rule: "returns-are-the-borrowers", name: "whoever knows the mark gives a window back", file: "allocsvr/globalid/workers/delegate.go", in: []string{"allocsvr/globalid"}, edits: []edit{
		{" || l.ticket != ticket:\n", ":\n"}}},
	{rule: "returns-are-the-borrowers", name: "an older window is given back for the newest", file: "allocsvr/globalid/workers/delegate.go", in: []string{"allocsvr/globalid"}, edits: []edit{
		{"	case l == nil || l.mark != n.Confirmed ||", "	case l == nil ||"}}},
	{rule: "nothing-used-is-lent-again", name: "the next window begins where the returned one did", file: "allocsvr/globalid/workers/delegate.go", in: []string{"allocsvr/globalid"}, edits: []edit{
		{"	l.used = max(used, l.floor, l.used) ", "	l.used = l.floor "}}},
	{rule: "nothing-used-is-lent-again", name: "a return below the window lends what is another's", file: "allocsvr/globalid/workers/delegate.go", in: []string{"allocsvr/globalid"}, edits: []edit{
		{"	l.used = max(used, l.floor, l.used) ", "	l.used = max(used, l.used) "}}},
	{rule: "nothing-used-is-lent-again", name: "an older message lowers what was used", file: "allocsvr/globalid/workers/delegate.go", in: []string{"allocsvr/globalid"}, edits: []edit{
		{"	l.used = max(used, l.floor, l.used) ", "	l.used = max(used, l.floor) "}}},
	{rule: "a-return-is-used-once", name: "a window that a late message made longer is lent again", file: "allocsvr/globalid/workers/delegate.go", in: []string{"allocsvr/globalid"}, edits: []edit{
		{"l.returned && l.mark == mark && l.layout", "l.returned && l.layout"},
		{"	if l == nil || l.mark != mark {\n", "	if l == nil {\n"}}},
	{rule: "a-return-is-used-once", name: "a return outlives a restore", file: "allocsvr/globalid/workers/delegate.go", in: []string{"allocsvr/globalid"}, edits: []edit{
		{" && (era == 0 || startOf(layout, l.used) > era)\n", "\n"}}},
	{rule: "silence-is-remembered", name: "each call waits for a service that is away", file: "client/fallback/fallback.go", in: []string{"client"}, edits: []edit{
		{"	if !f.silent.Load() {\n		short", "	if true {\n		short"}}},
	{rule: "silence-is-remembered", name: "nobody sees that the service is back", file: "client/fallback/fallback.go", in: []string{"client"}, edits: []edit{
		{"			f.quiet.Kick()\n", ""}}},
	{rule: "sealed-before-it-is-returned", name: "a client goes on after it gave back", file: "client/fallback/window.go", in: []string{"client"}, edits: []edit{
		{"	used := w.gen.Seal() ", "	used := w.gen.Last() "}}},
	{rule: "audit-never-waits", name: "a full queue keeps who hands out IDs waiting", file: "allocsvr/globalid/audit/audit.go", in: []string{"allocsvr/globalid/audit"}, edits: []edit{
		{"	default:\n		l.dropped.Add(1)\n	}\n}\n\n// Reopen", "	}\n}\n\n// Reopen"}}},
	{rule: "audit-is-bounded", name: "one file grows for ever", file: "allocsvr/globalid/audit/audit.go", in: []string{"allocsvr/globalid/audit"}, edits: []edit{
		{"	if l.size+next > l.cfg.Bytes {\n", "	if false {\n"}}},
	{rule: "marks-stay-in-reach", name: "a long window lies further ahead than other nodes believe", file: "allocsvr/globalid/workers/mark.go", in: []string{"allocsvr/globalid/workers"}, edits: []edit{
		{"return min(reach*window, maxReach) }", "return reach * window }"}}},
}
