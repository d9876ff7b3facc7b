package main

// callerMemoryMutants break the rules of the memory that callers may take of a server.
var callerMemoryMutants = []mutant{
	{rule: "callers-memory-is-bounded", name: "compressed messages are unpacked", file: "internal/wire/gate/calls.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"by != \"\" && by != encoding.Identity", "by != \"\" && by == encoding.Identity"}}},
	{rule: "callers-memory-is-bounded", name: "no connection makes room", file: "internal/wire/gate/account.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"		if other == nil || other == t {\n", "		if true {\n"}}},
	{rule: "callers-memory-is-bounded", name: "the connection with the most calls makes room", file: "internal/wire/gate/account.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"n := t.unfinished.Load(); n > most", "n := t.held(); n > most"}}},
	{rule: "callers-memory-is-bounded", name: "strangers have the whole budget", file: "internal/wire/gate/account.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"h.strange && a.strange+more > a.strangers", "h.strange && a.strange+more > a.budget"}}},
	{rule: "callers-memory-is-bounded", name: "a stranger may send as much as others", file: "internal/wire/gate/conns.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"limit, err = maxStranger, errStranger", "err = errStranger"}}},
	{rule: "callers-memory-is-bounded", name: "an empty message takes what it travels as", file: "internal/wire/gate/unpacked.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"return structCost + unpackedIn", "return unpackedIn"}}},
	{rule: "callers-memory-is-bounded", name: "connections that never call stay", file: "internal/wire/gate/seats.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{" || s.silent.Len() >= s.quiet", ""}}},
}
