package main

// ownerMutants are those of an AllocSvr: sections, worker ids and its own life.
var ownerMutants = []mutant{
	{
		line: 8, rule: "session-per-life",
		name:  "epoch reused after a process restart",
		file:  "seq/secret.go",
		edits: []edit{{old: "	_, _ = rand.Read(s[:]) // documented never to return an error\n", new: "	_, _ = rand.Reader, copy(s[:], \"process\")\n"}},
		in:    []string{"seq"},
	},
	{
		line: 8, rule: "session-per-life",
		name: "the next child goes on with the session of the dead one",
		file: "cmd/allocsvr/supervise.go",
		edits: []edit{{
			old: "	for pause := firstPause; ; {\n		secret := seq.NewSecret()\n",
			new: "	secret := seq.NewSecret()\n	for pause := firstPause; ; {\n",
		}},
		in: []string{"cmd/allocsvr"},
	},
	{
		line: 10, rule: "unknown-step-unused",
		name: "new range used after an ambiguous STEP",
		file: "allocsvr/tenure/raise.go",
		edits: []edit{{
			old: "			r.Unconfirmed(step, out)\n			again = append(again, r)\n",
			new: "			r.Confirmed(step)\n",
		}},
		in: []string{"allocsvr/tenure", "allocsvr"},
	},
	{
		line: 12, rule: "base-of-all-promises",
		name:  "base from the owner's own memory, not from the promises",
		file:  "allocsvr/owner/acquire.go",
		edits: []edit{{old: "	t.table = counters.New(out.Max)\n", new: "	t.table = counters.New(t.max)\n"}},
		in:    []string{"allocsvr/owner", "allocsvr"},
	},
	{
		line: 13, rule: "nack-decides",
		name:  "owner goes on after NACK",
		file:  "allocsvr/tenure/raise.go",
		edits: []edit{{old: "			r.Lost(step, out)\n", new: "			again = append(again, r)\n"}},
		in:    []string{"allocsvr/tenure", "allocsvr"},
	},
	{
		rule: "noted-before-attached", name: "a lease is asked for before the owner can hear of its loss",
		file: "allocsvr/tenure/acquire.go",
		edits: []edit{{
			old: "		if g.Bid.Confirmed(g.Epoch) {\n			g.Hold = h.Leases.Attach(g.Bid.Register(), g.Epoch.Round)\n",
			new: "		g.Hold = h.Leases.Attach(g.Bid.Register(), g.Epoch.Round)\n		if g.Bid.Confirmed(g.Epoch) {\n",
		}},
		in: []string{"allocsvr/tenure"},
	},
	{
		rule: "unconfirmed-is-no-owner", name: "a register is owned though its first ceiling is not confirmed",
		file:  "allocsvr/tenure/acquire.go",
		edits: []edit{{old: "			promised[i].Bid.Failed(Confirming, out)\n			continue\n", new: "			_ = Confirming\n"}},
		in:    []string{"allocsvr/tenure"},
	},
	{
		line: 17, rule: "lease-asked-each-batch",
		name: "cached lease flag",
		file: "allocsvr/section/cell.go",
		edits: []edit{{
			old: "	if now < c.until && c.losses == losses {\n",
			new: "	if c.until > 0 && c.losses+1 > 0 {\n",
		}},
		in: []string{"allocsvr/section", "allocsvr"},
	},
	{
		line: 17, rule: "lease-asked-each-batch",
		name:  "a lease's end kept though a store has lost it",
		file:  "allocsvr/section/cell.go",
		edits: []edit{{old: "	if now < c.until && c.losses == losses {\n", new: "	if now < c.until && c.losses <= losses {\n"}},
		in:    []string{"allocsvr/section", "allocsvr"},
	},
	{
		line: 17, rule: "lease-asked-each-batch",
		name:  "a loss that is not counted",
		file:  "quorum/renew.go",
		edits: []edit{{old: "	l.losses.Add(1)\n", new: ""}},
		in:    []string{"quorum"},
	},
	{
		line: 18, rule: "clock-after-last-request",
		name: "lease checked before the batch closed",
		file: "allocsvr/section/take.go",
		edits: []edit{
			{old: "	k.Pass(t.Moment())\n", new: "	m := t.Moment()\n	k.came = m.now\n	k.Pass(m)\n"},
			{old: "	pending []int\n", new: "	pending []int\n	came    time.Duration\n"},
			{old: "	now := t.table.clock.Now()\n	lapsed := !c.leased(now)\n", new: "	lapsed := !c.leased(t.came)\n"},
		},
		in: []string{"allocsvr/section", "allocsvr"},
	},
	{
		line: 23, rule: "seal-before-release",
		name: "release before in-flight increments ended, in a hand-over",
		file: "allocsvr/owner/give.go",
		edits: []edit{{
			old: "	var sealed []handover.Sealed\n",
			new: "	v, _ := g.sections.Cell(ids[0]).View()\n	early := []quorum.LeaseItem{{Register: seq.SectionRegister(ids[0]), Round: v.Epoch.Round}}\n" +
				"	if err := g.holder.Release(ctx, early, to.Session); err != nil {\n		return 0, err\n	}\n" +
				"	var sealed []handover.Sealed\n",
		}},
		in: []string{"allocsvr/owner", "allocsvr"},
	},
	{
		line: 23, rule: "seal-before-release",
		name: "release before in-flight increments ended, at the end",
		file: "allocsvr/owner/owner.go",
		edits: []edit{
			{
				old: "	parkErr := g.park(file)\n",
				new: "	endErr := o.holder.End(ctx, o.secret)\n	parkErr := g.park(file)\n",
			},
			{old: "	endErr := o.holder.End(ctx, o.secret)\n	if err :=", new: "	if err :="},
		},
		in: []string{"allocsvr/owner", "allocsvr"},
	},
	{
		line: 24, rule: "incarnations-differ",
		name:  "new incarnation takes what its predecessor was offered",
		file:  "allocsvr/api/peer.go",
		edits: []edit{{old: "	if seq.Session(to) != p.Session {\n", new: "	if to == 0 {\n"}},
		in:    []string{"allocsvr/api", "allocsvr"},
	},
	{
		line: 29, rule: "no-wrap",
		name:  "counter wraps",
		file:  "allocsvr/counters/table.go",
		edits: []edit{{old: "	if n == 0 || cur > ceiling || n > ceiling-cur {\n", new: "	if n == 0 || cur+n > ceiling {\n"}},
		in:    []string{"allocsvr/counters"},
	},
	{
		line: 30, rule: "clusters-apart",
		name:  "two clusters share addresses: counters are taken over",
		file:  "allocsvr/api/peer.go",
		edits: []edit{{old: "	if cluster != p.Cluster {\n", new: "	if cluster == \"\" {\n"}},
		in:    []string{"allocsvr/api", "allocsvr"},
	},
	{
		line: 31, rule: "mark-before-id",
		name:  "snowflake high-water mark saved after issuing",
		file:  "allocsvr/globalid/workers/keep.go",
		edits: []edit{{old: "		open = append(open, extension{l, to})\n", new: "		l.confirm(to)\n		open = append(open, extension{l, to})\n"}},
		in:    []string{"allocsvr/globalid"},
	},
	{
		line: 32, rule: "mark-is-waited-for",
		name:  "worker id reused below its old mark",
		file:  "allocsvr/globalid/workers/issuer.go",
		edits: []edit{{old: "snowflake.New(ns.Layout, dc, worker, floor.tick(ns.Layout), ", new: "snowflake.New(ns.Layout, dc, worker, 0, "}},
		in:    []string{"allocsvr/globalid"},
		sim:   true,
	},
	{
		line: 33, rule: "seal-directly-before-use",
		name: "sealed counters used though another epoch came between",
		file: "allocsvr/handover/sealed.go",
		edits: []edit{{
			old: "	return accepted == s.Epoch || slices.Contains(s.Also, accepted)\n",
			new: "	return !accepted.Less(s.Epoch) || slices.Contains(s.Also, accepted)\n",
		}},
		in: []string{"allocsvr"},
	},
	{
		line: 34, rule: "sealed-means-silent",
		name: "an increment after the seal: the ready",
		file: "allocsvr/section/pass.go",
		edits: []edit{{
			old: "		if l.serves = l.c.state == Owned; l.serves",
			new: "		if l.serves = l.c.state == Owned || l.c.state == Sealed; l.serves",
		}},
		in: []string{"allocsvr/section", "allocsvr"},
	},
	{
		line: 34, rule: "sealed-means-silent",
		name:  "an increment after the seal: the waiting",
		file:  "allocsvr/section/take.go",
		edits: []edit{{old: "	case Acquiring, Sealed:\n", new: "	case Acquiring:\n"}},
		in:    []string{"allocsvr/section", "allocsvr"},
	},
	{
		line: 34, rule: "sealed-means-silent",
		name:  "an increment after the seal: a raise",
		file:  "allocsvr/section/current.go",
		edits: []edit{{old: "		case c.state == Owned:\n", new: "		case c.state == Owned || c.state == Sealed:\n"}},
		in:    []string{"allocsvr/section", "allocsvr"},
	},
	{
		rule: "ceiling-above-counters", name: "a section is installed though its counters are above its ceiling",
		file:  "allocsvr/section/cell.go",
		edits: []edit{{old: "	if table.High() > confirmed || table.Base()", new: "	if table.Base()"}},
		in:    []string{"allocsvr/section", "allocsvr"},
	},
	{
		rule: "left-means-left", name: "a section is installed in a node that has left",
		file:  "allocsvr/section/cell.go",
		edits: []edit{{old: "	if closed() {\n		c.clear(\"\")\n		return false, nil\n", new: "	if closed() && false {\n		c.clear(\"\")\n		return false, nil\n"}},
		in:    []string{"allocsvr/section", "allocsvr"},
	},
	{
		rule: "leave-gives-all", name: "a node that leaves keeps the arbiter's register",
		file:  "allocsvr/owner/owner.go",
		edits: []edit{{old: "	o.arbiterLease.Release(ctx)\n", new: ""}},
		in:    []string{"allocsvr/owner", "allocsvr"},
	},
	{
		rule: "leave-gives-all", name: "a node that leaves does not wait for what it is acquiring",
		file:  "allocsvr/owner/owner.go",
		edits: []edit{{old: "	if err := o.gaining.Acquire(ctx, gainers); err == nil {\n		o.gaining.Release(gainers)", new: "	if false {\n		o.gaining.Release(gainers)"}},
		in:    []string{"allocsvr/owner", "allocsvr"},
	},
	{
		rule: "refused-offer-is-taken-back", name: "sections whose offer was refused stay sealed",
		file:  "allocsvr/owner/give.go",
		edits: []edit{{old: "to.Session, sealed); err != nil {\n		g.reclaim(sealed)\n", new: "to.Session, sealed); err != nil {\n"}},
		in:    []string{"allocsvr/owner", "allocsvr"},
	},
}
