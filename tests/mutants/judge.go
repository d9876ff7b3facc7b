package main

// judgeMutants break the judging of exact spaces: a broken promise is not seen.
var judgeMutants = []mutant{
	{rule: "exact-judging", name: "a hole is not seen", file: "internal/lab/history/exact.go", in: []string{"internal/lab/history"}, edits: []edit{
		{"		if end > top.Last && !slices.Contains(log.Raised, end) {\n", "		if false {\n"}}},
	{rule: "exact-judging", name: "a raise excuses a hole above it", file: "internal/lab/history/exact.go", in: []string{"internal/lab/history"}, edits: []edit{
		{"!slices.Contains(log.Raised, end) {", "len(log.Raised) == 0 {"}}},
	{rule: "exact-judging", name: "a hole above the last request is not seen", file: "internal/lab/history/exact.go", in: []string{"internal/lab/history"}, edits: []edit{
		{"	hole(log.Last)\n", ""}}},
	{rule: "exact-judging", name: "numbers above where a key stands are not seen", file: "internal/lab/history/exact.go", in: []string{"internal/lab/history"}, edits: []edit{
		{"	if top.Last > log.Last {\n", "	if false {\n"}}},
	{rule: "exact-judging", name: "two answers to one request are not seen", file: "internal/lab/history/exact.go", in: []string{"internal/lab/history"}, edits: []edit{
		{"		case c.First != q.answer.First, c.Last != q.answer.Last, ", "		case "}}},
	{rule: "exact-judging", name: "a repeated request that counts as new is not seen", file: "internal/lab/history/exact.go", in: []string{"internal/lab/history"}, edits: []edit{
		{", !c.Replayed && c.Start > q.answer.End:", ":"}}},
	{rule: "exact-judging", name: "a lookup of another number is not seen", file: "internal/lab/history/exact.go", in: []string{"internal/lab/history"}, edits: []edit{
		{"got != (Taken{q.answer.First, q.answer.Last}) {", "got == (Taken{}) {"}}},
	{rule: "exact-judging", name: "a lookup of nothing is not seen", file: "internal/lab/history/exact.go", in: []string{"internal/lab/history"}, edits: []edit{
		{"got != (Taken{q.answer.First, q.answer.Last}) {", "got != (Taken{}) && got != (Taken{q.answer.First, q.answer.Last}) {"}}},
	{rule: "exact-judging", name: "one number of two requests is not seen", file: "internal/lab/history/exact.go", in: []string{"internal/lab/history"}, edits: []edit{
		{"			r.Duplicates += min(got.Last, top.Last) - got.First + 1\n", ""}}},
	{rule: "exact-judging", name: "a request begins with its last sending", file: "internal/lab/history/exact.go", in: []string{"internal/lab/history"}, edits: []edit{
		{"start, sent = min(start, c.Start), ", "start, sent = max(start, c.Start), "}}},
	{rule: "exact-judging", name: "a hole is no broken promise", file: "internal/lab/result.go", in: []string{"internal/lab"}, edits: []edit{
		{"e == nil || e.Holes == 0 && e.Twice == 0 {", "e == nil || e.Twice == 0 {"}}},
	{rule: "exact-judging", name: "a second answer is no broken promise", file: "internal/lab/result.go", in: []string{"internal/lab"}, edits: []edit{
		{"e == nil || e.Holes == 0 && e.Twice == 0 {", "e == nil || e.Holes == 0 {"}}},
	{rule: "exact-judging", name: "what the log lacks is judged though ids were dropped", file: "internal/lab/onces.go", in: []string{"internal/lab"}, edits: []edit{
		{"> o.space.Window {", "> o.space.Window && false {"}}},
}
