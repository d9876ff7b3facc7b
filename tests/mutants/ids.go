package main

// idMutants break the rules of business numbers, of IDs that are read or hidden, and of IDs of requests.
var idMutants = []mutant{
	{rule: "numbers-never-repeat", name: "a template need not say the day on which it begins anew", file: "allocsvr/numbers/numbers.go", in: []string{"allocsvr/numbers"}, edits: []edit{
		{"t.reset == Daily && !has(\"02\", \"002\")", "t.reset == Daily && !has(\"01\", \"002\")"}}},
	{rule: "numbers-never-repeat", name: "a template in use changes its text", file: "allocsvr/numbers/numbers.go", in: []string{"allocsvr/numbers"}, edits: []edit{
		{"a.literal == b.literal && ", ""}}},
	{rule: "numbers-never-repeat", name: "a template in use begins anew at other times", file: "allocsvr/numbers/numbers.go", in: []string{"allocsvr/numbers"}, edits: []edit{
		{"same := now.reset == was.reset && ", "same := "}}},
	{rule: "numbers-never-repeat", name: "a count gets fewer digits", file: "allocsvr/numbers/numbers.go", in: []string{"allocsvr/numbers"}, edits: []edit{
		{" && a.digits >= b.digits", ""}}},
	{rule: "numbers-never-repeat", name: "the catalogue takes any change of a template", file: "allocsvr/segment/catalog.go", in: []string{"allocsvr/segment"}, edits: []edit{
		{"if err := format.Follows(old.Format); err != nil {", "if err := format.Follows(old.Format); false {"}}},
	{rule: "numbers-never-repeat", name: "all periods count in one register", file: "allocsvr/segment/service.go", in: []string{"allocsvr/segment"}, edits: []edit{
		{"	return p.tag + \"/\" + p.period\n", "	return p.tag + \"/\"\n"}}},
	{rule: "numbers-never-repeat", name: "the zone of the machine decides", file: "allocsvr/numbers/numbers.go", in: []string{"allocsvr/numbers"}, edits: []edit{
		{"func (t *Template) Period(at time.Time) string {\n	at = at.In(t.zone)\n", "func (t *Template) Period(at time.Time) string {\n"}}},
	{rule: "numbers-have-their-digits", name: "a count goes on beyond its digits", file: "allocsvr/segment/catalog.go", in: []string{"allocsvr/segment"}, edits: []edit{
		{"		return form.Last()\n", "		return form.Last() * 10\n"}}},
	{rule: "numbers-are-shown-not-taken", name: "a period that is not held is shown from its begin", file: "allocsvr/segment/numbers.go", in: []string{"allocsvr/segment"}, edits: []edit{
		{"	return max(found.Max, entry.above(found.Floor)), nil\n", "	return entry.above(found.Floor), nil\n"}}},
	{rule: "periods-end", name: "periods that are over stay owned", file: "allocsvr/segment/service.go", in: []string{"allocsvr/segment"}, edits: []edit{
		{"c.retired() || s.over(c)", "c.retired()"}}},
	{rule: "periods-end", name: "periods that are over stay in memory", file: "allocsvr/segment/service.go", in: []string{"allocsvr/segment"}, edits: []edit{
		{"		s.forget()\n", ""}}},
	{rule: "regions-are-apart", name: "any bits of a datacenter keep layouts apart", file: "snowflake/apart.go", in: []string{"snowflake"}, edits: []edit{
		{"other.max(k) << other.shift[k])", "other.max(k) << l.shift[k])"}}},
	{rule: "regions-are-apart", name: "only namespaces of one name are compared", file: "allocsvr/globalid/regions/regions.go", in: []string{"allocsvr/globalid/regions"}, edits: []edit{
		{"(mine.Alias == 0 || mine.Alias != theirs.Alias)", "mine.Alias != ^uint32(0)"}}},
	{rule: "regions-are-apart", name: "layouts without datacenters meet nowhere", file: "allocsvr/globalid/regions/regions.go", in: []string{"allocsvr/globalid/regions"}, edits: []edit{
		{"		if mine.Recorded && theirs.Recorded {", "		if false {"}}},
	{rule: "regions-are-apart", name: "one name for an id in two regions is no conflict", file: "allocsvr/globalid/regions/regions.go", in: []string{"allocsvr/globalid/regions"}, edits: []edit{
		{"			if !mine.Layout.Apart(a.ID, theirs.Layout, b.ID) {", "			if a.Name != b.Name && !mine.Layout.Apart(a.ID, theirs.Layout, b.ID) {"}}},
	{rule: "first-use-of-a-datacenter", name: "a node starts whatever other regions have", file: "allocsvr/globalid/service.go", in: []string{"allocsvr/globalid"}, edits: []edit{
		{"	if err := s.abroad.begin(ctx); err != nil {", "	if err := s.abroad.begin(ctx); err != nil && false {"}}},
	{rule: "first-use-of-a-datacenter", name: "a datacenter is used first as it was at the start", file: "allocsvr/globalid/namespaces/first.go", in: []string{"allocsvr/globalid"}, edits: []edit{
		{"	if c.cfg.First == nil ||", "	if c.cfg.First != nil ||"}}},
	{rule: "first-use-of-a-datacenter", name: "another Set uses a datacenter of another region first", file: "allocsvr/globalid/namespaces/catalog.go", in: []string{"allocsvr/globalid"}, edits: []edit{
		{"c.clear(ctx, node.Datacenter)", "c.clear(ctx, c.cfg.Node.Datacenter)"}}},
	{rule: "regions-stop-nothing", name: "a region stops IDs that were made before", file: "allocsvr/globalid/regions.go", in: []string{"allocsvr/globalid"}, edits: []edit{
		{"	if err != nil || v.Bound(dc.ID) {", "	if err != nil {"}}},
	{rule: "regions-stop-nothing", name: "what lies behind keeps a node from another id", file: "allocsvr/globalid/regions.go", in: []string{"allocsvr/globalid"}, edits: []edit{
		{"c.HasDatacenter && c.Datacenter.ID == dc.ID ||", "c.HasDatacenter ||"}}},
	{rule: "regions-stop-nothing", name: "a region that is away is forgotten", file: "allocsvr/globalid/regions.go", in: []string{"allocsvr/globalid"}, edits: []edit{
		{"	a.silent[addr] = err != nil\n", "	a.silent[addr] = err != nil\n	delete(a.heard, addr)\n"}}},
	{rule: "made-ids-are-signed", name: "IDs of 64 bits are made", file: "snowflake/layout.go", in: []string{"snowflake"}, edits: []edit{
		{"	if l.ReadOnly() {\n		return 0,", "	if false {\n		return 0,"}}},
	{rule: "made-ids-are-signed", name: "a namespace gets a layout of 64 bits", file: "snowflake/grammar.go", in: []string{"snowflake", "allocsvr/globalid"}, edits: []edit{
		{"return parseUpTo(text, maxBits) }", "return parseUpTo(text, maxBitsReadable) }"}}},
	{rule: "hidden-ids-come-back", name: "the network is left outside of the layout", file: "snowflake/veil/veil.go", in: []string{"snowflake/veil"}, edits: []edit{
		{"x = step(x); x>>v.bits == 0", "x = step(x); true"}}},
	{rule: "hidden-ids-come-back", name: "the rounds go back in the order in which they went", file: "snowflake/veil/veil.go", in: []string{"snowflake/veil"}, edits: []edit{
		{"v.round(rounds-1-i, left)", "v.round(i, left)"}}},
	{rule: "hidden-ids-tell-nothing", name: "two rounds", file: "snowflake/veil/veil.go", in: []string{"snowflake/veil"}, edits: []edit{
		{"const rounds = 10\n", "const rounds = 2\n"}}},
	{rule: "request-ids-are-sound", name: "what came is believed", file: "client/requestid/requestid.go", in: []string{"client/requestid"}, edits: []edit{
		{"len(came) == 1 && Valid(came[0])", "len(came) == 1"}}},
	{rule: "request-ids-are-sound", name: "strangers choose at an edge", file: "client/requestid/requestid.go", in: []string{"client/requestid"}, edits: []edit{
		{"!s.cfg.Fresh && len(came)", "len(came)"}}},
	{rule: "request-ids-are-sound", name: "an ID is as long as it comes", file: "client/requestid/requestid.go", in: []string{"client/requestid"}, edits: []edit{
		{"id == \"\" || len(id) > MaxLength", "id == \"\""}}},
	{rule: "request-ids-are-sound", name: "a stream has no ID", file: "client/requestid/grpc.go", in: []string{"client/requestid"}, edits: []edit{
		{"next(srv, stamped{stream, ctx})", "next(srv, stamped{stream, context.WithoutCancel(stream.Context())})"},
		{"	ctx, id := s.arrived(stream.Context(), metadata", "	_, id := s.arrived(stream.Context(), metadata"}}},
}
