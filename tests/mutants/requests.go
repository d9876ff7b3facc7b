package main

// requestMutants are those of the checks of requests, and of how many are let in.
var requestMutants = []mutant{
	{
		rule: "counts-are-bounded", name: "a count of none is taken",
		file:  "seq/check.go",
		edits: []edit{{old: "	if n == 0 || n > most {\n", new: "	if n > most {\n"}},
		in:    []string{"seq"},
	},
	{
		rule: "counts-are-bounded", name: "as many IDs as numbers of a key are taken at once",
		file:  "seq/check.go",
		edits: []edit{{old: "checkCount(field, n, MaxIDs)", new: "checkCount(field, n, MaxCount)"}},
		in:    []string{"seq"},
	},
	{
		rule: "counts-are-bounded", name: "the counts of a batch are not checked",
		file:  "seq/check.go",
		edits: []edit{{old: "		if CheckCount(\"\", uint64(c)) != nil {", new: "		if false {"}},
		in:    []string{"seq"},
	},
	{
		rule: "counts-are-bounded", name: "a batch may have more counts than keys",
		file:  "seq/check.go",
		edits: []edit{{old: "len(b.Counts) != 0 && len(b.Counts) != n {", new: "len(b.Counts) != 0 && len(b.Counts) < n {"}},
		in:    []string{"seq"},
	},
	{
		rule: "batches-are-bounded", name: "a batch has any number of keys",
		file:  "seq/check.go",
		edits: []edit{{old: "	if n == 0 || n > MaxBatch {\n", new: "	if n == 0 {\n"}},
		in:    []string{"seq"},
	},
	{
		rule: "batches-are-bounded", name: "a batch with string keys loses its UIDs",
		file:  "seq/check.go",
		edits: []edit{{old: "append(make([]UID, 0, n), uids...)", new: "make([]UID, 0, n)"}},
		in:    []string{"seq"},
	},
	{
		rule: "floors-are-bounded", name: "a sequence is raised beyond its end",
		file:  "seq/check.go",
		edits: []edit{{old: "	if floor > uint64(MaxSeq) {\n", new: "	if floor > uint64(MaxSeq)+1 {\n"}},
		in:    []string{"seq"},
	},
	{
		rule: "names-are-bounded", name: "a string key has any length",
		file:  "seq/check.go",
		edits: []edit{{old: "	if len(key) == 0 || len(key) > MaxKey {\n", new: "	if len(key) == 0 {\n"}},
		in:    []string{"seq"},
	},
	{
		rule: "names-are-bounded", name: "a tag has any bytes",
		file:  "seq/check.go",
		edits: []edit{{old: "\"._:-\", c) >= 0 {", new: "\"._:-\", c) >= -1 {"}},
		in:    []string{"seq"},
	},
	{
		rule: "names-are-bounded", name: "a namespace is named like a number",
		file:  "seq/check.go",
		edits: []edit{{old: "`^[a-z][a-z0-9._-]{0,63}$`", new: "`^[a-z0-9._-]{1,64}$`"}},
		in:    []string{"seq"},
	},
	{
		rule: "every-front-admits", name: "calls for IDs and tags are let into a router that is full",
		file:  "router/limits.go",
		edits: []edit{{old: "	if err := a.inWork.Enter(0); err != nil {\n		return err\n	}\n	defer a.inWork.Leave(0)\n	return a.ClientConnInterface.", new: "	return a.ClientConnInterface."}},
		in:    []string{"router"},
	},
	{
		rule: "every-front-admits", name: "single IDs are let into a router that is full",
		file:  "router/snowflake.go",
		edits: []edit{{old: "s.sdk.Generate(ctx, name, 1)", new: "s.sdk.Client.Generate(ctx, name, 1)"}},
		in:    []string{"router"},
	},
	{
		rule: "every-front-admits", name: "the status of all tags is let into a router that is full",
		file:  "router/segment.go",
		edits: []edit{{old: "	if err := s.sdk.inWork.Enter(0); err != nil {\n		return nil, err\n	}\n	defer s.sdk.inWork.Leave(0)\n", new: ""}},
		in:    []string{"router"},
	},
}
