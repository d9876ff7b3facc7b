package main

// batchMutants break what a batch, a message or a pipeline promises of its keys.
var batchMutants = []mutant{
	{rule: "batch-again", name: "a call keeps room for as many takings as its last message had", file: "allocsvr/api/batch.go", in: []string{"allocsvr/api"}, edits: []edit{
		{"	c.takes = slices.Grow(c.takes[:0], len(req.Batches))[:len(req.Batches)]\n	for len(c.room) < len(req.Batches) {\n		c.room = append(c.room, &pb.BatchResult{})\n	}\n",
			"	for len(c.room) < len(req.Batches) {\n		c.takes, c.room = append(c.takes, section.Taking{}), append(c.room, &pb.BatchResult{})\n	}\n	c.takes = slices.Clip(c.takes)[:len(req.Batches)]\n"}}},
	{rule: "batch-again", name: "a call remembers the keys that waited in its last message", file: "allocsvr/api/batch.go", in: []string{"allocsvr/api"}, edits: []edit{
		{"c.s, c.req, c.line, c.refused = s, req, section.Line{}, nil", "c.s, c.req, c.refused = s, req, nil"}}},
	{rule: "batch-panics", name: "a test outlives a panic in a handler of gRPC", file: "internal/wire/gate/server.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"		if !recovers {\n			panic(p)\n		}\n", ""}}},
	{rule: "batch-panics", name: "a test outlives a panic in a handler of HTTP", file: "internal/wire/gate/panics.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"				endTest(p)\n", "				return\n"}}},
	{rule: "batch-order", name: "a later index of a key passes one that waits for the ceiling", file: "allocsvr/section/pass.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"t.line.has(l.c, uids[k]) || ", ""}}},
	{rule: "batch-order", name: "a key passes itself in the next batch of a message", file: "allocsvr/api/batch.go", in: []string{"allocsvr/api"}, edits: []edit{
		{"		c.takes[i].Behind(&c.line)\n", ""}}},
	{rule: "batch-order", name: "an index is served though one before it is to be repeated", file: "allocsvr/section/line.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"	if !errors.Is(err, seq.ErrOverflow) {\n", "	if !errors.Is(err, seq.ErrOverflow) && err == nil {\n"}}},
	{rule: "batch-order", name: "a count that never fits holds up smaller ones", file: "allocsvr/section/line.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"	if !errors.Is(err, seq.ErrOverflow) {\n", "	if !errors.Is(err, seq.ErrOverflow) || err != nil {\n"}}},
	{rule: "batch-order", name: "a strict batch is checked by its last epoch", file: "allocsvr/section/current.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"; !noted {", "; !noted || true {"}}},
	{rule: "batch-order", name: "a key is asked of a log before the one before has answered", file: "allocsvr/logs/finder.go", in: []string{"allocsvr/logs"}, edits: []edit{
		{"of != nil && of != g {", "of != nil && of != g && false {"}}},
	{rule: "batch-order", name: "a section that was refused to a key serves a later one", file: "allocsvr/logs/finder.go", in: []string{"allocsvr/logs"}, edits: []edit{
		{"			refused[id] = err\n", "			refused[id] = nil\n"}}},
	{rule: "batch-order", name: "batches that share a key are forwarded side by side", file: "router/pieces.go", in: []string{"router"}, edits: []edit{
		{"known && at != i {", "known && at != i && false {"}}},
	{rule: "batch-texts", name: "a number in quotes is a UID", file: "router/line/resp/keys.go", in: []string{"router/line/resp"}, edits: []edit{
		{"	case quoted(key):\n", "	case quoted(key) && quoted(space):\n"}}},
	{rule: "batch-texts", name: "UIDs and string keys are of one call", file: "internal/sdk/stream/takes.go", in: []string{"router/line/resp"}, edits: []edit{
		{"	return Group{key.Space, named}\n", "	_ = named\n	return Group{key.Space, false}\n"}}},
	{rule: "batch-texts", name: "two texts of the default space are two spaces in a pipeline", file: "router/line/resp/keys.go", in: []string{"router/line/resp"}, edits: []edit{
		{"cmp.Or(before, seq.DefaultSpace)", "cmp.Or(before, before)"}}},
	{rule: "batch-texts", name: "two texts of the default space are two spaces in a request", file: "router/pieces.go", in: []string{"router"}, edits: []edit{
		{"auth.SpaceName(p.space)", "p.space+auth.SpaceName(\"\")"}}},
	{rule: "batch-steps", name: "each index of a key asks for a step of its own", file: "allocsvr/section/take.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"min(t.line.numbers(c, uid, t.count(i)), uint64(seq.MaxSeq)-cur)", "min(t.count(i), uint64(seq.MaxSeq)-cur)"}}},
	{rule: "batch-steps", name: "a section's step is asked for after that of the one before", file: "allocsvr/section/take.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"		t.stepAll(ctx)\n", ""}}},
	{rule: "batch-steps", name: "a batch waits until its caller has gone", file: "allocsvr/api/batch.go", in: []string{"allocsvr/api"}, edits: []edit{
		{"time.Until(end)*4/5)", "time.Until(end)*5/4)"}}},
	{rule: "batch-steps", name: "a deadline says that the section is owned", file: "allocsvr/section/current.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"	if c.state == Owned && c.target > 0 {\n", "	if c.state == Owned && c.target > 0 && false {\n"}}},
	{rule: "batch-ids", name: "IDs are drawn for a caller who will have gone", file: "allocsvr/globalid/workers/lease.go", in: []string{"allocsvr/globalid"}, edits: []edit{
		{"most > 0 && uint64(count) > most {", "most > 0 && uint64(count) > most && false {"}}},
	{rule: "batch-ids", name: "IDs of a pipeline are refused together", file: "router/line/pipeline.go", in: []string{"router/line/resp"}, edits: []edit{
		{"errors.Is(err, seq.ErrTickUsedUp) && len(part) > 1 {", "errors.Is(err, seq.ErrTickUsedUp) && len(part) > seq.MaxIDs {"}}},
	{rule: "batch-fronts", name: "a space that keeps no ids refuses the batches beside its own", file: "allocsvr/api/batch.go", in: []string{"allocsvr/api"}, edits: []edit{
		{" || errors.Is(err, seq.ErrIDNotKept) {", " {"}}},
	{rule: "batch-fronts", name: "a space that is not known refuses the batches beside its own", file: "allocsvr/api/batch.go", in: []string{"tests/integration"}, edits: []edit{
		{"errors.Is(err, seq.ErrUnknownSpace) || ", ""}}},
	{rule: "batch-fronts", name: "a router looks at a floor before the key", file: "router/raise.go", in: []string{"tests/integration"}, edits: []edit{
		{"	key, place, err := s.admit(", "	if err := seq.CheckFloor(\"at_least\", r.GetAtLeast()); err != nil {\n		return nil, err\n	}\n	key, place, err := s.admit("}}},
	{rule: "batch-fronts", name: "of many conflicts the first one is told", file: "router/v1.go", in: []string{"tests/integration"}, edits: []edit{
		{"	if len(errs) > 1 && errs[0]", "	if len(errs) > 1<<20 && errs[0]"}}},
	{rule: "batch-order", name: "a server that speaks again is asked for the later keys of an order", file: "internal/sdk/call/begin.go", in: []string{"internal/sdk/call"}, edits: []edit{
		{"		if at == nil || at.silent {\n", "		if at == nil || to.health.silent.Load() {\n"}, {"	p.all[p.n-1].to, p.all[p.n-1].silent = to, to.health.silent.Load()\n", "	p.all[p.n-1].to = to\n"}}},
}
