package main

// quorumMutants break the rules of a session that counts answers and leases.
var quorumMutants = []mutant{
	{line: 4, rule: "distinct-stores", name: "two acks of one store counted as two", file: "quorum/group.go", in: []string{"quorum"}, edits: []edit{
		{"		if uuid == a.uuid {\n", "		if false && uuid == a.uuid {\n"}}},
	{line: 4, rule: "distinct-stores", name: "a store that answers as another is believed", file: "quorum/config.go", in: []string{"quorum"}, edits: []edit{
		{"	case want != \"\" && want != uuid:\n", "	case false:\n"},
		{"		if j != i && stores[j].UUID == uuid {\n", "		if false {\n"}}},
	{line: 5, rule: "read-quorum", name: "R=1 passes the validation of a session", file: "quorum/config.go", in: []string{"quorum"}, edits: []edit{
		{"	case c.R+c.W <= c.N:\n", "	case c.R+c.W < c.N:\n"}}},
	{line: 5, rule: "read-quorum", name: "R=1: one store is enough to read", file: "quorum/calls.go", in: []string{"quorum"}, edits: []edit{
		{"	if len(answers) < v.cfg.R {\n", "	if len(answers) < 1 {\n"}}},
	{line: 6, rule: "write-quorum", name: "W=1: one ack confirms", file: "quorum/batch.go", in: []string{"quorum"}, edits: []edit{
		{"	case count[yes] >= b.w:\n", "	case count[yes] >= 1:\n"}}},
	{line: 9, rule: "missing-is-not-zero", name: "missing register read as zero by a session", file: "quorum/batch.go", in: []string{"quorum"}, edits: []edit{
		{"		if b.absentIsFree && b.register(i).OnDemand() {\n", "		if b.absentIsFree {\n"}}},
	{line: 12, rule: "base-of-all-promises", name: "base from the first responder", file: "quorum/batch.go", in: []string{"quorum"}, edits: []edit{
		{"	o.Max, o.Floor = max(o.Max, r.Max), max(o.Floor, r.Floor)\n", "	if o.Floor = max(o.Floor, r.Floor); o.Acks == 0 {\n		o.Max = r.Max\n	}\n"}}},
	{line: 13, rule: "nack-decides", name: "a NACK outvoted by acks", file: "quorum/batch.go", in: []string{"quorum"}, edits: []edit{
		{"	case nack && b.nackDecides:\n", "	case nack && false:\n"}}},
	{line: 15, rule: "lease-from-sending", name: "lease counted from the ack", file: "quorum/lease.go", in: []string{"quorum"}, edits: []edit{
		{"	sent.at = l.cfg.Clock.Now() // before sending: mutation 15\n	reply, err := s.store.Store.Renew(ctx, req)\n",
			"	reply, err := s.store.Store.Renew(ctx, req)\n	sent.at = l.cfg.Clock.Now()\n"}}},
	{line: 16, rule: "lease-of-w-stores", name: "lease of W-1 stores", file: "quorum/hold.go", in: []string{"quorum"}, edits: []edit{
		{"	n, w := len(c.stores), c.w\n", "	n, w := len(c.stores), max(1, c.w-1)\n"}}},
	{line: 20, rule: "lease-bound-to-epoch", name: "allocator-wide renew without the epoch check, at its session",
		file: "quorum/hold.go", in: []string{"quorum"}, edits: []edit{
			{"	mask := h.attached.Load() & c.mask\n", "	mask := c.mask\n"}}},
	{line: 21, rule: "lost-stays-lost", name: "renew brings a lost section back", file: "quorum/renew.go", in: []string{"quorum"}, edits: []edit{
		{"		if _, waiting := s.pending[h]; !waiting || h.over.Load() {\n			continue\n		}\n", ""}}},
	{line: 21, rule: "lost-stays-lost", name: "a lost epoch is attached again", file: "quorum/hold.go", in: []string{"quorum"}, edits: []edit{
		{"ok && round <= ended ||", "ok && round < ended ||"}}},
	{line: 26, rule: "old-disk-is-silent", name: "rolled-back disk votes: nobody tells a store what it had",
		file: "quorum/renew.go", in: []string{"quorum"}, edits: []edit{
			{"Nonce: s.ask.nonce, Seen: s.claims(), Fellows", "Nonce: s.ask.nonce, Fellows"}}},
	{rule: "looks-go-on", name: "a look that one store refused is not taken to the others", file: "quorum/group.go", in: []string{"quorum"}, edits: []edit{
		{"(!come || a.err != nil || got > v.cfg.W)", "(!come || a.err != nil)"}}},
	{rule: "looks-go-on", name: "a look waits for a store that is late", file: "quorum/group.go", in: []string{"quorum"}, edits: []edit{
		{"		due = timer.C\n", "		due = make(chan time.Time)\n"}}},
	{rule: "looks-go-on", name: "a look asks the store again that was late", file: "quorum/group.go", in: []string{"quorum"}, edits: []edit{
		{"			v.nearest.later(func(i int) bool { return asked.sent[i] && asked.silent[i] })\n", ""}}},
	{rule: "looks-go-on", name: "a look asks the store again that failed", file: "quorum/group.go", in: []string{"quorum"}, edits: []edit{
		{"				v.nearest.later(func(i int) bool { return i == a.store })\n", ""}}},
	{rule: "looks-ask-w", name: "a look asks all stores", file: "quorum/group.go", in: []string{"quorum"}, edits: []edit{
		{"	few = few && v.cfg.W < v.cfg.N\n", "	few = false\n"}}},
	{rule: "looks-ask-w", name: "a look does not learn how long stores take", file: "quorum/group.go", in: []string{"quorum"}, edits: []edit{
		{"				v.nearest.answered(a.at.Sub(begun))\n", "				_ = begun\n"}}},
	{rule: "batches-go-once", name: "a batch is in two messages", file: "allocsvr/logs/log.go", in: []string{"allocsvr/logs"}, edits: []edit{
		{"	if g.flight.sent || g.flight.over {\n", "	if g.flight.over {\n"}}},
	{rule: "batches-go-once", name: "a section waits for another's batch", file: "allocsvr/logs/logs.go", in: []string{"allocsvr/logs"}, edits: []edit{
		{"	messages = 2\n", "	messages = 1\n"}}},
	{rule: "later-payload-is-merged", name: "of two payloads under one epoch the earlier one is kept",
		file: "quorum/state.go", in: []string{"quorum"}, edits: []edit{
			{" || c == 0 && a.PayloadMax < b.PayloadMax {", " {"}}},
	{rule: "document-at-w", name: "R stores that agree confirm a document", file: "quorum/document.go", in: []string{"quorum"}, edits: []edit{
		{"v.confirmed = alike >= cfg.W", "v.confirmed = alike >= cfg.R"}}},
	{rule: "repair-chooses", name: "a document that is repaired is read and not chosen anew",
		file: "quorum/document.go", in: []string{"quorum", "internal/ops/storeadmin"}, edits: []edit{
			{"		return o.carryOn(ctx, found, epoch)\n	})\n	if err != nil {\n		return fmt.Errorf(\"repair",
				"		_, _ = found, epoch\n		return Document{}, nil\n	})\n	if err != nil {\n		return fmt.Errorf(\"repair"}}},
	{rule: "release-follows-the-list", name: "a release ends at a member list that is newer than its own",
		file: "quorum/calls.go", in: []string{"quorum"}, edits: []edit{
			{"		err := g.releaseAt(ctx, v, what, req)\n		if !errors.Is(err, seq.ErrStaleEra) ||", "		err := g.releaseAt(ctx, v, what, req)\n		if true ||"}}},
	{rule: "requests-name-their-list", name: "a release does not say under which member list it is", file: "quorum/calls.go", in: []string{"quorum"}, edits: []edit{
		{"		req.Ref = v.cfg.Ref\n", ""}}},
	{rule: "lists-are-told-apart", name: "the hash of a member list does not tell where a uuid ends",
		file: "quorum/members.go", in: []string{"quorum"}, edits: []edit{
			{"		h.Write(size[:])\n", ""}}},
	{rule: "gone-stores-do-not-count", name: "a store that went is renewed and counted on", file: "quorum/voters.go", in: []string{"quorum"}, edits: []edit{
		{"			l.retire(s)\n", ""}}},
	{rule: "new-stores-are-renewed", name: "a store that came is not renewed", file: "quorum/voters.go", in: []string{"quorum"}, edits: []edit{
		{"	for _, s := range fresh {\n		l.startLoop(s)\n	}\n", "	_ = fresh\n"}}},
	{rule: "vanished-sessions-are-told", name: "a session that no store has ever had is not ended",
		file: "quorum/sessions.go", in: []string{"quorum"}, edits: []edit{
			{"n[vanished] >= w || n[present] == 0", "n[vanished] >= w || n[vanished] > 0 && n[present] == 0"}}},
	{rule: "retired-stores-do-not-count", name: "a store that has left the list still holds leases",
		file: "quorum/voters.go", in: []string{"quorum"}, edits: []edit{
			{"	for _, h := range l.holds {\n		l.detach(h, s)\n		h.told", "	for _, h := range l.holds {\n		h.told"}}},
}
