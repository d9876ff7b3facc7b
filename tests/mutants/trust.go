package main

// trustMutants are those of restores, settles, old disks and lies.
var trustMutants = []mutant{
	{
		line: 35, rule: "old-lists-waited-for",
		name:  "the wait for the leases of old member lists ignores how old the list is",
		file:  "internal/storecare/settle.go",
		edits: []edit{{old: "s.id.Grace, graceOf(longest(voters))-s.id.ListAge)", new: "s.id.Grace)"}},
		in:    []string{"internal/storecare"},
	},
	{
		line: 36, rule: "filled-under-this-list",
		name:  "filled under any list counts as filled",
		file:  "storesvr/members.go",
		edits: []edit{{old: "	case fresh, was && before.Learner && own.Filled != own.Version:\n", new: "	case fresh, was && before.Learner && own.Filled == 0:\n"}},
		in:    []string{"storesvr", "internal/storecare"},
	},
	{
		line: 36, rule: "filled-under-this-list",
		name:  "a learner calls itself filled under any list",
		file:  "storesvr/members.go",
		edits: []edit{{old: "	case me.Learner && m.Filled == m.Version:\n", new: "	case me.Learner && m.Filled != 0:\n"}},
		in:    []string{"storesvr", "internal/storecare"},
	},
	{
		line: 37, rule: "grace-survives-a-stop",
		name:  "an orderly stop inside the grace drops the grace",
		file:  "storesvr/core.go",
		edits: []edit{{old: " && c.acceptor.Grace(now) == 0 && !c.acceptor.Leased(now)", new: " && !c.acceptor.Leased(now)"}},
		in:    []string{"storesvr"},
	},
	{
		line: 38, rule: "settle-spreads",
		name:  "settle does not spread to the voters",
		file:  "internal/storecare/settle.go",
		edits: []edit{{old: "	for _, s := range voters {\n		if err := c.send(", new: "	for _, s := range voters[:0] {\n		if err := c.send("}},
		in:    []string{"internal/storecare"},
	},
	{
		line: 39, rule: "settle-documents",
		name:  "documents are not settled",
		file:  "internal/storecare/settle.go",
		edits: []edit{{old: "		if r.Kind() != seq.KindDocument {\n", new: "		if true || r.Kind() != seq.KindDocument {\n"}},
		in:    []string{"internal/storecare"},
	},
	{
		line: 40, rule: "strict-under-own-epoch",
		name:  "a strict check accepts a higher promise",
		file:  "allocsvr/tenure/registers.go",
		edits: []edit{{old: "out.Promised != epochs[i] {\n", new: "out.Promised.Less(epochs[i]) {\n"}},
		in:    []string{"allocsvr/tenure", "allocsvr"},
	},
}
