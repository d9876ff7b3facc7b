package main

// memoryMutants break the rules of the memory that the counters of UIDs may take.
var memoryMutants = []mutant{
	{
		rule: "folds-raise-the-base", name: "counters are dropped and the base stays",
		file:  "internal/base/counters/fold.go",
		edits: []edit{{old: "		t.base = max(t.base, high)\n", new: ""}},
		in:    []string{"internal/base/counters", "allocsvr/section"},
	},
	{
		rule: "folds-raise-the-base", name: "the base rises to the lowest counter of a block only",
		file:  "internal/base/counters/fold.go",
		edits: []edit{{old: "		high = max(high, value)\n		return true\n", new: "		high = value\n		return false\n"}},
		in:    []string{"internal/base/counters"},
	},
	{
		rule: "folds-raise-the-base", name: "the base that a fold has raised does not travel",
		file:  "internal/base/counters/codec.go",
		edits: []edit{{old: "		t.base += rise\n		t.high = t.base\n", new: "		t.high = t.base + rise\n"}, {old: "r.bad || t.base <= t.floor", new: "r.bad || rise == 0"}},
		in:    []string{"internal/base/counters"},
	},
	{
		rule: "folds-spare-uids-in-use", name: "what was taken from a moment ago is folded",
		file:  "internal/base/counters/fold.go",
		edits: []edit{{old: "s.where == 0 || s.last >= before {", new: "s.where == 0 || before == 0 {"}},
		in:    []string{"internal/base/counters", "allocsvr/section"},
	},
	{
		rule: "folds-spare-uids-in-use", name: "a sealed table is folded",
		file:  "allocsvr/section/memory.go",
		edits: []edit{{old: "		if c.state != Owned { // a sealed", new: "		if c.state == Absent { // a sealed"}},
		in:    []string{"allocsvr/section"},
	},
	{
		rule: "folds-spare-uids-in-use", name: "what exact sections take is folded for",
		file:  "allocsvr/section/memory.go",
		edits: []edit{{old: "uint64(max(m.used.Load(), 0))/percent", new: "uint64(max(m.used.Load()+m.logs.Load(), 0))/percent"}},
		in:    []string{"allocsvr/section"},
	},
	{
		rule: "uids-in-memory-go-on", name: "known UIDs are refused as well",
		file: "allocsvr/section/memory.go",
		edits: []edit{{
			old: "	if _, known := c.table.Get(uint64(key.UID)); known {\n		return nil\n	}\n",
			new: "",
		}},
		in: []string{"allocsvr/section"},
	},
	{
		rule: "uid-memory-is-bounded", name: "no UID is refused",
		file:  "allocsvr/section/pass.go",
		edits: []edit{{old: "	if !spot.Known() && c.memory.above(allUsed) {\n		return false\n	}\n", new: ""}},
		in:    []string{"allocsvr/section"},
	},
	{
		rule: "uid-memory-is-bounded", name: "what tables grow by is not counted",
		file:  "allocsvr/section/pass.go",
		edits: []edit{{old: "	if !spot.Known() {\n		c.weigh()\n	}\n", new: ""}},
		in:    []string{"allocsvr/section"},
	},
	{
		rule: "uid-memory-is-bounded", name: "seqctl keeps quiet until UIDs are refused",
		file:  "internal/ops/survey/troubles.go",
		edits: []edit{{old: "used/4 < budget/5 {", new: "used < budget {"}},
		in:    []string{"cmd/seqctl/ctl"},
	},
}
