package main

// browserMutants let web pages, and callers that never send a whole request, at the fronts.
var browserMutants = []mutant{
	{rule: "fronts-by-their-names", name: "the console answers to any name", file: "internal/console/http.go", in: []string{"internal/console"}, edits: []edit{
		{"		if errors.As(c.cfg.Names.Check(r), &wrong) {\n", "		if errors.As(c.cfg.Names.Check(r), &wrong) && false {\n"}}},
	{rule: "fronts-by-their-names", name: "the HTTP front answers to any name", file: "router/front.go", in: []string{"router"}, edits: []edit{
		{"	err := f.names.Check(r)\n", "	err := error(nil)\n"}}},
	{rule: "fronts-by-their-names", name: "a path that is no route answers to any name", file: "router/front.go", in: []string{"router"}, edits: []edit{
		{"		if !f.meant(w, r, plainFault) {\n", "		if false {\n"}}},
	{rule: "fronts-by-their-names", name: "a name that begins as a known one is enough", file: "internal/browser/browser.go", in: []string{"internal/console"}, edits: []edit{
		{"strings.EqualFold(name, \"localhost\")", "strings.HasPrefix(strings.ToLower(name), \"localhost\")"}}},
	{rule: "pages-of-others-are-refused", name: "a request of any origin is served", file: "internal/browser/browser.go", in: []string{"router"}, edits: []edit{
		{"len(origins) > 1 || len(origins) == 1 && !n.origin(origins[0], r.Host)", "len(origins) > 1"}}},
	{rule: "pages-of-others-are-refused", name: "an origin on this machine is enough", file: "internal/browser/browser.go", in: []string{"router"}, edits: []edit{
		{"(strings.EqualFold(from.Host, host) || n.has(nameOf(from.Host)))", "n.addressed(from.Host)"}}},
	{rule: "pages-of-others-are-refused", name: "what a browser says of the site is not looked at", file: "router/front.go", in: []string{"router"}, edits: []edit{
		{"		err = browser.CheckSite(r)\n", "		err = nil\n"}}},
	{rule: "leaf-is-for-programs", name: "a browser takes numbers by GET", file: "router/front.go", in: []string{"router"}, edits: []edit{
		{"	return !f.refuses(w, r, shape, browser.CheckProgram(r))\n", "	return true\n"}}},
	{rule: "leaf-is-for-programs", name: "an image of a page takes a number", file: "internal/browser/browser.go", in: []string{"router"}, edits: []edit{
		{"		if name == \"Accept\" {\n", "		if false {\n"}}},
	{rule: "leaf-is-for-programs", name: "Leaf's paths take numbers without --leaf", file: "router/front.go", in: []string{"router"}, edits: []edit{
		{"	if !f.leaf {\n", "	if false {\n"}}},
}
