package main

// transportMutants are those of connections and of what is told about them.
var transportMutants = []mutant{
	{rule: "tls-by-the-files-of-now", name: "a client goes by the files of its start", file: "internal/rpc/tls.go", in: []string{"internal/rpc"}, edits: []edit{
		{"	m := c.tls.current()\n", "	m := c.tls.loaded\n"}}},
	{rule: "tls-by-the-files-of-now", name: "a listener goes by the files of its start", file: "internal/rpc/tls.go", in: []string{"internal/rpc"}, edits: []edit{
		{"			m := t.current()\n", "			m := t.loaded\n"}}},
	{rule: "tls-by-the-files-of-now", name: "a broken file is told with every connection", file: "internal/rpc/tls.go", in: []string{"internal/rpc"}, edits: []edit{
		{"			t.told = err.Error()\n", ""}}},
	{rule: "spans-are-counted", name: "a span that finds no room is not counted",
		file: "internal/tracing/otlp/queue.go", in: []string{"internal/tracing/otlp"}, edits: []edit{
			{"		q.to.waiting.Add(-1)\n		q.to.dropped.Add(1)\n", "		q.to.waiting.Add(-1)\n"}}},
	{rule: "spans-cost-no-time", name: "the end waits for a batch that hangs",
		file: "internal/tracing/otlp/queue.go", in: []string{"internal/tracing/otlp"}, edits: []edit{
			{"	defer context.AfterFunc(s.life, cancel)()\n", ""}}},
}
