package main

// quorumMutants are those of a session that counts answers and leases.
var quorumMutants = []mutant{
	{
		line: 4, name: "two acks of one store counted as two",
		file:  "quorum/group.go",
		edits: []edit{{old: "		if uuid == a.uuid {\n", new: "		if false && uuid == a.uuid {\n"}},
		pkg:   "quorum", tests: []string{"TestAnItemIsDecidedByDistinctStores"},
	},
	{
		line: 4, name: "a store that answers as another is believed",
		file: "quorum/config.go",
		edits: []edit{
			{old: "	case want != \"\" && want != uuid:\n", new: "	case false:\n"},
			{old: "		if j != i && stores[j].UUID == uuid {\n", new: "		if false {\n"},
		},
		pkg: "quorum", tests: []string{"TestAStoreThatAnswersAsAnotherDoesNotCount"},
	},
	{
		line: 5, name: "R=1 passes the validation of a session",
		file:  "quorum/config.go",
		edits: []edit{{old: "	case c.R+c.W <= c.N:\n", new: "	case c.R+c.W < c.N:\n"}},
		pkg:   "quorum", tests: []string{"TestAConfigurationWhoseQuorumsCanMissEachOtherIsRefused"},
	},
	{
		line: 5, name: "R=1: one store is enough to read",
		file:  "quorum/calls.go",
		edits: []edit{{old: "	if len(answers) < v.cfg.R {\n", new: "	if len(answers) < 1 {\n"}},
		pkg:   "quorum", tests: []string{"TestReadPrefixNeedsRStoresAndMergesThem"},
	},
	{
		line: 6, name: "W=1: one ack confirms",
		file:  "quorum/batch.go",
		edits: []edit{{old: "	case count[yes] >= b.w:\n", new: "	case count[yes] >= 1:\n"}},
		pkg:   "quorum", tests: []string{"TestAnItemIsDecidedByDistinctStores"},
	},
	{
		line: 9, name: "missing register read as zero by a session",
		file:  "quorum/batch.go",
		edits: []edit{{old: "		if b.absentIsFree && b.register(i).OnDemand() {\n", new: "		if b.absentIsFree {\n"}},
		pkg:   "quorum", tests: []string{"TestAMissingRegisterIsNeverReadAsZero"},
	},
	{
		line: 12, name: "base from the first responder",
		file: "quorum/batch.go",
		edits: []edit{{
			old: "	o.Max = max(o.Max, r.Max)\n	if o.Accepted.IsZero() || o.Accepted.Less(r.Accepted) {\n",
			new: "	if o.Acks == 0 {\n		o.Max = r.Max\n	}\n	if o.Accepted.IsZero() || o.Accepted.Less(r.Accepted) {\n",
		}},
		pkg: "quorum", tests: []string{"TestTheBaseIsTheHighestOfAllPromisesNotTheFirst"},
	},
	{
		line: 13, name: "a NACK outvoted by acks",
		file:  "quorum/batch.go",
		edits: []edit{{old: "	case nack && b.nackDecides:\n", new: "	case nack && false:\n"}},
		pkg:   "quorum", tests: []string{"TestASingleNackRefusesAStepAndNotAPrepare"},
	},
	{
		line: 15, name: "lease counted from the ack",
		file: "quorum/lease.go",
		edits: []edit{{
			old: "	sent.at = l.cfg.Clock.Now() // before sending: mutation 15\n	reply, err := s.store.Store.Renew(ctx, req)\n",
			new: "	reply, err := s.store.Store.Renew(ctx, req)\n	sent.at = l.cfg.Clock.Now()\n",
		}},
		pkg: "quorum", tests: []string{"TestASlowRenewShortensTheLeaseByWhatItTook"},
	},
	{
		line: 16, name: "lease of W-1 stores",
		file:  "quorum/hold.go",
		edits: []edit{{old: "	n, w := len(c.stores), c.w\n", new: "	n, w := len(c.stores), max(1, c.w-1)\n"}},
		pkg:   "quorum", tests: []string{"TestALeaseOfFewerThanWStoresIsNone"},
	},
	{
		line: 20, name: "allocator-wide renew without the epoch check, at its session",
		file:  "quorum/hold.go",
		edits: []edit{{old: "	mask := h.attached.Load() & c.mask\n", new: "	mask := c.mask\n"}},
		pkg:   "quorum", tests: []string{"TestARefusedAttachIsNotALease"},
	},
	{
		line: 21, name: "renew brings a lost section back",
		file: "quorum/renew.go",
		edits: []edit{{
			old: "		if _, waiting := s.pending[h]; !waiting || h.over.Load() {\n			continue\n		}\n",
			new: "",
		}},
		pkg: "quorum", tests: []string{"TestADroppedHoldTravelsUntilAnsweredAndStaysDropped"},
	},
	{
		line: 21, name: "a lost epoch is attached again",
		file:  "quorum/hold.go",
		edits: []edit{{old: "ok && round <= ended ||", new: "ok && round < ended ||"}},
		pkg:   "quorum", tests: []string{"TestALostSectionIsNeverBroughtBack"},
	},
	{
		line: 26, name: "rolled-back disk votes: nobody tells a store what it had",
		file:  "quorum/renew.go",
		edits: []edit{{old: "		Lease: l.cfg.Lease, Seen: s.commits}\n", new: "		Lease: l.cfg.Lease}\n"}},
		pkg:   "quorum", tests: []string{"TestTheStoreIsToldHowManyItShouldHave"},
	},
}
