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
}
