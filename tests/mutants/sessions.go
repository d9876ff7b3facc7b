package main

// leaseMutants break the rules of protected leases, and of the processes that may speak for a session.
var leaseMutants = []mutant{
	{rule: "merge-protects", name: "a merged promise leaves the lease that it stands against unprotected",
		file: "storesvr/acceptor/care.go", in: []string{"storesvr/acceptor"}, edits: []edit{
			{"		a.leases.protect(r, holder, now+remaining)\n", "		_ = remaining\n"}}},
	{rule: "protected-is-counted", name: "a protected lease is not counted as one",
		file: "storesvr/acceptor/lease.go", in: []string{"storesvr/acceptor"}, edits: []edit{
			{"		if now < p.until {\n			return true\n", "		if now < p.until {\n			return false\n"}}},
	{rule: "protected-not-shortened", name: "a protected lease ends with the newest merge",
		file: "storesvr/acceptor/release.go", in: []string{"storesvr/acceptor"}, edits: []edit{
			{"; p.holder != holder || p.until < until {\n		l.protected[r] = protection{holder: holder, until: max(p.until, until)}",
				"; p.until != until {\n		l.protected[r] = protection{holder: holder, until: until}"}}},
	{rule: "protected-keeps-others-out", name: "a protected lease keeps nobody out",
		file: "storesvr/acceptor/release.go", in: []string{"storesvr/acceptor"}, edits: []edit{
			{"	if p, ok := l.protected[r]; ok && now < p.until {\n", "	if p, ok := l.protected[r]; ok && now < 0 {\n"}}},
	{rule: "protected-ends-with-its-session", name: "a protected lease outlives the end of its session",
		file: "storesvr/acceptor/release.go", in: []string{"storesvr/acceptor"}, edits: []edit{
			{"return p.holder == req.Session })", "return false })"}}},
	{rule: "session-carries-secret", name: "a prepare is not asked for the secret of its session",
		file: "storesvr/replica.go", in: []string{"storesvr"}, edits: []edit{
			{"	if err := req.Secret.Proves(req.Session); err != nil {\n		return quorum.Reply{}, fmt.Errorf(\"prepare",
				"	if err := req.Secret.Proves(req.Session); err != nil && false {\n		return quorum.Reply{}, fmt.Errorf(\"prepare"}}},
	{rule: "session-carries-secret", name: "a step is not asked for the secret of its session", file: "storesvr/replica.go", in: []string{"storesvr"}, edits: []edit{
		{"	if err := req.Secret.Proves(req.Session); err != nil {\n		return quorum.Reply{}, fmt.Errorf(\"step",
			"	if err := req.Secret.Proves(req.Session); err != nil && false {\n		return quorum.Reply{}, fmt.Errorf(\"step"}}},
	{rule: "session-carries-secret", name: "a renewal is not asked for the secret of its session",
		file: "storesvr/replica.go", in: []string{"storesvr"}, edits: []edit{
			{"	if err := req.Secret.Proves(req.Session); err != nil {\n		return quorum.RenewReply{}",
				"	if err := req.Secret.Proves(req.Session); err != nil && false {\n		return quorum.RenewReply{}"}}},
	{rule: "session-carries-secret", name: "a release is not asked for the secret of its session",
		file: "storesvr/replica.go", in: []string{"storesvr"}, edits: []edit{
			{"	if err := req.Secret.Proves(req.Session); err != nil {\n		return \"\", 0",
				"	if err := req.Secret.Proves(req.Session); err != nil && false {\n		return \"\", 0"}}},
	{rule: "session-carries-secret", name: "a fill is not asked for the secret of its session", file: "storesvr/change.go", in: []string{"storesvr"}, edits: []edit{
		{"	if err := req.secret.Proves(req.session); err != nil {\n", "	if err := req.secret.Proves(req.session); err != nil && false {\n"}}},
	{rule: "session-from-secret", name: "any secret proves any session", file: "seq/secret.go", in: []string{"seq"}, edits: []edit{
		{"	case s.Session() != session:\n", "	case false:\n"}}},
	{rule: "offered-is-genuine", name: "counters of a peer are used whatever the release left",
		file: "allocsvr/owner/acquire.go", in: []string{"allocsvr/owner", "allocsvr"}, edits: []edit{
			{" && s.Genuine(out.Seal)", ""}}},
	{rule: "offered-is-genuine", name: "counters of a peer are taken for those of this machine",
		file: "allocsvr/handover/kept.go", in: []string{"allocsvr"}, edits: []edit{
			{"		s.offered, s.Body = s.Digest(), nil\n", "		s.Body = nil\n"}}},
	{rule: "offered-is-genuine", name: "what a release left is told on after something else was accepted",
		file: "storesvr/acceptor/acceptor.go", in: []string{"storesvr/acceptor"}, edits: []edit{
			{"		delete(a.leases.seals, r)\n", "		_ = a.leases.seals\n"}}},
	{rule: "offered-beside-own", name: "an offer throws away the counters of this machine",
		file: "allocsvr/handover/kept.go", in: []string{"allocsvr/handover"}, edits: []edit{
			{"		k.offered[s.ID] = s\n", "		k.offered[s.ID] = s\n		delete(k.own, s.ID)\n"}}},
	{rule: "session-ended-stops", name: "a node whose session was ended goes on without one", file: "allocsvr/refusals.go", in: []string{"allocsvr"}, edits: []edit{
		{"	if errors.Is(err, seq.ErrSessionEnded) && ", "	if false && "}}},
	{rule: "session-ended-stops", name: "one store that ended the session is enough to stop", file: "quorum/lease.go", in: []string{"quorum"}, edits: []edit{
		{"	return ended > c.n-c.w\n", "	return ended > 0\n"}}},
	{rule: "ended-begins-another", name: "a node whose session was ended ends", file: "allocsvr/allocsvr.go", in: []string{"allocsvr"}, edits: []edit{
		{"!errors.Is(err, seq.ErrSessionEnded) || !s.cfg.Secret.IsZero():\n", "!errors.Is(err, seq.ErrSessionEnded) || true:\n"}}},
	{rule: "ended-begins-another", name: "a node goes on under a session that its parent does not know",
		file: "allocsvr/allocsvr.go", in: []string{"allocsvr"}, edits: []edit{
			{"!errors.Is(err, seq.ErrSessionEnded) || !s.cfg.Secret.IsZero():\n", "!errors.Is(err, seq.ErrSessionEnded):\n"}}},
	{rule: "rounds-never-fall", name: "a round that was asked for in vain is forgotten", file: "quorum/calls.go", in: []string{"quorum"}, edits: []edit{
		{"; o.State != Won {\n			g.rounds", "; o.State != Won && false {\n			g.rounds"}}},
	{rule: "rounds-never-fall", name: "of the rounds that were asked for in vain the last one counts",
		file: "quorum/calls.go", in: []string{"quorum"}, edits: []edit{
			{"max(g.rounds[p], items[i].Round)", "items[i].Round"}}},
	{rule: "merge-contests", name: "a merge of an older promise to the holder ends its lease",
		file: "storesvr/acceptor/care.go", in: []string{"storesvr/acceptor"}, edits: []edit{
			{"now); holder != 0 {\n", "now); holder != 0 && holder != next.Promised.Session {\n"}}},
}
