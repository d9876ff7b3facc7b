package main

// ownerMutants are those of an AllocSvr: sections, worker ids and its own life.
var ownerMutants = []mutant{
	{
		line: 8, name: "epoch reused after a process restart",
		file:  "seq/nouns.go",
		edits: []edit{{old: "		_, _ = rand.Read(b[:]) // documented never to return an error\n", new: "		_, _ = rand.Reader, copy(b[:], \"process\")\n"}},
		pkg:   "seq", tests: []string{"TestEveryIncarnationDrawsASessionOfItsOwn"},
	},
	{
		line: 8, name: "the next child goes on with the session of the dead one",
		file: "cmd/allocsvr/supervise.go",
		edits: []edit{{
			old: "	for pause := firstPause; ; {\n		session := seq.NewSession()\n",
			new: "	session := seq.NewSession()\n	for pause := firstPause; ; {\n",
		}},
		pkg: "cmd/allocsvr", tests: []string{"TestADeadChildsSessionEndsAndAnotherStartsUnderANewOne"},
	},
	{
		line: 10, name: "new range used after an ambiguous STEP",
		file: "allocsvr/step.go",
		edits: []edit{{
			old: "		default:\n			again = append(again, p.c)\n",
			new: "		default:\n			p.c.confirm(p.epoch, p.max)\n",
		}},
		pkg: "allocsvr", tests: []string{"TestARangeWhoseStepIsUnknownIsNotUsedBeforeAStepIsConfirmed"},
	},
	{
		line: 12, name: "base from the owner's own memory, not from the promises",
		file:  "allocsvr/acquire.go",
		edits: []edit{{old: "	try.table = counters.New(out.Max)\n", new: "	try.table = counters.New(try.max)\n"}},
		pkg:   "allocsvr", tests: []string{"TestANewOwnerStartsAtTheHighestPromiseAndConfirmsAStepAbove"},
	},
	{
		line: 13, name: "owner goes on after NACK",
		file:  "allocsvr/step.go",
		edits: []edit{{old: "				s.a.lose(p.c, p.epoch, out.Promised)\n", new: "				again = append(again, p.c)\n"}},
		pkg:   "allocsvr", tests: []string{"TestANackEndsTheSectionAtOnceAndWithItWhatWasConfirmed"},
	},
	{
		line: 17, name: "cached lease flag",
		file: "allocsvr/cell.go",
		edits: []edit{{
			old: "	if now < c.until && c.losses == losses {\n",
			new: "	if c.until > 0 && c.losses+1 > 0 {\n",
		}},
		pkg: "allocsvr", tests: []string{"TestEveryBatchAsksWhenTheLeaseEnds"},
	},
	{
		line: 17, name: "a lease's end kept though a store has lost it",
		file:  "allocsvr/cell.go",
		edits: []edit{{old: "	if now < c.until && c.losses == losses {\n", new: "	if now < c.until && c.losses <= losses {\n"}},
		pkg:   "allocsvr", tests: []string{"TestAHoldIsAskedAgainWhenItsAnswerIsUsedUpOrALeaseWasLost"},
	},
	{
		line: 17, name: "a loss that is not counted",
		file:  "quorum/renew.go",
		edits: []edit{{old: "	l.losses.Add(1)\n", new: ""}},
		pkg:   "quorum", tests: []string{"TestAHoldIsWorthNoLessUntilALossIsCounted"},
	},
	{
		line: 18, name: "lease checked before the batch closed",
		file: "allocsvr/take.go",
		edits: []edit{
			{old: "	t.pass(a.moment())\n", new: "	m := a.moment()\n	t.came = m.now\n	t.pass(m)\n"},
			{old: "	pending []int\n", new: "	pending []int\n	came    time.Duration\n"},
			{old: "	now := t.a.clock.Now()\n	lapsed := !c.leased(now)\n", new: "	lapsed := !c.leased(t.came)\n"},
		},
		pkg: "allocsvr", tests: []string{"TestARequestThatWaitedAsksTheClockWhenItIsServed"},
	},
	{
		line: 23, name: "release before in-flight increments ended, in a hand-over",
		file: "allocsvr/handoff.go",
		edits: []edit{{
			old: "	var sealed []sealedSection\n",
			new: "	early := []quorum.LeaseItem{{Register: seq.SectionRegister(ids[0]), Round: a.cells[ids[0]].epoch.Round}}\n" +
				"	if err := a.registers.Release(ctx, a.session, early, to.Session); err != nil {\n		return 0, err\n	}\n" +
				"	var sealed []sealedSection\n",
		}},
		pkg: "allocsvr", tests: []string{"TestASectionIsSealedBeforeItsLeaseIsReleased"},
	},
	{
		line: 23, name: "release before in-flight increments ended, at the end",
		file: "allocsvr/leave.go",
		edits: []edit{
			{
				old: "	parkErr := a.park(file)\n",
				new: "	endErr := a.registers.EndSession(ctx, a.session)\n	parkErr := a.park(file)\n",
			},
			{old: "	endErr := a.registers.EndSession(ctx, a.session)\n	if err :=", new: "	if err :="},
		},
		pkg: "allocsvr", tests: []string{"TestASessionEndsOnlyOnceItsSectionsAreSealed"},
	},
	{
		line: 24, name: "new incarnation takes what its predecessor was offered",
		file:  "allocsvr/peers.go",
		edits: []edit{{old: "	if seq.Session(to) != p.a.session {\n", new: "	if to == 0 {\n"}},
		pkg:   "allocsvr", tests: []string{"TestAMessageForAnotherIncarnationOrClusterIsRefused"},
	},
	{
		line: 29, name: "counter wraps",
		file:  "allocsvr/counters/table.go",
		edits: []edit{{old: "	if n == 0 || cur > ceiling || n > ceiling-cur {\n", new: "	if n == 0 || cur+n > ceiling {\n"}},
		pkg:   "allocsvr/counters", tests: []string{"TestARefusedTakeChangesNothing"},
	},
	{
		line: 30, name: "two clusters share addresses: counters are taken over",
		file:  "allocsvr/peers.go",
		edits: []edit{{old: "	if cluster != p.a.cluster {\n", new: "	if cluster == \"\" {\n"}},
		pkg:   "allocsvr", tests: []string{"TestAMessageForAnotherIncarnationOrClusterIsRefused"},
	},
	{
		line: 31, name: "snowflake high-water mark saved after issuing",
		file:  "allocsvr/globalid/keep.go",
		edits: []edit{{old: "		leases = append(leases, l)\n", new: "		l.confirm(to)\n		leases = append(leases, l)\n"}},
		pkg:   "allocsvr/globalid", tests: []string{"TestAStepOfUnknownOutcomeDoesNotMoveTheCeiling"},
	},
	{
		line: 32, name: "worker id reused below its old mark",
		file:  "allocsvr/globalid/acquire.go",
		edits: []edit{{old: "snowflake.New(ns.Layout, dc, w, floor.tick(ns.Layout), ", new: "snowflake.New(ns.Layout, dc, w, 0, "}},
		pkg:   "allocsvr/globalid", tests: []string{"TestAQuickRestartWaitsForTheMarkInsteadOfRefusing"},
	},
	{
		line: 33, name: "sealed counters used though another epoch came between",
		file: "allocsvr/cell.go",
		edits: []edit{{
			old: "	return accepted == s.epoch || (!s.also.IsZero() && accepted == s.also)\n",
			new: "	return !accepted.Less(s.epoch)\n",
		}},
		pkg: "allocsvr", tests: []string{"TestSealedCountersAreUsedOnlyDirectlyAfterTheirEpoch"},
	},
	{
		line: 34, name: "an increment after the seal: the ready",
		file: "allocsvr/pass.go",
		edits: []edit{{
			old: "		if l.serves = l.c.state == owned; l.serves",
			new: "		if l.serves = l.c.state == owned || l.c.state == sealed; l.serves",
		}},
		pkg: "allocsvr", tests: []string{"TestNoNumberIsTakenAfterTheSeal"},
	},
	{
		line: 34, name: "an increment after the seal: the waiting",
		file:  "allocsvr/take.go",
		edits: []edit{{old: "	case acquiring, sealed:\n", new: "	case acquiring:\n"}},
		pkg:   "allocsvr", tests: []string{"TestNoNumberIsTakenAfterTheSeal"},
	},
	{
		line: 34, name: "an increment after the seal: a raise",
		file:  "allocsvr/take.go",
		edits: []edit{{old: "		case c.state == owned:\n", new: "		case c.state == owned || c.state == sealed:\n"}},
		pkg:   "allocsvr", tests: []string{"TestNoNumberIsTakenAfterTheSeal"},
	},
}
