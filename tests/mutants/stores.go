package main

// storeMutants are those of one store: its acceptor, its disk and its one writer.
var storeMutants = []mutant{
	{
		line: 1, name: "promise kept in memory only",
		file: "storesvr/acceptor/ballot.go",
		edits: []edit{{
			old: "		st.Promised = e\n		if err := a.set(r, reg, st); err != nil {\n			return quorum.Result{}, err\n		}\n",
			new: "		st.Promised = e\n		a.registers.byName[r].now = st\n",
		}},
		pkg: "storesvr", tests: []string{"TestARestartKeepsEveryPromiseAndValue"},
	},
	{
		line: 2, name: "STEP not compared with promised",
		file: "storesvr/acceptor/ballot.go",
		edits: []edit{
			{
				old: "	if e.Less(st.Promised) {\n		return resultOf(quorum.VerdictNack, st), nil\n	}\n	if why := refusal(item, limits); why != \"\" {",
				new: "	if why := refusal(item, limits); why != \"\" {",
			},
			{
				old: "	next.Promised, next.Accepted, next.Max = e, e, max(st.Max, item.Max)\n",
				new: "	next.Accepted, next.Max = e, max(st.Max, item.Max)\n	if next.Promised.Less(e) {\n		next.Promised = e\n	}\n",
			},
		},
		pkg: "storesvr/acceptor", tests: []string{"TestAStepUnderAnOlderEpochIsRefused"},
	},
	{
		line: 3, name: "ack before commit",
		file: "storesvr/loop.go",
		edits: []edit{
			{
				old: "	var commits uint64\n	if !update.Empty() {\n",
				new: "	for _, w := range group {\n		close(w.done)\n	}\n	var commits uint64\n	if !update.Empty() {\n",
			},
			{
				old: "			w.committed()\n		}\n		close(w.done)\n",
				new: "			w.committed()\n		}\n",
			},
		},
		pkg: "storesvr", tests: []string{"TestNoAnswerLeavesBeforeItsCommitHasEnded"},
	},
	{
		line: 5, name: "R=1 passes the validation of init",
		file:  "storesvr/init.go",
		edits: []edit{{old: "	case c.R+c.W <= c.N:\n", new: "	case c.R+c.W < c.N:\n"}},
		pkg:   "storesvr", tests: []string{"TestInitRefusesQuorumsThatCouldMissEachOther"},
	},
	{
		line: 6, name: "W=1 passes the validation of init",
		file:  "storesvr/init.go",
		edits: []edit{{old: "	case 2*c.W <= c.N:\n", new: "	case c.W < 1:\n"}},
		pkg:   "storesvr", tests: []string{"TestInitRefusesQuorumsThatCouldMissEachOther"},
	},
	{
		line: 7, name: "epoch without the session",
		file:  "seq/nouns.go",
		edits: []edit{{old: "	return cmp.Compare(e.Session, o.Session)\n", new: "	return 0\n"}},
		pkg:   "storesvr/acceptor", tests: []string{"TestAPrepareIsRefusedBelowThePromiseAndRepeatableAtIt"},
	},
	{
		line: 9, name: "missing register read as zero by the acceptor",
		file:  "storesvr/acceptor/ballot.go",
		edits: []edit{{old: "		if !item.Create || !r.OnDemand() {\n", new: "		if false {\n"}},
		pkg:   "storesvr/acceptor", tests: []string{"TestAMissingRegisterIsNeverZero"},
	},
	{
		line: 9, name: "missing register made at zero when a store starts",
		file: "storesvr/disk/load.go",
		edits: []edit{{
			old: "			return nil, fmt.Errorf(\"%w: %s is missing\", ErrCorrupt, r)\n",
			new: "			registers[r] = acceptor.State{}\n",
		}},
		pkg: "storesvr/disk", tests: []string{"TestOpenRefusesByName"},
	},
	{
		line: 9, name: "missing sections made at zero when a store starts",
		file: "storesvr/disk/sections.go",
		edits: []edit{{
			old: "			return fmt.Errorf(\"%w: section %d to section %d is missing\", ErrCorrupt, first, last)\n",
			new: "			record = seal(key, want[i][:len(want[i])-checksumSize])\n",
		}},
		pkg: "storesvr/disk", tests: []string{"TestOpenRefusesByName"},
	},
	{
		line: 11, name: "max lowered by a late, older STEP",
		file: "storesvr/acceptor/ballot.go",
		edits: []edit{{
			old: "next.Max = e, e, max(st.Max, item.Max)\n",
			new: "next.Max = e, e, item.Max\n	reg.now = State{}\n",
		}},
		pkg: "storesvr/acceptor", tests: []string{"TestALateOlderStepNeverLowersMax"},
	},
	{
		line: 14, name: "commit error taken for \"not written\"",
		file: "storesvr/loop.go",
		edits: []edit{{
			old: "			return fmt.Errorf(\"%w: %w\", ErrCommit, err)\n		}\n		r.stats.committed(",
			new: "			for _, w := range group {\n				w.err = err\n				close(w.done)\n			}\n			return nil\n		}\n		r.stats.committed(",
		}},
		pkg: "storesvr", tests: []string{"TestACommitThatFailedMayHaveHappenedAndEndsTheStore"},
	},
	{
		line: 19, name: "no grace after store restart",
		file:  "storesvr/acceptor/acceptor.go",
		edits: []edit{{old: "		graceEnds: cfg.Start + GraceOf(cfg.LeaseBound),\n", new: "		graceEnds: cfg.Start,\n"}},
		pkg:   "storesvr/acceptor", tests: []string{"TestAfterARestartOnlyTheRecordedOwnerComesInDuringTheGrace"},
	},
	{
		line: 19, name: "grace of a bound that is not on disk",
		file: "storesvr/replica.go",
		edits: []edit{{
			old: "			u.LeaseBound = max(u.LeaseBound, bound, r.acceptor.LeaseBound())\n",
			new: "",
		}},
		pkg: "storesvr", tests: []string{"TestNoAnswerLeavesBeforeItsCommitHasEnded", "TestAStoreThatStopsWithNothingLeasedStartsWithoutGrace"},
	},
	{
		line: 20, name: "allocator-wide renew without the epoch check, at a store",
		file: "storesvr/acceptor/lease.go",
		edits: []edit{{
			old: "	reg := a.registers.find(item.Register)\n	durable, onDisk := reg.committed()\n	return onDisk && item.Register.Leased() &&\n		reg.now.Promised == e && durable.Promised == e && a.released[item.Register] != e\n",
			new: "	reg := a.registers.find(item.Register)\n	return reg != nil && item.Register.Leased() && a.released[item.Register] != e\n",
		}},
		pkg: "storesvr/acceptor", tests: []string{"TestAnEpochIsNotLeasedBeforeItsPromiseIsOnDisk"},
	},
	{
		line: 21, name: "renew brings a released section back, at a store",
		file:  "storesvr/acceptor/lease.go",
		edits: []edit{{old: " && a.released[item.Register] != e\n", new: "\n"}},
		pkg:   "storesvr/acceptor", tests: []string{"TestAReleasedEpochIsNeverLeasedAgain"},
	},
	{
		line: 22, name: "release on connection loss",
		file: "storesvr/replica.go",
		edits: []edit{{
			old: "func (r *replica) Renew(ctx context.Context, req quorum.RenewRequest) (quorum.RenewReply, error) {\n",
			new: "func (r *replica) Renew(ctx context.Context, req quorum.RenewRequest) (quorum.RenewReply, error) {\n" +
				"	if ctx.Err() != nil {\n		_, _, err := r.release(quorum.ReleaseRequest{Ref: req.Ref, Session: req.Session, All: true})\n" +
				"		return quorum.RenewReply{}, errors.Join(ctx.Err(), err)\n	}\n",
		}},
		pkg: "storesvr", tests: []string{"TestALeaseOutlivesTheConnectionThatItCameBy"},
	},
	{
		line: 24, name: "new incarnation taken for the old holder",
		file: "storesvr/acceptor/lease.go",
		edits: []edit{{
			old: "			return fmt.Errorf(\"%w: by session %s at %s for %v more\", seq.ErrNameTaken, id, other.addr, other.expiry-now)\n",
			new: "			delete(a.sessions, id)\n			a.sessions[req.Session] = other\n",
		}},
		pkg: "storesvr/acceptor", tests: []string{"TestANewIncarnationIsNotTheOldHolder"},
	},
	{
		line: 25, name: "empty disk votes: a start makes a database",
		file: "storesvr/disk/disk.go",
		edits: []edit{{
			old: "		return nil, ErrNoDatabase\n	case err != nil:\n",
			new: "		mapping, err := seq.NewMapping()\n		if err == nil {\n" +
				"			err = Create(filepath.Dir(path), Identity{Cluster: \"c1\", UUID: \"new\", Name: \"a\", N: 1, R: 1, W: 1, Names: []string{\"a\"}, Mapping: mapping})\n" +
				"		}\n		if err != nil {\n			return nil, err\n		}\n	case err != nil:\n",
		}},
		pkg: "storesvr", tests: []string{"TestNewRefusesByName"},
	},
	{
		line: 25, name: "empty disk votes: a new store is not asked to be bound",
		file:  "storesvr/replica.go",
		edits: []edit{{old: "	case r.members.Version == 0:\n", new: "	case false:\n"}},
		pkg:   "storesvr", tests: []string{"TestAStoreDoesNotVoteBeforeItIsBound"},
	},
	{
		line: 26, name: "rolled-back disk votes",
		file:  "storesvr/replica.go",
		edits: []edit{{old: "	if req.Seen > r.commits && r.distrusted == \"\" {\n", new: "	if false {\n"}},
		pkg:   "storesvr", tests: []string{"TestAStoreWhoseDiskIsOlderThanItWasNeverVotesAgain"},
	},
	{
		line: 26, name: "rolled-back disk votes: its older list is looked at first",
		file:  "storesvr/replica.go",
		edits: []edit{{old: "	if req.Seen > r.commits && r.distrusted == \"\" {\n", new: "	if req.Seen > r.commits && r.admit(req.Ref) == nil {\n"}},
		pkg:   "storesvr", tests: []string{"TestADiskOfAnOlderListIsFoundOutBeforeItIsBroughtUpToDate"},
	},
	{
		line: 29, name: "counter wraps at the stores",
		file:  "storesvr/acceptor/ballot.go",
		edits: []edit{{old: "	case kind == seq.KindSection && item.Max > uint64(seq.MaxSeq):\n", new: "	case false:\n"}},
		pkg:   "storesvr/acceptor", tests: []string{"TestWritesThatBreakARuleOfTheRegisterAreRefused"},
	},
	{
		line: 30, name: "two clusters share addresses: requests are answered",
		file: "storesvr/replica.go",
		edits: []edit{
			{old: "	case cluster != r.identity.Cluster:\n", new: "	case false:\n"},
			{old: "	if own := r.ref(); ref != own {\n", new: "	if own := r.ref(); ref.Era != own.Era {\n"},
		},
		pkg: "storesvr", tests: []string{"TestRequestsOfAnotherClusterEraOrMemberListAreRefused"},
	},
	{
		line: 30, name: "two clusters share addresses: a foreign database is opened",
		file:  "storesvr/disk/load.go",
		edits: []edit{{old: "		if cluster != \"\" && cluster != meta.Cluster {\n", new: "		if false {\n"}},
		pkg:   "storesvr/disk", tests: []string{"TestARefusedOpenWritesNothing"},
	},
}
