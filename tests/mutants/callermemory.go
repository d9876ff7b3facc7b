package main

// callerMemoryMutants are those of the memory that callers may take of a server.
var callerMemoryMutants = []mutant{
	{rule: "callers-memory-is-bounded", name: "compressed messages are unpacked", file: "internal/wire/rpc/calls.go", in: []string{"internal/wire/rpc"}, edits: []edit{
		{"by != \"\" && by != encoding.Identity", "by != \"\" && by == encoding.Identity"}}},
	{rule: "callers-memory-is-bounded", name: "no connection makes room", file: "internal/wire/rpc/account.go", in: []string{"internal/wire/rpc"}, edits: []edit{
		{"		if other == nil || other == t {\n", "		if true {\n"}}},
	{rule: "callers-memory-is-bounded", name: "the connection with the most calls makes room", file: "internal/wire/rpc/account.go", in: []string{"internal/wire/rpc"}, edits: []edit{
		{"n := t.unfinished.Load(); n > most", "n := t.held(); n > most"}}},
	{rule: "callers-memory-is-bounded", name: "strangers have the whole budget", file: "internal/wire/rpc/account.go", in: []string{"internal/wire/rpc"}, edits: []edit{
		{"h.strange && a.strange+more > a.strangers", "h.strange && a.strange+more > a.budget"}}},
	{rule: "callers-memory-is-bounded", name: "a stranger may send as much as others", file: "internal/wire/rpc/conns.go", in: []string{"internal/wire/rpc"}, edits: []edit{
		{"limit, err = maxStranger, errStranger", "err = errStranger"}}},
	{rule: "callers-memory-is-bounded", name: "an empty message takes what it travels as", file: "internal/wire/rpc/unpacked.go", in: []string{"internal/wire/rpc"}, edits: []edit{
		{"return structCost + unpackedIn", "return unpackedIn"}}},
	{rule: "callers-memory-is-bounded", name: "connections that never call stay", file: "internal/wire/rpc/newcomers.go", in: []string{"internal/wire/rpc"}, edits: []edit{
		{"		oldest.drop(RefusedConnections)\n", ""}}},
}
