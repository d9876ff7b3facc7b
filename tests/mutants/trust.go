package main

// trustMutants break the rules of restores, repairs, old disks and lies.
var trustMutants = []mutant{
	{line: 35, rule: "old-lists-waited-for", name: "the wait for the leases of old member lists ignores how old the list is",
		file: "internal/ops/storeadmin/repair.go", in: []string{"internal/ops/storeadmin"}, edits: []edit{
			{"s.id.Grace, graceOf(longest(voters))-s.id.ListAge)", "s.id.Grace)"}}},
	{line: 36, rule: "filled-under-this-list", name: "filled under any list counts as filled",
		file: "storesvr/members.go", in: []string{"storesvr", "internal/ops/storeadmin"}, edits: []edit{
			{"was && before.Learner && own.Filled != own.Version\n", "was && before.Learner && own.Filled == 0\n"}}},
	{line: 36, rule: "filled-under-this-list", name: "a store that was taken out before it was filled is a voter once a change goes back",
		file: "storesvr/members.go", in: []string{"storesvr"}, edits: []edit{
			{"	case fresh, unfilled, m.self.Learner && own.Filled == 0:\n", "	case fresh, unfilled:\n"}}},
	{line: 36, rule: "filled-under-this-list", name: "filled under a list before counts for a store that was taken out unfilled",
		file: "storesvr/members.go", in: []string{"storesvr"}, edits: []edit{
			{"			next.Filled = 0\n", ""}}},
	{line: 36, rule: "filled-under-this-list", name: "a learner calls itself filled under any list",
		file: "storesvr/members.go", in: []string{"storesvr", "internal/ops/storeadmin"}, edits: []edit{
			{"	case me.Learner && m.Filled == m.Version:\n", "	case me.Learner && m.Filled != 0:\n"}}},
	{line: 37, rule: "grace-survives-a-stop", name: "an orderly stop inside the grace drops the grace",
		file: "storesvr/core.go", in: []string{"storesvr"}, edits: []edit{
			{" && c.acceptor.Grace(now) == 0 && !c.acceptor.Leased(now)", " && !c.acceptor.Leased(now)"}}},
	{line: 38, rule: "repair-spreads", name: "repair does not spread to the voters",
		file: "internal/ops/storeadmin/repair.go", in: []string{"internal/ops/storeadmin"}, edits: []edit{
			{"		for _, s := range voters {\n			if err := c.send(", "		for _, s := range voters[:0] {\n			if err := c.send("}}},
	{line: 39, rule: "repair-documents", name: "documents are not repaired", file: "internal/ops/storeadmin/repair.go", in: []string{"internal/ops/storeadmin"}, edits: []edit{
		{"		if !r.HasPayload() {\n", "		if true || !r.HasPayload() {\n"}}},
	{line: 40, rule: "strict-under-own-epoch", name: "a strict check accepts a higher promise",
		file: "allocsvr/ownership/registers.go", in: []string{"allocsvr/ownership", "allocsvr"}, edits: []edit{
			{"out.Promised != epochs[i] {\n", "out.Promised.Less(epochs[i]) {\n"}}},
}
