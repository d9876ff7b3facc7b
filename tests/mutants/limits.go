package main

// limitMutants are those of what an operator cannot undo: jumps, ends and what is retired.
var limitMutants = []mutant{
	{
		rule: "jumps-take-force", name: "no raise is too far",
		file:  "allocsvr/section/raise.go",
		edits: []edit{{old: "floor-ceiling > space.Jump(); !far", new: "floor-ceiling > uint64(seq.MaxSeq); !far"}},
		in:    []string{"allocsvr/section", "allocsvr"},
	},
	{
		rule: "jumps-take-force", name: "a jump is measured from the numbers and not from the ceiling",
		file:  "allocsvr/section/raise.go",
		edits: []edit{{old: "floor-ceiling > space.Jump(); !far", new: "floor-c.table.High() > space.Jump(); !far"}},
		in:    []string{"allocsvr/section", "allocsvr"},
	},
	{
		rule: "jumps-take-force", name: "every raise is forced",
		file:  "allocsvr/section/raise.go",
		edits: []edit{{old: "		if !force {\n", new: "		if false {\n"}},
		in:    []string{"allocsvr/section", "allocsvr"},
	},
	{
		rule: "jumps-take-force", name: "a space that says nothing allows every jump",
		file:  "seq/mapping.go",
		edits: []edit{{old: "		return DefaultMaxJump\n", new: "		return uint64(MaxSeq)\n"}},
		in:    []string{"seq"},
	},
	{
		rule: "jumps-take-force", name: "the force of a raise does not travel",
		file:  "client/current.go",
		edits: []edit{{old: "Force: req.Force, ", new: ""}},
		in:    []string{"client"},
	},
	{
		rule: "forced-raises-are-recorded", name: "a forced raise leaves no line",
		file:  "allocsvr/section/raise.go",
		edits: []edit{{old: "		if err := t.record(ctx, c.id, uid, ceiling, floor); err != nil {\n", new: "		if err := error(nil); err != nil {\n"}},
		in:    []string{"allocsvr/section", "allocsvr"},
	},
	{
		rule: "ends-are-shown", name: "no section is ever spent",
		file:  "seq/mapping.go",
		edits: []edit{{old: "	return left < NearEnd, left < s.Step\n", new: "	return left < NearEnd, false\n"}},
		in:    []string{"seq"},
	},
	{
		rule: "ends-are-shown", name: "the status of a node tells of no section near its end",
		file:  "allocsvr/api/admin.go",
		edits: []edit{{old: "		endings(s.Sections, owners.regs, reply)\n", new: ""}},
		in:    []string{"allocsvr/api", "allocsvr"},
	},
	{
		rule: "ends-are-shown", name: "seqctl keeps quiet about sections near their end",
		file:  "cmd/seqctl/ctl/troubles.go",
		edits: []edit{{old: "	all = append(all, s.endTroubles(best)...)\n", new: ""}},
		in:    []string{"cmd/seqctl/ctl"},
	},
	{
		rule: "retired-hands-out-nothing", name: "a retired namespace is changed",
		file:  "allocsvr/globalid/namespaces/directory.go",
		edits: []edit{{old: "	if err := old.InUse(); err != nil {\n		return d, old, err\n	}\n", new: ""}},
		in:    []string{"allocsvr/globalid"},
	},
	{
		rule: "retired-hands-out-nothing", name: "a retired namespace is taken into use",
		file:  "allocsvr/globalid/namespaces/catalog.go",
		edits: []edit{{old: "		if err := ns.InUse(); err != nil {\n			return d, false, err\n		}\n", new: ""}},
		in:    []string{"allocsvr/globalid"},
	},
	{
		rule: "retired-hands-out-nothing", name: "who holds a worker id goes on in a retired namespace",
		file:  "allocsvr/globalid/workers/lease.go",
		edits: []edit{{old: "ns.Layout == l.Namespace.Layout && ns.Retired == 0 ||", new: "ns.Layout == l.Namespace.Layout ||"}},
		in:    []string{"allocsvr/globalid"},
	},
	{
		rule: "retired-hands-out-nothing", name: "a retired tag hands out numbers",
		file:  "allocsvr/segment/take.go",
		edits: []edit{{old: "	if err := c.limits.inUse(); err != nil {\n		return Range{}, false, err\n	}\n", new: ""}},
		in:    []string{"allocsvr/segment"},
	},
	{
		rule: "retired-hands-out-nothing", name: "a retired tag is changed",
		file:  "allocsvr/segment/catalog.go",
		edits: []edit{{old: "	if err := old.inUse(); err != nil {\n		return Tag{}, err\n	}\n", new: ""}},
		in:    []string{"allocsvr/segment"},
	},
	{
		rule: "retired-hands-out-nothing", name: "a retired tag keeps its lease",
		file:  "allocsvr/segment/service.go",
		edits: []edit{{old: "			return !mine || c.retired()\n", new: "			return !mine\n"}},
		in:    []string{"allocsvr/segment"},
	},
	{
		rule: "layouts-last", name: "a namespace whose layout has ended is recorded when it is used",
		file:  "allocsvr/globalid/namespaces/catalog.go",
		edits: []edit{{old: "			if err := ns.lasts(c.cfg.Wall()); err != nil {\n", new: "			if err := ns.lasts(c.cfg.Wall()); false {\n"}},
		in:    []string{"allocsvr/globalid"},
	},
	{
		rule: "layouts-last", name: "a namespace whose layout has ended is recorded by an operator",
		file:  "allocsvr/globalid/namespaces/catalog.go",
		edits: []edit{{old: "		if err == nil && old.Retired == 0 {\n", new: "		if false {\n"}},
		in:    []string{"allocsvr/globalid"},
	},
	{
		rule: "layouts-last", name: "a namespace whose layout has ended is recorded from a file",
		file:  "allocsvr/globalid/namespaces/catalog.go",
		edits: []edit{{old: "if err = want.lasts(c.cfg.Wall()); err == nil {", new: "if true {"}},
		in:    []string{"allocsvr/globalid"},
	},
	{
		rule: "datacenters-fit-before-they-are-bound", name: "an impossible datacenter id is bound to its name",
		file:  "allocsvr/globalid/namespaces/catalog.go",
		edits: []edit{{old: "		if err := c.cfg.Node.Fits(ns.Layout); err != nil {\n", new: "		if err := c.cfg.Node.Fits(ns.Layout); false {\n"}},
		in:    []string{"allocsvr/globalid"},
	},
}
