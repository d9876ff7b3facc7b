package main

// requestMutants break the rules of the checks of requests, and of how many are let in.
var requestMutants = []mutant{
	{rule: "counts-are-bounded", name: "a count of none is taken", file: "seq/check.go", in: []string{"seq"}, edits: []edit{
		{"	if n == 0 || n > most {\n", "	if n > most {\n"}}},
	{rule: "counts-are-bounded", name: "as many IDs as numbers of a key are taken at once", file: "seq/check.go", in: []string{"seq"}, edits: []edit{
		{"checkCount(field, n, MaxIDs)", "checkCount(field, n, MaxCount)"}}},
	{rule: "counts-are-bounded", name: "the counts of a batch are not checked", file: "seq/check.go", in: []string{"seq"}, edits: []edit{
		{"		if CheckCount(\"\", uint64(c)) != nil {", "		if false {"}}},
	{rule: "counts-are-bounded", name: "a batch may have more counts than keys", file: "seq/check.go", in: []string{"seq"}, edits: []edit{
		{"len(b.Counts) != 0 && len(b.Counts) != n {", "len(b.Counts) != 0 && len(b.Counts) < n {"}}},
	{rule: "batches-are-bounded", name: "a batch has any number of keys", file: "seq/check.go", in: []string{"seq"}, edits: []edit{
		{"	if n == 0 || n > MaxBatch {\n", "	if n == 0 {\n"}}},
	{rule: "batches-are-bounded", name: "a batch with string keys loses its UIDs", file: "seq/keyhash.go", in: []string{"seq"}, edits: []edit{
		{"append(make([]UID, 0, len(b.UIDs)+len(b.Keys)), uids...)", "make([]UID, 0, len(b.UIDs)+len(b.Keys))"}}},
	{rule: "floors-are-bounded", name: "a sequence is raised beyond its end", file: "seq/check.go", in: []string{"seq"}, edits: []edit{
		{"	if floor > uint64(MaxSeq) {\n", "	if floor > uint64(MaxSeq)+1 {\n"}}},
	{rule: "names-are-bounded", name: "a string key has any length", file: "seq/check.go", in: []string{"seq"}, edits: []edit{
		{"	if len(key) == 0 || len(key) > MaxKey {\n", "	if len(key) == 0 {\n"}}},
	{rule: "names-are-bounded", name: "a tag has any bytes", file: "seq/check.go", in: []string{"seq"}, edits: []edit{
		{"\"._:-\", c) >= 0 {", "\"._:-\", c) >= -1 {"}}},
	{rule: "names-are-bounded", name: "a namespace is named like a number", file: "seq/check.go", in: []string{"seq"}, edits: []edit{
		{"`^[a-z][a-z0-9._-]{0,63}$`", "`^[a-z0-9._-]{1,64}$`"}}},
	{rule: "every-front-admits", name: "calls for IDs and tags are let into a router that is full", file: "router/limits.go", in: []string{"router"}, edits: []edit{
		{"	place, err := a.enter(ctx)\n	if err != nil {\n		return err\n	}\n	defer place.Leave()\n	return a.ClientConnInterface.", "	return a.ClientConnInterface."}}},
	{rule: "every-front-admits", name: "single IDs are let into a router that is full", file: "router/snowflake.go", in: []string{"router"}, edits: []edit{
		{"s.sdk.GenerateAs(ctx, r", "s.sdk.Client.GenerateAs(ctx, r"}}},
	{rule: "every-front-admits", name: "the status of all tags is let into a router that is full", file: "router/segment.go", in: []string{"router"}, edits: []edit{
		{"	place, err := s.sdk.door.root(ctx)\n	if err != nil {\n		return nil, err\n	}\n	defer place.Leave()\n", ""}}},
}
