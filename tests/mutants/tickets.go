package main

// ticketMutants break what readers that go by marks rely on.
var ticketMutants = []mutant{
	{rule: "mark-hold", name: "an owner without the tickets of the one before answers marks at once", file: "allocsvr/section/tickets/book.go", in: []string{"allocsvr/section/tickets"}, edits: []edit{
		{"	if now < b.hold {\n", "	if false {\n"}}},
	{rule: "mark-span", name: "an owner ends a ticket when the writer's clock may still allow a commit", file: "allocsvr/section/tickets/book.go", in: []string{"allocsvr/section/tickets"}, edits: []edit{
		{"return life + life/40 + guard }", "return life }"}}},
	{rule: "mark-carry", name: "a hand-over loses tickets", file: "allocsvr/section/tickets/codec.go", in: []string{"allocsvr/section/tickets"}, edits: []edit{
		{"below = t.last; !r.bad {", "below = t.last; false {"}}},
	{rule: "mark-carry", name: "a hand-over loses fences", file: "allocsvr/section/tickets/codec.go", in: []string{"allocsvr/section/tickets"}, edits: []edit{
		{"		b.raise(r.number(), r.number())\n", "		r.number()\n		r.number()\n"}}},
	{rule: "mark-carry", name: "a hand-over loses the fence of all", file: "allocsvr/section/tickets/codec.go", in: []string{"allocsvr/section/tickets"}, edits: []edit{
		{"	b.fence = r.number()\n", "	r.number()\n"}}},
	{rule: "mark-carry", name: "a hand-over loses the hold", file: "allocsvr/section/tickets/codec.go", in: []string{"allocsvr/section/tickets"}, edits: []edit{
		{"	b.hold = r.time(now)\n", "	r.time(now)\n"}}},
	{rule: "mark-ticket", name: "another's Done ends a ticket", file: "allocsvr/section/tickets/book.go", in: []string{"allocsvr/section/tickets"}, edits: []edit{
		{" || k.open[i].id != id || id == 0 {", " {"}}},
	{rule: "mark-fence", name: "the fence is not told", file: "allocsvr/section/tickets/book.go", in: []string{"allocsvr/section/tickets"}, edits: []edit{
		{"min(mark, max(b.fence, b.fences[uid])), 0", "min(mark, b.fence), 0"}}},
	{rule: "mark-fence", name: "the fence is told once", file: "allocsvr/section/tickets/book.go", in: []string{"allocsvr/section/tickets"}, edits: []edit{
		{"	mark = last\n", "	mark = last\n	defer delete(b.fences, uid)\n"}}},
	{rule: "mark-fence", name: "an owner that lacks tickets begins without a fence", file: "allocsvr/section/tickets/book.go", in: []string{"allocsvr/section/tickets"}, edits: []edit{
		{"b.fence, b.lost = max(b.fence, high), false", "b.lost = false"}}},
	{rule: "mark-fence", name: "fences that are too many are forgotten", file: "allocsvr/section/tickets/book.go", in: []string{"allocsvr/section/tickets"}, edits: []edit{
		{"		b.fence = max(b.fence, fence)\n", "		_ = fence\n"}}},
	{rule: "mark-below-open", name: "a mark is above an open number of its batch", file: "allocsvr/section/tickets/book.go", in: []string{"allocsvr/section/tickets"}, edits: []edit{
		{"mark = k.open[0].first - 1", "mark = k.open[0].first"}}},
	{rule: "mark-live", name: "time does not end a ticket", file: "allocsvr/section/tickets/book.go", in: []string{"allocsvr/section/tickets"}, edits: []edit{
		{"		case t.end <= now:\n", "		case false:\n"}}},
	{rule: "tickets-bounded", name: "a key may have any number of tickets", file: "allocsvr/section/tickets/book.go", in: []string{"allocsvr/section/tickets"}, edits: []edit{
		{">= MostOfKey:", ">= 2*MostOfKey:"}}},
	{rule: "tickets-bounded", name: "a node may have any number of tickets", file: "allocsvr/section/tickets/book.go", in: []string{"allocsvr/section/tickets"}, edits: []edit{
		{">= MostOpen:", ">= 2*MostOpen:"}}},
	{rule: "mark-sealed", name: "a sealed owner answers marks", file: "allocsvr/section/open.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"	faults := t.read(ctx, space, keys, func(i int, c *Section) {\n		last, _", "	faults := func(one func(i int, c *Section)) (none []Fault) {\n		for i, place := range keys.Places {\n			one(i, t.Section(space.SectionOf(place)))\n		}\n		return none\n	}(func(i int, c *Section) {\n		last, _"}}},
	{rule: "mark-hold", name: "the hold begins when the section is served, not at the promise", file: "allocsvr/section/open.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"		book = tickets.New(&t.tickets, now, c.space.Tickets)\n	}\n	c.mu", "		return\n	}\n	c.mu"}}},
	{rule: "mark-hold", name: "a section that no promise was told of answers marks at once", file: "allocsvr/section/open.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"tickets.New(&t.tickets, t.clock.Now(), c.space.Tickets)", "tickets.New(&t.tickets, -tickets.Span(c.space.Tickets), c.space.Tickets)"}}},
	{rule: "mark-carry", name: "a section is handed over without its tickets", file: "allocsvr/owner/give.go", in: []string{"allocsvr"}, edits: []edit{
		{"Mark: g.mark(id), Tickets: g.sections.Tickets(id)}, ok", "Mark: g.mark(id)}, ok"}}},
	{rule: "mark-carry", name: "a successor does not use the tickets", file: "allocsvr/owner/acquire.go", in: []string{"allocsvr"}, edits: []edit{
		{"	t.o.sections.Promised(t.c.ID(), t.from.Tickets)\n", "	t.o.sections.Promised(t.c.ID(), nil)\n"}}},
	{rule: "mark-carry", name: "tickets that were changed on the way are used", file: "allocsvr/handover/sealed.go", in: []string{"allocsvr/handover"}, edits: []edit{
		{"		sum.Write(s.Tickets)\n", ""}}},
	{rule: "tickets-refused", name: "an Open that fails leaves its ticket open", file: "allocsvr/section/open.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"id != 0 && !k.exact", "false"}}},
	{rule: "tickets-bounded", name: "numbers are taken for a ticket that is refused", file: "allocsvr/section/take.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"	if t.opening != nil {\n		if err := c.book.Admit(", "	if t.opening != nil && false {\n		if err := c.book.Admit("}}},
	{rule: "tickets-life", name: "a ticket may live longer than its space says", file: "seq/check.go", in: []string{"seq"}, edits: []edit{
		{"	case ms > most:\n", "	case false:\n"}}},
	{rule: "tickets-spaces", name: "a unique-only space, whose numbers come out below marks, has tickets", file: "seq/mapping.go", in: []string{"seq"}, edits: []edit{
		{"s.Tickets != 0 && s.Mode == UniqueOnly:\n", "false:\n"}}},
	{rule: "mark-again", name: "a repeated request has a ticket below the mark", file: "allocsvr/section/tickets/book.go", in: []string{"allocsvr/section/tickets"}, edits: []edit{
		{"k == nil || first < k.open[0].first", "k == nil"}}},
	{rule: "mark-again", name: "a repeated request whose numbers are closed has a ticket", file: "allocsvr/section/tickets/book.go", in: []string{"allocsvr/section/tickets"}, edits: []edit{
		{"if k == nil || first < k.open[0].first {\n		return 0\n", "if k == nil || first < k.open[0].first {\n		b.Open(uid, first, last, id, now, life)\n		return id\n"}}},
	{rule: "mark-again", name: "the ticket of a repeated request ends as the first was to", file: "allocsvr/section/tickets/book.go", in: []string{"allocsvr/section/tickets"}, edits: []edit{
		{"max(k.open[i].end, t.end)", "k.open[i].end"}}},
	{rule: "mark-again", name: "a repeated request whose numbers are closed gets them as if they were open", file: "allocsvr/section/open.go", in: []string{"allocsvr"}, edits: []edit{
		{"t.opening == nil || t.opening.ids[i] != 0", "true"}}},
	{rule: "mark-again", name: "an Open without an answer ends the ticket of its numbers in an exact space", file: "allocsvr/section/open.go", in: []string{"allocsvr"}, edits: []edit{
		{"id != 0 && !k.exact", "id != 0"}}},
	{rule: "tickets-fronts", name: "a reader may not read marks over RESP", file: "router/line/authorize.go", in: []string{"tests/secure"}, edits: []edit{
		{"o.Kind == Read || o.Kind == Mark", "o.Kind == Read"}}},
	{rule: "grants", name: "a raise over RESP goes further than its caller's grant", file: "router/line/pipeline.go", in: []string{"tests/secure"}, edits: []edit{
		{"	if o.Once.MaxJump > 0 {\n", "	if false {\n"}}},
	{rule: "batch-fronts", name: "a raise of a pipeline comes after the takes behind it", file: "router/line/pipeline.go", in: []string{"router/line/resp"}, edits: []edit{
		{"	case TakeTag, TakeID:\n", "	case TakeTag, TakeID, Raise:\n"}, {"		plan.takes(ops[i:end])\n", "		plan.takes(ops[i:end])\n			plan.byKey(ops[i:end], Raise)\n"}}},
	{rule: "tickets-fronts", name: "SEQ.CANCEL ends the ticket of another number", file: "router/line/resp/tickets.go", in: []string{"router/line/resp"}, edits: []edit{
		{"client.Ticket{First: seq.Seq(first), ID: id}", "client.Ticket{First: seq.Seq(id), ID: id}"}}},
	{rule: "tickets-together", name: "answers to calls of one message are mixed up", file: "internal/sdk/stream/tickets.go", in: []string{"internal/sdk/stream", "client"}, edits: []edit{
		{"	t.index = len(to.Uids) + len(to.Keys)\n", "	t.index = 0\n"}}},
	{rule: "tickets-together", name: "a Done after a Cancel of its message counts as one", file: "internal/sdk/stream/tickets.go", in: []string{"internal/sdk/stream"}, edits: []edit{
		{"	if t.Cancelled || len(to.Cancelled) > 0 {\n", "	if t.Cancelled {\n"}}},
	{rule: "tickets-together", name: "an AllocSvr of before gets no tickets", file: "internal/sdk/stream/tickets.go", in: []string{"client"}, edits: []edit{
		{"		b.fail(ErrUnary)\n", "		b.fail(rpc.FromKeyError(k))\n"}}},
	{rule: "tickets-together", name: "an AllocSvr of before is asked by the stream each time", file: "internal/sdk/stream/tickets.go", in: []string{"client"}, edits: []edit{
		{"	if p.unary.Load() {\n", "	if false {\n"}}},
	{rule: "tickets-together", name: "an AllocSvr of now gets unary calls as the one before it did", file: "internal/sdk/stream/stream.go", in: []string{"client"}, edits: []edit{
		{"	s.pair.unary.Store(false)", "	_ = 0"}}},
	{rule: "tickets-together", name: "a section that is away holds up the tickets of others", file: "allocsvr/section/open.go", in: []string{"allocsvr/api"}, edits: []edit{
		{"away := c.state == Acquiring || c.state == Sealed", "away := false"}}},
	{rule: "tickets-together", name: "an Open that waited goes by the clock of before", file: "allocsvr/section/take.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"		t.read = 0\n", ""}}},
	{rule: "tickets-together", name: "tickets by a stream need no grant", file: "internal/wire/auth/methods.go", in: []string{"internal/wire/auth"}, edits: []edit{
		{"		return ofTickets(call.Tickets)\n", "		return nil\n"}}},
	{rule: "tickets-together", name: "Done by a stream needs no grant", file: "internal/wire/auth/methods.go", in: []string{"internal/wire/auth"}, edits: []edit{
		{"		out = append(out, Demand{Kind: Space, Name: SpaceName(b.GetKeys().GetSpace()), Verb: Take})\n", "		_ = b\n"}}},
	{rule: "mark-real", name: "a ticket stays of numbers that another request gets", file: "allocsvr/section/tickets/book.go", in: []string{"allocsvr/section/tickets"}, edits: []edit{
		{"k.open[i].last > last(uid)", "false"}}},
	{rule: "mark-fence", name: "an owner of an exact section that lacks tickets begins without a fence", file: "allocsvr/section/open.go", in: []string{"allocsvr"}, edits: []edit{
		{"c.book.Begin(o.Highest(), ", "c.book.Begin(0, "}}},
	{rule: "mark-carry", name: "a successor does not use the tickets of an exact section", file: "allocsvr/owner/acquire.go", in: []string{"allocsvr"}, edits: []edit{
		{", Tickets: s.Tickets}", "}"}}},
	{rule: "tickets-shown", name: "the age of a ticket that ended is told", file: "allocsvr/section/tickets/book.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"if k := b.at(uid, now); k != nil {\n			c.Open", "if k := b.keys[uid]; k != nil {\n			c.Open"}}},
	{rule: "tickets-shown", name: "tickets that expired long ago are told as of now", file: "allocsvr/section/reading.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"one.Expired = now.spaces[i] - then.spaces[i]", "one.Expired = now.spaces[i]"}}},
	{rule: "tickets-shown", name: "the status is silent while tickets run short", file: "internal/ops/survey/troubles.go", in: []string{"cmd/seqctl/ctl"}, edits: []edit{
		{"short := ticketTrouble(node.Name, reply); short {", "short := ticketTrouble(node.Name, reply); short && false {"}}},
	{rule: "tickets-shown", name: "the status warns of a few tickets that expire", file: "internal/ops/survey/reading.go", in: []string{"internal/ops/survey"}, edits: []edit{
		{"n >= manyExpired && ", ""}}},
	{rule: "tickets-shown", name: "tickets that ended count as open on the page of a UID", file: "allocsvr/section/tickets/book.go", in: []string{"allocsvr/section/tickets"}, edits: []edit{
		{"return len(k.open) - k.ended, k", "return len(k.open), k"}}},
	{rule: "tickets-shown", name: "the page of a UID counts one watch", file: "internal/base/watch/watch.go", in: []string{"internal/base/watch"}, edits: []edit{
		{"		n++\n", "		n = 1\n"}}},
}
