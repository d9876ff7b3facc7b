package main

// leaseMutants are those of protected leases and of who may speak for a session.
var leaseMutants = []mutant{
	{
		rule: "merge-protects", name: "a merged promise leaves the lease that it stands against unprotected",
		file:  "storesvr/acceptor/care.go",
		edits: []edit{{old: "		a.leases.protect(r, holder, now+remaining)\n", new: "		_ = remaining\n"}},
		in:    []string{"storesvr/acceptor"},
	},
	{
		rule: "protected-is-counted", name: "a protected lease is not counted as one",
		file:  "storesvr/acceptor/lease.go",
		edits: []edit{{old: "		if now < p.until {\n			return true\n", new: "		if now < p.until {\n			return false\n"}},
		in:    []string{"storesvr/acceptor"},
	},
	{
		rule: "protected-not-shortened", name: "a protected lease ends with the newest merge",
		file:  "storesvr/acceptor/release.go",
		edits: []edit{{old: "; p.holder != holder || p.until < until {\n		l.protected[r] = protection{holder: holder, until: max(p.until, until)}", new: "; p.until != until {\n		l.protected[r] = protection{holder: holder, until: until}"}},
		in:    []string{"storesvr/acceptor"},
	},
	{
		rule: "protected-keeps-others-out", name: "a protected lease keeps nobody out",
		file:  "storesvr/acceptor/release.go",
		edits: []edit{{old: "	if p, ok := l.protected[r]; ok && now < p.until {\n", new: "	if p, ok := l.protected[r]; ok && now < 0 {\n"}},
		in:    []string{"storesvr/acceptor"},
	},
	{
		rule: "protected-ends-with-its-session", name: "a protected lease outlives the end of its session",
		file:  "storesvr/acceptor/release.go",
		edits: []edit{{old: "return p.holder == req.Session })", new: "return false })"}},
		in:    []string{"storesvr/acceptor"},
	},
	{
		rule: "session-carries-secret", name: "a prepare is not asked for the secret of its session",
		file:  "storesvr/replica.go",
		edits: []edit{{old: "	if err := req.Secret.Proves(req.Session); err != nil {\n		return quorum.Reply{}, fmt.Errorf(\"prepare", new: "	if err := req.Secret.Proves(req.Session); err != nil && false {\n		return quorum.Reply{}, fmt.Errorf(\"prepare"}},
		in:    []string{"storesvr"},
	},
	{
		rule: "session-carries-secret", name: "a step is not asked for the secret of its session",
		file:  "storesvr/replica.go",
		edits: []edit{{old: "	if err := req.Secret.Proves(req.Session); err != nil {\n		return quorum.Reply{}, fmt.Errorf(\"step", new: "	if err := req.Secret.Proves(req.Session); err != nil && false {\n		return quorum.Reply{}, fmt.Errorf(\"step"}},
		in:    []string{"storesvr"},
	},
	{
		rule: "session-carries-secret", name: "a renewal is not asked for the secret of its session",
		file:  "storesvr/replica.go",
		edits: []edit{{old: "	if err := req.Secret.Proves(req.Session); err != nil {\n		return quorum.RenewReply{}", new: "	if err := req.Secret.Proves(req.Session); err != nil && false {\n		return quorum.RenewReply{}"}},
		in:    []string{"storesvr"},
	},
	{
		rule: "session-carries-secret", name: "a release is not asked for the secret of its session",
		file:  "storesvr/replica.go",
		edits: []edit{{old: "	if err := req.Secret.Proves(req.Session); err != nil {\n		return \"\", 0", new: "	if err := req.Secret.Proves(req.Session); err != nil && false {\n		return \"\", 0"}},
		in:    []string{"storesvr"},
	},
	{
		rule: "session-carries-secret", name: "a fill is not asked for the secret of its session",
		file:  "storesvr/change.go",
		edits: []edit{{old: "	if err := req.secret.Proves(req.session); err != nil {\n", new: "	if err := req.secret.Proves(req.session); err != nil && false {\n"}},
		in:    []string{"storesvr"},
	},
	{
		rule: "session-from-secret", name: "any secret proves any session",
		file:  "seq/secret.go",
		edits: []edit{{old: "	case s.Session() != session:\n", new: "	case false:\n"}},
		in:    []string{"seq"},
	},
	{
		rule: "offered-is-genuine", name: "counters of a peer are used whatever the release left",
		file:  "allocsvr/owner/acquire.go",
		edits: []edit{{old: " && s.Genuine(out.Seal)", new: ""}},
		in:    []string{"allocsvr/owner", "allocsvr"},
	},
	{
		rule: "offered-is-genuine", name: "counters of a peer are taken for those of this machine",
		file:  "allocsvr/handover/kept.go",
		edits: []edit{{old: "		s.offered, s.Body = s.Digest(), nil\n", new: "		s.Body = nil\n"}},
		in:    []string{"allocsvr"},
	},
	{
		rule: "offered-is-genuine", name: "what a release left is told on after something else was accepted",
		file:  "storesvr/acceptor/acceptor.go",
		edits: []edit{{old: "		delete(a.leases.seals, r)\n", new: "		_ = a.leases.seals\n"}},
		in:    []string{"storesvr/acceptor"},
	},
	{
		rule: "offered-beside-own", name: "an offer throws away the counters of this machine",
		file:  "allocsvr/handover/kept.go",
		edits: []edit{{old: "		k.offered[s.ID] = s\n", new: "		k.offered[s.ID] = s\n		delete(k.own, s.ID)\n"}},
		in:    []string{"allocsvr"},
	},
	{
		rule: "session-ended-stops", name: "a node whose session was ended goes on without one",
		file:  "allocsvr/refusals.go",
		edits: []edit{{old: "	if errors.Is(err, seq.ErrSessionEnded) && ", new: "	if false && "}},
		in:    []string{"allocsvr"},
	},
	{
		rule: "session-ended-stops", name: "one store that ended the session is enough to stop",
		file:  "quorum/lease.go",
		edits: []edit{{old: "	return ended > c.n-c.w\n", new: "	return ended > 0\n"}},
		in:    []string{"quorum"},
	},
	{
		rule: "ended-begins-another", name: "a node whose session was ended ends",
		file:  "allocsvr/allocsvr.go",
		edits: []edit{{old: "!errors.Is(err, seq.ErrSessionEnded) || !s.cfg.Secret.IsZero():\n", new: "!errors.Is(err, seq.ErrSessionEnded) || true:\n"}},
		in:    []string{"allocsvr"},
	},
	{
		rule: "ended-begins-another", name: "a node goes on under a session that its parent does not know",
		file:  "allocsvr/allocsvr.go",
		edits: []edit{{old: "!errors.Is(err, seq.ErrSessionEnded) || !s.cfg.Secret.IsZero():\n", new: "!errors.Is(err, seq.ErrSessionEnded):\n"}},
		in:    []string{"allocsvr"},
	},
	{
		rule: "rounds-never-fall", name: "a round that was asked for in vain is forgotten",
		file:  "quorum/calls.go",
		edits: []edit{{old: "; o.State != Won {\n			g.rounds", new: "; o.State != Won && false {\n			g.rounds"}},
		in:    []string{"quorum"},
	},
	{
		rule: "rounds-never-fall", name: "of the rounds that were asked for in vain the last one counts",
		file:  "quorum/calls.go",
		edits: []edit{{old: "max(g.rounds[p], items[i].Round)", new: "items[i].Round"}},
		in:    []string{"quorum"},
	},
	{
		rule: "merge-contests", name: "a merge of an older promise to the holder ends its lease",
		file:  "storesvr/acceptor/care.go",
		edits: []edit{{old: "now); holder != 0 {\n", new: "now); holder != 0 && holder != next.Promised.Session {\n"}},
		in:    []string{"storesvr/acceptor"},
	},
}
