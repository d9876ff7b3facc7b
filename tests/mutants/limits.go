package main

// limitMutants are those of what an operator cannot undo: jumps, ends and what is retired.
var limitMutants = []mutant{
	{rule: "jumps-take-force", name: "no raise is too far", file: "allocsvr/raise.go", in: []string{"allocsvr"}, edits: []edit{
		{"floor-ceiling > space.Jump(); !far", "floor-ceiling > uint64(seq.MaxSeq); !far"}}},
	{rule: "jumps-take-force", name: "a jump is measured from the numbers and not from the ceiling",
		file: "allocsvr/raise.go", in: []string{"allocsvr"}, edits: []edit{
			{"floor-ceiling > space.Jump(); !far", "floor-c.table.High() > space.Jump(); !far"}}},
	{rule: "jumps-take-force", name: "every raise is forced", file: "allocsvr/raise.go", in: []string{"allocsvr"}, edits: []edit{
		{"		if !force {\n", "		if false {\n"}}},
	{rule: "jumps-take-force", name: "a space that says nothing allows every jump", file: "seq/mapping.go", in: []string{"seq"}, edits: []edit{
		{"		return DefaultMaxJump\n", "		return uint64(MaxSeq)\n"}}},
	{rule: "jumps-take-force", name: "the force of a raise does not travel", file: "client/current.go", in: []string{"client"}, edits: []edit{
		{"Force: req.Force, ", ""}}},
	{rule: "forced-raises-are-recorded", name: "a forced raise leaves no line", file: "allocsvr/raise.go", in: []string{"allocsvr"}, edits: []edit{
		{"		if err := a.recordRaise(ctx, c.id, uid, ceiling, floor); err != nil {\n", "		if err := error(nil); err != nil {\n"}}},
	{rule: "ends-are-shown", name: "no section is ever spent", file: "seq/mapping.go", in: []string{"seq"}, edits: []edit{
		{"	return left < NearEnd, left < s.Step\n", "	return left < NearEnd, false\n"}}},
	{rule: "ends-are-shown", name: "the status of a node tells of no section near its end", file: "allocsvr/admin.go", in: []string{"allocsvr"}, edits: []edit{
		{"		a.endings(owners.regs, reply)\n", ""}}},
	{rule: "ends-are-shown", name: "seqctl keeps quiet about sections near their end",
		file: "cmd/seqctl/ctl/troubles.go", in: []string{"cmd/seqctl/ctl"}, edits: []edit{
			{"	all = append(all, s.endTroubles(best)...)\n", ""}}},
	{rule: "retired-hands-out-nothing", name: "a retired namespace is changed",
		file: "allocsvr/globalid/namespace.go", in: []string{"allocsvr/globalid"}, edits: []edit{
			{"	if err := old.inUse(); err != nil {\n		return d, old, err\n	}\n", ""}}},
	{rule: "retired-hands-out-nothing", name: "a retired namespace is taken into use",
		file: "allocsvr/globalid/directory.go", in: []string{"allocsvr/globalid"}, edits: []edit{
			{"		if err := ns.inUse(); err != nil {\n			return d, false, err\n		}\n", ""}}},
	{rule: "retired-hands-out-nothing", name: "who holds a worker id goes on in a retired namespace",
		file: "allocsvr/globalid/directory.go", in: []string{"allocsvr/globalid"}, edits: []edit{
			{"ns.Layout == l.ns.Layout && ns.Retired == 0 ||", "ns.Layout == l.ns.Layout ||"}}},
	{rule: "retired-hands-out-nothing", name: "a retired tag hands out numbers", file: "allocsvr/segment/take.go", in: []string{"allocsvr/segment"}, edits: []edit{
		{"	if err := c.limits.inUse(); err != nil {\n		return Range{}, false, err\n	}\n", ""}}},
	{rule: "retired-hands-out-nothing", name: "a retired tag is changed", file: "allocsvr/segment/catalog.go", in: []string{"allocsvr/segment"}, edits: []edit{
		{"	if err := old.inUse(); err != nil {\n		return Tag{}, err\n	}\n", ""}}},
	{rule: "retired-hands-out-nothing", name: "a retired tag keeps its lease", file: "allocsvr/segment/service.go", in: []string{"allocsvr/segment"}, edits: []edit{
		{"			return !mine || c.retired()\n", "			return !mine\n"}}},
	{rule: "layouts-last", name: "a namespace whose layout has ended is recorded when it is used",
		file: "allocsvr/globalid/directory.go", in: []string{"allocsvr/globalid"}, edits: []edit{
			{"				err = ns.lasts(s.cfg.Wall())\n			}\n			if err != nil {\n				return d, false, err\n			}\n			if d, ns",
				"			}\n			if err != nil {\n				return d, false, err\n			}\n			if d, ns"}}},
	{rule: "layouts-last", name: "a namespace whose layout has ended is recorded by an operator",
		file: "allocsvr/globalid/directory.go", in: []string{"allocsvr/globalid"}, edits: []edit{
			{"		if err == nil && old.Retired == 0 {\n", "		if false {\n"}}},
	{rule: "layouts-last", name: "a namespace whose layout has ended is recorded from a file",
		file: "allocsvr/globalid/declare.go", in: []string{"allocsvr/globalid"}, edits: []edit{
			{"				err := want.lasts(s.cfg.Wall())\n", "				var err error\n"}}},
	{rule: "datacenters-fit-before-they-are-bound", name: "an impossible datacenter id is bound to its name",
		file: "allocsvr/globalid/directory.go", in: []string{"allocsvr/globalid"}, edits: []edit{
			{"		if err := s.cfg.fits(ns.Layout); err != nil {\n", "		if err := s.cfg.fits(ns.Layout); false {\n"}}},
}
