package main

// setCallerMutants break the rules of callers of several Sets.
var setCallerMutants = []mutant{
	{rule: "call-to-the-set", name: "the root's table decides for all sections", file: "internal/sdk/route/view.go", in: []string{"internal/sdk/route", "client"}, edits: []edit{
		{"		i := v.Sets.Index(seq.SectionID(id))\n		if", "		i := 0\n		if"}}},
	{rule: "call-to-the-set", name: "a Set that a NOT_OWNER names without an address is not asked", file: "internal/sdk/call/retry.go", in: []string{"client"}, edits: []edit{
		{"		t.in, t.next, t.late = of, 0, nil\n	}\n}", "		t.next = 1 << 16\n	}\n}"}}},
	{rule: "call-to-the-set", name: "the root's nodes alone are asked for IDs", file: "internal/sdk/call/rules.go", in: []string{"client"}, edits: []edit{
		{"		if k.rules.root {\n			nodes = ", "		if true {\n			nodes = "}}},
	{rule: "call-to-the-set", name: "a tag is asked for where its section is", file: "internal/sdk/call/rules.go", in: []string{"client"}, edits: []edit{
		{"	case k.rules.root:\n		return v.Root().Candidates(id)\n", ""}}},
	{rule: "cluster-of-the-set", name: "calls to all Sets are for the root's cluster", file: "internal/sdk/call/server.go", in: []string{"client"}, edits: []edit{
		{"rpc.SayTarget(to.Target)", "rpc.SayTarget(func() *rpc.Target { return c.table.Seeds()[0].Target() })"}}},
	{rule: "cluster-of-the-set", name: "the address of a Set that the map does not name is asked", file: "internal/sdk/call/retry.go", in: []string{"client"}, edits: []edit{
		{"of == nil || k.rules.root {\n			return", "k.rules.root {\n			return"}}},
	{rule: "cluster-of-the-set", name: "a cluster is taken for a Set by its own word", file: "internal/sdk/route/table.go", in: []string{"client"}, edits: []edit{
		{"listed(a.sets, cluster) && listed(a.sets, want)", "listed(a.sets, cluster)"}}},
	{rule: "table-of-the-set", name: "a newer table in a reply is the root's", file: "internal/sdk/route/table.go", in: []string{"client"}, edits: []edit{
		{"	of := s.Set()\n	if of == nil || version", "	of := s.t.First()\n	if of == nil || version"}}},
	{rule: "table-of-the-set", name: "requests have the version of the root's table", file: "internal/sdk/route/set.go", in: []string{"client"}, edits: []edit{
		{"	if of := s.Set(); of != nil {\n		return of.version.Load()", "	if of := s.t.First(); of != nil {\n		return of.version.Load()"}}},
	{rule: "named-sets-are-asked-with-pauses", name: "NOT_OWNER of other Sets are followed without end", file: "internal/sdk/call/retry.go", in: []string{"client"}, edits: []edit{
		{"	if t.hops >= maxHops {\n		return\n	}\n", "	if t.hops >= maxHops && moved.Set == \"\" {\n		return\n	}\n"}}},
	{rule: "outage-of-one-set", name: "a Set that cannot be reached is waited for to the deadline", file: "internal/sdk/call/outage.go", in: []string{"client"}, edits: []edit{
		{"found == errSilent && c.table.Alone()", "found == errSilent"}}},
	{rule: "outage-of-one-set", name: "one Set without a quorum ends the calls for all", file: "internal/sdk/call/retry.go", in: []string{"client"}, edits: []edit{
		{"	switch {\n	case t.quorum == nil:\n		return careOf(in).unreachable()\n",
			"	for _, p := range v.Parts {\n		if err := p.Of.Care.Reason(); err != nil {\n			return err\n		}\n	}\n	switch {\n	case t.quorum == nil:\n		return careOf(in).unreachable()\n"}}},
	{rule: "outage-of-one-set", name: "a router is ready only with the tables of dead Sets, too", file: "router/ready.go", in: []string{"router"}, edits: []edit{
		{"s.Routes == nil && s.Away == nil", "s.Routes == nil"}}},
	{rule: "dead-servers-are-asked-apart", name: "each round sends a probe", file: "internal/sdk/call/health.go", in: []string{"client"}, edits: []edit{
		{"since < probeEvery {", "since < 0 {"}}},
	{rule: "routers-are-no-storm", name: "each caller of a dead Set falls back on a router", file: "internal/sdk/call/rules.go", in: []string{"client"}, edits: []edit{
		{"	if in.Version() == 0 && s.Set() == in ||", "	if true ||"}}},
	{rule: "routers-are-a-way", name: "a router is not asked for another Set than the root", file: "internal/sdk/call/rules.go", in: []string{"client"}, edits: []edit{
		{" || k.space != nil && v.Router(s))", ")"}}},
	{rule: "routers-are-a-way", name: "the router that had the last answer is one among the addresses", file: "internal/sdk/call/rules.go", in: []string{"client"}, edits: []edit{
		{"relay != nil && k.rules.where == atOwner {", "relay != nil && false {"}}},
	{rule: "map-from-any-set", name: "the root alone is asked for its map", file: "internal/sdk/route/set.go", in: []string{"client"}, edits: []edit{
		{"	if s != s.t.First() {\n		return out\n	}\n", "	if true {\n		return out\n	}\n"}}},
	{rule: "ids-go-by-silent-servers", name: "calls for IDs see whether a server that hangs is back", file: "internal/sdk/call/attempt.go", in: []string{"internal/sdk/call"}, edits: []edit{
		{"	if k.rules.ids && h.mute() {", "	if false {"}}},
	{rule: "ids-go-by-silent-servers", name: "a server that was silent to calls for IDs is asked for none again", file: "internal/sdk/call/server.go", in: []string{"client"}, edits: []edit{
		{"				s.seek(now)\n", ""}}},
	{rule: "keys-of-sets-apart", name: "keys of a Set wait for the attempts of another", file: "internal/sdk/call/owners.go", in: []string{"client"}, edits: []edit{
		{"	if i == len(k.places) {\n		return nil\n	}\n	all :=", "	if true {\n		return nil\n	}\n	all :="}}},
	{rule: "answers-before-tables", name: "answers wait for the table that comes with them", file: "internal/sdk/stream/stream.go", in: []string{"internal/sdk/stream"}, edits: []edit{
		{"			if told = slices", "			if told = true || slices"}}},
	{rule: "answers-before-tables", name: "a refusal is given out before the table that comes with it", file: "internal/sdk/stream/stream.go", in: []string{"internal/sdk/stream"}, edits: []edit{
		{"			if told = slices", "			if told = false && slices"}}},
	{rule: "map-only-rises", name: "an older map takes the place of a newer one", file: "internal/sdk/route/table.go", in: []string{"internal/sdk/route"}, edits: []edit{
		{"	if m.Version <= t.sets.Version {\n", "	if m.Version == 0 {\n"}}},
	{
		rule: "sets-apart-in-messages", name: "keys of a Set wait for those of another in a message to a router",
		file: "router/pieces.go", in: []string{"router"},
		edits: []edit{{old: "lane[0].set == p.set })", new: "true })"}},
	},
	{
		rule: "sets-apart-in-messages", name: "answers of a part stand at other keys",
		file: "router/pieces.go", in: []string{"router"},
		edits: []edit{{old: "	return p.idx[k]\n", new: "	return k\n"}},
	},
	{
		rule: "sets-apart-in-messages", name: "batches of a Set wait for a runner that another's have",
		file: "router/pieces.go", in: []string{"router"},
		edits: []edit{{old: "		go func() {\n			inTurns(", new: "		func() {\n			inTurns("}},
	},
	{
		rule: "sets-apart-in-messages", name: "a router asks a dead Set until its caller has gone, and what others answered is lost",
		file: "router/pieces.go", in: []string{"router"},
		edits: []edit{{old: "time.Until(end)*4/5", new: "time.Until(end)*5/5"}},
	},
	{
		rule: "one-set-has-half", name: "calls for one Set take all that may be in work",
		file: "internal/wire/gate/admissionsets.go", in: []string{"internal/wire/gate", "router"},
		edits: []edit{{old: "a.bound.limit/2, in.inWork", new: "a.bound.limit, in.inWork"}},
	},
	{
		rule: "one-set-has-half", name: "what a caller has in work for one Set counts against its calls for others",
		file: "internal/wire/gate/admissionsets.go", in: []string{"internal/wire/gate"},
		edits: []edit{{old: "in.by[p.of], int64(len(in.by))", new: "p.of.inWork, int64(len(in.by))"}},
	},
	{
		rule: "one-set-has-half", name: "a call counts at a Set that has answered it",
		file: "internal/wire/gate/admissionsets.go", in: []string{"internal/wire/gate"},
		edits: []edit{{old: "		if p.sets[i].set == set {\n			p.in.leaveSet", new: "		if p.sets[i].set < 0 {\n			p.in.leaveSet"}},
	},
	{
		rule: "one-set-has-half", name: "keys that were answered count at their Set while others of the call wait",
		file: "router/pieces.go", in: []string{"router"},
		edits: []edit{{old: "			r.place.Answered(set)\n", new: ""}},
	},
	{
		rule: "one-set-has-half", name: "a key of a Set that is full is asked for",
		file: "router/pieces.go", in: []string{"router"},
		edits: []edit{{old: "ask(p, r.place.Refused(set))", new: "ask(p, nil)"}},
	},
	{
		rule: "one-set-has-half", name: "tags count at no Set",
		file: "router/admission.go", in: []string{"router"},
		edits: []edit{{old: "	return d.inWork.Enter(ctx, 0, 0)\n", new: "	return d.any(ctx)\n"}},
	},
	{
		rule: "one-set-has-half", name: "calls for a Set that hangs fill the connection of their caller",
		file: "router/limits.go", in: []string{"router"},
		edits: []edit{{old: "uint32(inWork/2/gate.CallCost + 256)", new: "256"}},
	},
	{
		rule: "one-set-has-half", name: "messages for a Set that hangs fill the stream of their caller",
		file: "router/stream.go", in: []string{"router"},
		edits: []edit{{old: "time.AfterFunc(placeTime, giveBack)", new: "time.AfterFunc(time.Hour, giveBack)"}},
	},
	{
		rule: "map-outlives-nodes", name: "what a Set heard of the map ends with its nodes",
		file: "allocsvr/documents/sets.go", in: []string{"allocsvr/documents"},
		edits: []edit{{old: "	if heard.Version <= d.own.Known().Version {\n", new: "	if d != nil {\n"}},
	},
	{
		rule: "map-outlives-nodes", name: "a node that is behind writes an older map over a newer one",
		file: "allocsvr/documents/sets.go", in: []string{"allocsvr/documents"},
		edits: []edit{{old: "		if now.Version >= heard.Version {\n", new: "		if now.Version == heard.Version {\n"}},
	},
	{
		rule: "map-outlives-nodes", name: "a node begins without what its Set has heard",
		file: "allocsvr/documents/sets.go", in: []string{"allocsvr/documents"},
		edits: []edit{{old: "sets.Map.Encode}, cfg.First.Map)", new: "sets.Map.Encode}, sets.Map{})"}},
	},
	{
		rule: "map-outlives-nodes", name: "what a restored Set has heard is newer than the root's map",
		file: "sets/map.go", in: []string{"sets"},
		edits: []edit{{old: "len(m.Sets) == 0 && !m.Restored || m.Heard {", new: "len(m.Sets) == 0 && !m.Restored {"}},
	},
	{
		rule: "sets-drill-judges", name: "errors at other Sets than the dead one are let pass",
		file: "internal/lab/felt.go", in: []string{"internal/lab"},
		edits: []edit{{old: "		case !row.Dead && row.Errors > 0:\n", new: "		case false:\n"}},
	},
	{
		rule: "sets-drill-judges", name: "an error without the Set's name counts as named",
		file: "internal/lab/felt.go", in: []string{"internal/lab"},
		edits: []edit{{old: "!strings.Contains(c.Err, seq.ErrNoQuorum.Error()) ||", new: "strings.Contains(c.Err, seq.ErrNoQuorum.Error()) &&"}},
	},
}
