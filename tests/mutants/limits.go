package main

// limitMutants break the rules of changes that an operator cannot undo: jumps, ends and retired names.
var limitMutants = []mutant{
	{rule: "jumps-take-force", name: "no raise is too far", file: "allocsvr/section/raise.go", in: []string{"allocsvr/section", "allocsvr"}, edits: []edit{
		{"r.floor-r.ceiling > r.space.Jump(); !r.far", "r.floor-r.ceiling > uint64(seq.MaxSeq); !r.far"}}},
	{rule: "jumps-take-force", name: "a jump is measured from the numbers and not from the ceiling",
		file: "allocsvr/section/raise.go", in: []string{"allocsvr/section", "allocsvr"}, edits: []edit{
			{"r.floor-r.ceiling > r.space.Jump(); !r.far", "r.floor-r.c.table.High() > r.space.Jump(); !r.far"}}},
	{rule: "jumps-take-force", name: "every raise is forced", file: "allocsvr/section/raise.go", in: []string{"allocsvr/section", "allocsvr"}, edits: []edit{
		{"		if !r.reach.Force {\n", "		if false {\n"}}},
	{rule: "jumps-take-force", name: "a space that says nothing allows every jump", file: "seq/mapping.go", in: []string{"seq"}, edits: []edit{
		{"		return DefaultMaxJump\n", "		return uint64(MaxSeq)\n"}}},
	{rule: "jumps-take-force", name: "the force of a raise does not travel", file: "client/current.go", in: []string{"client"}, edits: []edit{
		{"Force: req.Force, ", ""}}},
	{rule: "raises-add-up", name: "the raises of an hour do not add up", file: "allocsvr/section/raise.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"		r.far = r.wait > 0\n", ""}}},
	{rule: "raises-add-up", name: "a repeated raise counts again", file: "allocsvr/section/raisebudget.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"	from := max(ceiling, of.upTo)\n", "	from := ceiling\n"}}},
	{rule: "raises-add-up", name: "the sum is of less than an hour", file: "allocsvr/section/raisebudget.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"int64(time.Hour / raiseSlot)", "int64(time.Hour/raiseSlot) - 1"}}},
	{rule: "raises-add-up", name: "the raises of an exact space do not add up", file: "allocsvr/section/idempotent.go", in: []string{"allocsvr"}, edits: []edit{
		{"	if last == 0 || r.charged {\n", "	if true {\n"}}},
	{rule: "raises-add-up", name: "the keys that fill an exact space add up", file: "allocsvr/section/idempotent.go", in: []string{"allocsvr"}, edits: []edit{
		{"	if last == 0 || r.charged {\n", "	if r.charged {\n"}}},
	{rule: "claimed-callers-are-bounded", name: "a host that names callers gets a worker id for each", file: "allocsvr/globalid/workers/delegate.go", in: []string{"allocsvr/globalid"}, edits: []edit{
		{"		if used*3 > after.Size*2 {\n", "		if false {\n"}}},
	{rule: "claimed-callers-are-bounded", name: "callers behind a plaintext router have one share", file: "allocsvr/globalid/workers/delegate.go", in: []string{"allocsvr/globalid"}, edits: []edit{
		{"s.held.begin(by.Name), s.hosts", "s.held.begin(by.host()), s.hosts"}, {"	s.held.end(a.by.Name, ", "	s.held.end(a.by.host(), "}, {"s.held[a.by.Name].ends", "s.held[a.by.host()].ends"}}},
	{rule: "claimed-callers-are-bounded", name: "every host is believed for whom it asks", file: "internal/wire/rpc/caller.go", in: []string{"internal/wire/rpc"}, edits: []edit{
		{"behind, host\n", "behind, \"\"\n"}}},
	{rule: "claimed-callers-are-bounded", name: "a router passes on what a caller says of itself", file: "internal/wire/rpc/caller.go", in: []string{"internal/wire/rpc"}, edits: []edit{
		{"cmp.Or(via, name)", "cmp.Or(name, via)"}}},
	{rule: "claimed-callers-are-bounded", name: "a router says for nobody that it asks for worker ids", file: "router/snowflake.go", in: []string{"tests/integration"}, edits: []edit{
		{"Delegate(rpc.For(ctx, s.guard), r)", "Delegate(ctx, r)"}}},
	{rule: "refusals-are-shown", name: "an alloc keeps quiet about what it refused", file: "allocsvr/api/admin.go", in: []string{"tests/integration"}, edits: []edit{
		{"	reply.Refused = s.Refused.RecentToProto()\n", ""}}},
	{rule: "refusals-are-shown", name: "an alloc keeps what a store refused to itself", file: "allocsvr/backend.go", in: []string{"tests/integration"}, edits: []edit{
		{"			out[i].Refused = id.GetRefused()\n", ""}}},
	{rule: "refusals-are-shown", name: "seqctl keeps quiet about refusals", file: "internal/ops/survey/troubles.go", in: []string{"internal/ops/survey"}, edits: []edit{
		{"	out = append(out, s.refusalNotes()...)\n", ""}}},
	{rule: "refusals-are-shown", name: "an address once seen keeps its place for good", file: "internal/wire/rpc/refused.go", in: []string{"internal/wire/rpc", "internal/wire/gate"}, edits: []edit{
		{"		if kept.weight--; kept.weight == 0 {\n", "		if kept.weight == 0 {\n"}}},
	{rule: "refusals-are-shown", name: "a server does not count what it refuses", file: "internal/wire/gate/server.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"	g.refused.NoteCall(ctx, cause)\n", ""}}},
	{rule: "refusals-are-shown", name: "every refusal is a line in the log", file: "internal/wire/rpc/servercreds.go", in: []string{"internal/wire/rpc", "internal/wire/gate"}, edits: []edit{
		{"now-last >= int64(time.Second)", "now >= last"}}},
	{rule: "forced-raises-are-recorded", name: "a forced raise leaves no line",
		file: "allocsvr/section/raise.go", in: []string{"allocsvr/section", "allocsvr"}, edits: []edit{
			{"		if err := r.t.record(ctx, r.c.id, r.key, r.ceiling, r.floor); err != nil {\n", "		if err := error(nil); err != nil {\n"}}},
	{rule: "ends-are-shown", name: "no section is ever spent", file: "seq/mapping.go", in: []string{"seq"}, edits: []edit{
		{"	return left < NearEnd, left < s.Step\n", "	return left < NearEnd, false\n"}}},
	{rule: "ends-are-shown", name: "the status of a node tells of no section near its end",
		file: "allocsvr/api/admin.go", in: []string{"allocsvr/api", "allocsvr"}, edits: []edit{
			{"		endings(s.Sections, owners.regs, reply)\n", ""}}},
	{rule: "ends-are-shown", name: "seqctl keeps quiet about sections near their end",
		file: "internal/ops/survey/troubles.go", in: []string{"cmd/seqctl/ctl"}, edits: []edit{
			{"	all = append(all, s.endTroubles(best)...)\n", ""}}},
	{rule: "no-wait-for-a-clock-far-back", name: "a caller waits for a mark that is an hour ahead of the clock",
		file: "allocsvr/globalid/workers/lease.go", in: []string{"allocsvr/globalid"}, edits: []edit{
			{"	case before.ahead(w.now()) > reachOf(w.cfg.Window)+w.cfg.Window:\n", "	case before == 0:\n"}}},
	{rule: "retired-hands-out-nothing", name: "a retired namespace is changed",
		file: "allocsvr/globalid/namespaces/directory.go", in: []string{"allocsvr/globalid"}, edits: []edit{
			{"	if err := old.InUse(); err != nil {\n		return d, old, err\n	}\n", ""}}},
	{rule: "retired-hands-out-nothing", name: "a retired namespace is taken into use",
		file: "allocsvr/globalid/namespaces/catalog.go", in: []string{"allocsvr/globalid"}, edits: []edit{
			{"		if err := ns.InUse(); err != nil {\n			return d, false, err\n		}\n", ""}}},
	{rule: "retired-hands-out-nothing", name: "who holds a worker id goes on in a retired namespace",
		file: "allocsvr/globalid/workers/lease.go", in: []string{"allocsvr/globalid"}, edits: []edit{
			{"ns.Layout == l.Namespace.Layout && ns.Retired == 0 ||", "ns.Layout == l.Namespace.Layout ||"}}},
	{rule: "retired-hands-out-nothing", name: "a retired tag hands out numbers", file: "allocsvr/segment/take.go", in: []string{"allocsvr/segment"}, edits: []edit{
		{"	if err := c.limits.inUse(); err != nil {\n		return Range{}, false, err\n	}\n", ""}}},
	{rule: "retired-hands-out-nothing", name: "a retired tag is changed", file: "allocsvr/segment/catalog.go", in: []string{"allocsvr/segment"}, edits: []edit{
		{"	if err := old.inUse(); err != nil {\n		return Tag{}, err\n	}\n", ""}}},
	{rule: "many-tags-or-none", name: "a wrong tag leaves the others put", file: "allocsvr/segment/catalog.go", in: []string{"allocsvr/segment"}, edits: []edit{
		{"changed && !bad && !check", "changed && !check"}}},
	{rule: "many-tags-or-none", name: "a check puts", file: "allocsvr/segment/catalog.go", in: []string{"allocsvr/segment"}, edits: []edit{
		{"changed && !bad && !check", "changed && !bad"}}},
	{rule: "many-tags-or-none", name: "nobody hears of a tag that was changed with others", file: "allocsvr/segment/take.go", in: []string{"allocsvr/segment"}, edits: []edit{
		{"		if r.fresh {\n", "		if r.fresh || r.changed {\n"}}},
	{rule: "many-tags-or-none", name: "seqctl puts before all lines are checked", file: "cmd/seqctl/ids/addfile.go", in: []string{"cmd/seqctl/ids"}, edits: []edit{
		{"	if err := put(true); err != nil {\n", "	if err := put(false); err != nil {\n"}}},
	{rule: "changes-are-tried-again", name: "a conflict reaches the caller", file: "allocsvr/documents/documents.go", in: []string{"allocsvr/documents"}, edits: []edit{
		{"		case !errors.Is(err, seq.ErrConflict):\n", "		default:\n"}}},
	{rule: "changes-are-tried-again", name: "a change that may have been made is told as one that was not", file: "allocsvr/documents/documents.go", in: []string{"allocsvr/documents"}, edits: []edit{
		{"	if unknown == nil || errors.Is", "	if true || errors.Is"}}},
	{rule: "retired-hands-out-nothing", name: "a retired tag keeps its lease", file: "allocsvr/segment/service.go", in: []string{"allocsvr/segment"}, edits: []edit{
		{"!mine || c.retired() || s.over(c)", "!mine || s.over(c)"}}},
	{rule: "layouts-last", name: "a namespace whose layout has ended is recorded when it is used",
		file: "allocsvr/globalid/namespaces/catalog.go", in: []string{"allocsvr/globalid"}, edits: []edit{
			{"			if err := ns.lasts(c.cfg.Wall()); err != nil {\n", "			if err := ns.lasts(c.cfg.Wall()); false {\n"}}},
	{rule: "layouts-last", name: "a namespace whose layout has ended is recorded by an operator",
		file: "allocsvr/globalid/namespaces/catalog.go", in: []string{"allocsvr/globalid"}, edits: []edit{
			{"		if err == nil && old.Retired == 0 {\n", "		if false {\n"}}},
	{rule: "layouts-last", name: "a namespace whose layout has ended is recorded from a file",
		file: "allocsvr/globalid/namespaces/catalog.go", in: []string{"allocsvr/globalid"}, edits: []edit{
			{"if err = want.lasts(c.cfg.Wall()); err == nil {", "if true {"}}},
	{rule: "datacenters-fit-before-they-are-bound", name: "an impossible datacenter id is bound to its name",
		file: "allocsvr/globalid/namespaces/catalog.go", in: []string{"allocsvr/globalid"}, edits: []edit{
			{"		if err := node.Fits(ns.Layout); err != nil {\n", "		if err := node.Fits(ns.Layout); false {\n"}}},
}
