package main

// bulkMutants break the rules of raises of many keys, and of moving sequences in and out.
var bulkMutants = []mutant{
	{rule: "many-raises-by-grant", name: "a raise of many keys has no bound", file: "internal/wire/auth/methods.go", in: []string{"tests/secure"}, edits: []edit{
		{"			out[i].Within = &b.MaxJump\n", "			_ = b\n"}}},
	{rule: "many-raises-by-grant", name: "the router forgets how far raises of many keys may go", file: "router/raise.go", in: []string{"router", "tests/secure"}, edits: []edit{
		{"	if of.GetMaxJump() > 0 {\n", "	if false {\n"}}},
	{rule: "many-raises-ask-together", name: "each key waits for its own step", file: "allocsvr/section/raisemany.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"			waiting = append(waiting, i)\n", "			value, err := r.run(ctx)\n			put(i, value, err)\n"}}},
	{rule: "many-raises-have-own-errors", name: "a key that failed has a value", file: "client/raisemany.go", in: []string{"client"}, edits: []edit{
		{"		case errs != nil && errs[k] != nil:\n", "		case got == 0 && errs != nil && r.floors[i] == 0:\n"}}},
	{rule: "section-raised-whole", name: "keys with a counter are left below", file: "internal/base/counters/page.go", in: []string{"internal/base/counters", "allocsvr/section"}, edits: []edit{
		{"				*t.counter(s, uid) = base\n", ""}}},
	{rule: "section-raised-whole", name: "the sections of another mapping are raised", file: "allocsvr/api/raise.go", in: []string{"allocsvr/api"}, edits: []edit{
		{"	if err == nil && uint64(req.Sections) != uint64(space.Sections) {\n", "	if err == nil && false {\n"}}},
	{rule: "section-raised-whole", name: "a section is raised above its ceiling", file: "allocsvr/section/raisemany.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"		if r.far = false; !r.covers(ctx) {\n			return r.far, nil\n		}\n		c.table.Lift", "		c.table.Lift"}}},
	{rule: "files-are-whole", name: "an export that was cut is read", file: "cmd/seqctl/floorfile/floorfile.go", in: []string{"cmd/seqctl/floorfile"}, edits: []edit{
		{"	case r.export && !r.ended:\n", "	case r.export && r.ended && r.read < 0:\n"}}},
	{rule: "files-are-whole", name: "progress of another file will do", file: "cmd/seqctl/ctl/raisefile.go", in: []string{"cmd/seqctl/ctl"}, processes: "TestARaiseFromAFileGoesOnWhereItWasKilled", edits: []edit{
		{"at != old.Offset || f.in.Sum() != old.Sum {\n", "at != old.Offset {\n"}}},
	{rule: "exports-cover-all", name: "no line for a section", file: "cmd/seqctl/ctl/export.go", in: []string{"cmd/seqctl/ctl"}, processes: "TestNumbersMoveToAnotherClusterAndNoneIsRepeated", edits: []edit{
		{"		return e.put(floorfile.Line{Section: at,", "		return nil\n		return e.put(floorfile.Line{Section: at,"}}},
	{rule: "exports-cover-all", name: "string keys are passed over", file: "cmd/seqctl/ctl/export.go", in: []string{"cmd/seqctl/ctl"}, processes: "TestNumbersMoveToAnotherClusterAndNoneIsRepeated", edits: []edit{
		{"		if e.uids && p.GetOthers() > 0 {\n", "		if false {\n"}}},
}
