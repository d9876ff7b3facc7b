package main

// transportMutants are those of connections and of what is told about them.
var transportMutants = []mutant{
	{
		rule: "tls-by-the-files-of-now", name: "a client goes by the files of its start",
		file:  "internal/rpc/tls.go",
		edits: []edit{{old: "	m := c.tls.current()\n", new: "	m := c.tls.loaded\n"}},
		in:    []string{"internal/rpc"},
	},
	{
		rule: "tls-by-the-files-of-now", name: "a listener goes by the files of its start",
		file:  "internal/rpc/tls.go",
		edits: []edit{{old: "			m := t.current()\n", new: "			m := t.loaded\n"}},
		in:    []string{"internal/rpc"},
	},
	{
		rule: "tls-by-the-files-of-now", name: "a broken file is told with every connection",
		file:  "internal/rpc/tls.go",
		edits: []edit{{old: "			t.told = err.Error()\n", new: ""}},
		in:    []string{"internal/rpc"},
	},
	{
		rule: "spans-are-counted", name: "a span that finds no room is not counted",
		file:  "internal/tracing/otlp/queue.go",
		edits: []edit{{old: "		q.to.waiting.Add(-1)\n		q.to.dropped.Add(1)\n", new: "		q.to.waiting.Add(-1)\n"}},
		in:    []string{"internal/tracing/otlp"},
	},
	{
		rule: "spans-cost-no-time", name: "the end waits for a batch that hangs",
		file:  "internal/tracing/otlp/queue.go",
		edits: []edit{{old: "	defer context.AfterFunc(s.life, cancel)()\n", new: ""}},
		in:    []string{"internal/tracing/otlp"},
	},
}
