package main

// ownerMutants break the rules of an AllocSvr: sections, worker ids and its own life.
var ownerMutants = []mutant{
	{line: 8, rule: "session-per-life", name: "epoch reused after a process restart", file: "seq/secret.go", in: []string{"seq"}, edits: []edit{
		{"	_, _ = rand.Read(s.Seed[:]) // documented never to return an error\n", "	_, _ = rand.Reader, copy(s.Seed[:], \"process\")\n"}}},
	{line: 8, rule: "session-per-life", name: "the next child goes on with the session of the dead one",
		file: "cmd/allocsvr/supervise.go", in: []string{"cmd/allocsvr"}, edits: []edit{
			{"	for pause := firstPause; ; {\n		secret := seq.NewSecret(s.node)\n", "	secret := seq.NewSecret(s.node)\n	for pause := firstPause; ; {\n"}}},
	{line: 10, rule: "unknown-step-unused", name: "new range used after an ambiguous STEP",
		file: "allocsvr/ownership/raise.go", in: []string{"allocsvr/ownership", "allocsvr"}, edits: []edit{
			{"			r.Unconfirmed(step, out)\n			again = append(again, r)\n", "			r.Confirmed(step)\n"}}},
	{line: 12, rule: "base-of-all-promises", name: "base from the owner's own memory, not from the promises",
		file: "allocsvr/owner/acquire.go", in: []string{"allocsvr/owner", "allocsvr"}, edits: []edit{
			{"	t.table = counters.New(out.Max)\n", "	t.table = counters.New(t.max)\n"}}},
	{line: 13, rule: "nack-decides", name: "owner goes on after NACK", file: "allocsvr/ownership/raise.go", in: []string{"allocsvr/ownership", "allocsvr"}, edits: []edit{
		{"			r.Lost(step, out)\n", "			again = append(again, r)\n"}}},
	{rule: "noted-before-attached", name: "a lease is asked for before the owner can hear of its loss",
		file: "allocsvr/ownership/acquire.go", in: []string{"allocsvr/ownership"}, edits: []edit{
			{"		if g.Bid.Confirmed(g.Epoch) {\n			g.Hold = h.Leases.Attach(g.Bid.Register(), g.Epoch.Round)\n",
				"		g.Hold = h.Leases.Attach(g.Bid.Register(), g.Epoch.Round)\n		if g.Bid.Confirmed(g.Epoch) {\n"}}},
	{rule: "unconfirmed-is-no-owner", name: "a register is owned though its first ceiling is not confirmed",
		file: "allocsvr/ownership/acquire.go", in: []string{"allocsvr/ownership"}, edits: []edit{
			{"			promised[i].Bid.Failed(Confirming, out)\n			continue\n", "			_ = Confirming\n"}}},
	{line: 17, rule: "lease-asked-each-batch", name: "cached lease flag",
		file: "allocsvr/section/section.go", in: []string{"allocsvr/section", "allocsvr"}, edits: []edit{
			{"	if now < c.until && c.losses == losses {\n", "	if c.until > 0 && c.losses+1 > 0 {\n"}}},
	{line: 17, rule: "lease-asked-each-batch", name: "a lease's end kept though a store has lost it",
		file: "allocsvr/section/section.go", in: []string{"allocsvr/section", "allocsvr"}, edits: []edit{
			{"	if now < c.until && c.losses == losses {\n", "	if now < c.until && c.losses <= losses {\n"}}},
	{rule: "missed-promises-are-brought", name: "a store that missed a promise is left to the next step", file: "quorum/lease.go", in: []string{"quorum", "allocsvr"}, edits: []edit{
		{"	if l.cfg.Step != nil {\n", "	if false {\n"}}},
	{line: 17, rule: "lease-asked-each-batch", name: "a loss that is not counted", file: "quorum/renew.go", in: []string{"quorum"}, edits: []edit{
		{"	l.losses.Add(1)\n", ""}}},
	{line: 18, rule: "clock-after-last-request", name: "lease checked before the batch closed",
		file: "allocsvr/section/take.go", in: []string{"allocsvr/section", "allocsvr"}, edits: []edit{
			{"	k.Pass(t.BatchClock())\n", "	m := t.BatchClock()\n	k.came = m.now\n	k.Pass(m)\n"},
			{"	pending []int\n", "	pending []int\n	came    time.Duration\n"},
			{"	now := t.read\n	lapsed := !c.leased(now)\n", "	now := t.read\n	lapsed := !c.leased(t.came)\n"}}},
	{rule: "near-as-by-the-network", name: "a caller within the process takes of a strict space without the stores",
		file: "allocsvr/section/local.go", in: []string{"allocsvr/section"}, edits: []edit{
			{"	if space.Mode == seq.Strict {\n", "	if false {\n"}}},
	{rule: "near-as-by-the-network", name: "a key that has its numbers is asked for again",
		file: "internal/sdk/call/begin.go", in: []string{"client"}, edits: []edit{
			{"		if o.Ranges[i].First != 0 {\n", "		if false {\n"}}},
	{line: 23, rule: "seal-before-release", name: "release before in-flight increments ended, in a hand-over",
		file: "allocsvr/owner/give.go", in: []string{"allocsvr/owner", "allocsvr"}, edits: []edit{
			{"	var sealed []handover.Sealed\n",
				"	v, _ := g.sections.Section(ids[0]).View()\n	early := []quorum.LeaseItem{{Register: seq.SectionRegister(ids[0]), Round: v.Epoch.Round}}\n" +
					"	if err := g.holder.Release(ctx, early, to.Session); err != nil {\n		return 0, err\n	}\n" +
					"	var sealed []handover.Sealed\n"}}},
	{line: 23, rule: "seal-before-release", name: "release before in-flight increments ended, at the end",
		file: "allocsvr/owner/owner.go", in: []string{"allocsvr/owner", "allocsvr"}, edits: []edit{
			{"	parkErr := g.park(file)\n", "	endErr := o.holder.End(ctx, o.secret)\n	parkErr := g.park(file)\n"},
			{"	endErr := o.holder.End(ctx, o.secret)\n	if err :=", "	if err :="}}},
	{line: 24, rule: "incarnations-differ", name: "new incarnation takes what its predecessor was offered",
		file: "allocsvr/api/peer.go", in: []string{"allocsvr/api", "allocsvr"}, edits: []edit{
			{"	if seq.Session(to) != p.Session {\n", "	if to == 0 {\n"}}},
	{line: 29, rule: "no-wrap", name: "counter wraps", file: "internal/base/counters/table.go", in: []string{"internal/base/counters"}, edits: []edit{
		{"	if n == 0 || cur > ceiling || n > ceiling-cur {\n", "	if n == 0 || cur+n > ceiling {\n"}}},
	{line: 30, rule: "clusters-apart", name: "two clusters share addresses: counters are taken over",
		file: "allocsvr/api/peer.go", in: []string{"allocsvr/api", "allocsvr"}, edits: []edit{
			{"	if cluster != p.Cluster {\n", "	if cluster == \"\" {\n"}}},
	{line: 31, rule: "mark-before-id", name: "snowflake high-water mark saved after issuing",
		file: "allocsvr/globalid/workers/lease.go", in: []string{"allocsvr/globalid"}, edits: []edit{
			{"		open = append(open, extension{l, to})\n", "		l.confirm(to)\n		open = append(open, extension{l, to})\n"}}},
	{line: 32, rule: "mark-is-waited-for", name: "worker id reused below its old mark",
		file: "allocsvr/globalid/workers/issuer.go", in: []string{"allocsvr/globalid"}, sim: true, edits: []edit{
			{"snowflake.New(p.Layout, p.dc, worker, floor.tick(p.Layout), ", "snowflake.New(p.Layout, p.dc, worker, 0, "}}},
	{line: 33, rule: "seal-directly-before-use", name: "sealed counters used though another epoch came between",
		file: "allocsvr/handover/sealed.go", in: []string{"allocsvr"}, edits: []edit{
			{"	return accepted == s.Epoch || slices.Contains(s.Also, accepted)\n", "	return !accepted.Less(s.Epoch) || slices.Contains(s.Also, accepted)\n"}}},
	{line: 34, rule: "sealed-means-silent", name: "an increment after the seal: the ready",
		file: "allocsvr/section/pass.go", in: []string{"allocsvr/section", "allocsvr"}, edits: []edit{
			{"		if l.serves = l.c.state == Owned; l.serves", "		if l.serves = l.c.state == Owned || l.c.state == Sealed; l.serves"}}},
	{line: 34, rule: "sealed-means-silent", name: "an increment after the seal: the waiting",
		file: "allocsvr/section/take.go", in: []string{"allocsvr/section", "allocsvr"}, edits: []edit{
			{"	case Acquiring, Sealed:\n", "	case Acquiring:\n"}}},
	{line: 34, rule: "sealed-means-silent", name: "an increment after the seal: a raise",
		file: "allocsvr/section/current.go", in: []string{"allocsvr/section", "allocsvr"}, edits: []edit{
			{"		case c.state == Owned:\n", "		case c.state == Owned || c.state == Sealed:\n"}}},
	{rule: "ceiling-above-counters", name: "a section is installed though its counters are above its ceiling",
		file: "allocsvr/section/section.go", in: []string{"allocsvr/section", "allocsvr"}, edits: []edit{
			{"	if table.High() > confirmed || table.Base()", "	if table.Base()"}}},
	{rule: "left-means-left", name: "a section is installed in a node that has left",
		file: "allocsvr/section/section.go", in: []string{"allocsvr/section", "allocsvr"}, edits: []edit{
			{"	if t.closed.Load() {\n		c.clear(\"\")\n		return false, nil\n", "	if t.closed.Load() && false {\n		c.clear(\"\")\n		return false, nil\n"}}},
	{rule: "leave-gives-all", name: "a node that leaves keeps the arbiter's register",
		file: "allocsvr/owner/owner.go", in: []string{"allocsvr/owner", "allocsvr"}, edits: []edit{
			{"	o.arbiterLease.Release(ctx)\n", ""}}},
	{rule: "leave-gives-all", name: "a node that leaves does not wait for what it is acquiring",
		file: "allocsvr/owner/owner.go", in: []string{"allocsvr/owner", "allocsvr"}, edits: []edit{
			{"	if err := o.gaining.Acquire(ctx, gainers); err == nil {\n		o.gaining.Release(gainers)", "	if false {\n		o.gaining.Release(gainers)"}}},
	{rule: "refused-offer-is-taken-back", name: "sections whose offer was refused stay sealed",
		file: "allocsvr/owner/give.go", in: []string{"allocsvr/owner", "allocsvr"}, edits: []edit{
			{"to.Session, sealed); err != nil {\n		g.reclaim(sealed)\n", "to.Session, sealed); err != nil {\n"}}},
}
