package main

// browserMutants break the rules for web pages at the fronts, and for callers that never send a whole
// request.
var browserMutants = []mutant{
	{rule: "fronts-by-their-names", name: "the console answers to any name", file: "internal/ops/console/http.go", in: []string{"internal/ops/console"}, edits: []edit{
		{"		if errors.As(c.cfg.Names.CheckHost(r), &wrong) {\n", "		if errors.As(c.cfg.Names.CheckHost(r), &wrong) && false {\n"}}},
	{rule: "fronts-by-their-names", name: "the HTTP front answers to any name", file: "router/front.go", in: []string{"router"}, edits: []edit{
		{"	err := f.names.Check(r)\n", "	err := error(nil)\n"}}},
	{rule: "fronts-by-their-names", name: "a path that is no route answers to any name", file: "router/front.go", in: []string{"router"}, edits: []edit{
		{"		if !f.meant(w, r, plainFault) {\n", "		if false {\n"}}},
	{rule: "fronts-by-their-names", name: "a name that begins as a known one is enough", file: "internal/wire/browser/browser.go", in: []string{"internal/ops/console"}, edits: []edit{
		{"strings.EqualFold(name, \"localhost\")", "strings.HasPrefix(strings.ToLower(name), \"localhost\")"}}},
	{rule: "pages-of-others-are-refused", name: "a request of any origin is served", file: "internal/wire/browser/browser.go", in: []string{"router"}, edits: []edit{
		{"len(origins) > 1 || len(origins) == 1 && !n.origin(origins[0], r.Host)", "len(origins) > 1"}}},
	{rule: "pages-of-others-are-refused", name: "an origin on this machine is enough", file: "internal/wire/browser/browser.go", in: []string{"router"}, edits: []edit{
		{"(strings.EqualFold(from.Host, host) || n.has(nameOf(from.Host)))", "n.addressed(from.Host)"}}},
	{rule: "pages-of-others-are-refused", name: "what a browser says of the site is not looked at", file: "router/front.go", in: []string{"router"}, edits: []edit{
		{"		err = browser.CheckSite(r)\n", "		err = nil\n"}}},
	{rule: "leaf-is-for-programs", name: "a browser takes numbers by GET", file: "router/front.go", in: []string{"router"}, edits: []edit{
		{"	return !f.refuses(w, r, shape, browser.CheckProgram(r))\n", "	return true\n"}}},
	{rule: "leaf-is-for-programs", name: "an image of a page takes a number", file: "internal/wire/browser/browser.go", in: []string{"router"}, edits: []edit{
		{"		if name == \"Accept\" {\n", "		if false {\n"}}},
	{rule: "leaf-is-for-programs", name: "Leaf's paths take numbers without --leaf", file: "router/front.go", in: []string{"router"}, edits: []edit{
		{"	if !f.leaf {\n", "	if false {\n"}}},
	{rule: "commands-have-one-budget", name: "connections draw nothing for what they hold", file: "router/line/purse.go", in: []string{"router/line"}, edits: []edit{
		{"	if p.denied = want != p.drawn && !p.of.Draw(p.address, int64(want-p.drawn)); p.denied {\n", "	if false {\n"}}},
	{rule: "commands-have-one-budget", name: "one address holds all", file: "internal/wire/gate/budget.go", in: []string{"router/line"}, edits: []edit{
		{"b.used+n > b.most || b.by[host]+n > b.each", "b.used+n > b.most"}}},
	{rule: "commands-have-one-budget", name: "what a transaction keeps is free", file: "router/line/resp/transaction.go", in: []string{"router/line/resp"}, edits: []edit{
		{"s.tx.bytes+bytes", "s.tx.bytes"}}},
	{rule: "strangers-send-little", name: "a connection before AUTH sends as much as others", file: "router/line/resp/dialect.go", in: []string{"router/line/resp"}, edits: []edit{
		{"	s.parser.small = s.conn.Stranger()\n", "	s.parser.small = false\n"}}},
	{rule: "strangers-send-little", name: "a connection before AUTH stays", file: "router/line/conn.go", in: []string{"router/line"}, edits: []edit{
		{"	return now.Sub(c.begun) >= c.server.waits.Stranger && c.Stranger()\n", "	return false\n"}}},
	{rule: "idle-connections-yield", name: "a full listener refuses callers", file: "internal/wire/gate/seats.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"	if oldest := s.silent.Front(); oldest != nil {\n", "	if oldest := s.silent.Front(); false && oldest != nil {\n"}}},
	{rule: "idle-connections-yield", name: "a connection with calls yields as one without", file: "internal/wire/gate/seats.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"			seat.Called()\n", "			_ = seat\n"}}},
	{rule: "idle-connections-yield", name: "an address with all seats keeps others away", file: "internal/wire/gate/seats.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"seat.address != address && s.by[seat.address] > s.most/2", "seat == nil"}}},
	{rule: "streams-that-are-read", name: "a stream that nobody reads keeps its place", file: "internal/ops/console/stream.go", in: []string{"internal/ops/console"}, edits: []edit{
		{"context.WithTimeout(r.Context(), c.streamLife)", "context.WithCancel(r.Context())"}}},
}
