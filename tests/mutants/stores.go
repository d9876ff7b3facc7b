package main

// storeMutants break the rules of one store: its acceptor, its disk and its one writer.
var storeMutants = []mutant{
	{line: 1, rule: "durable-promise", name: "promise kept in memory only", file: "storesvr/acceptor/ballot.go", in: []string{"storesvr"}, edits: []edit{
		{"		st.Promised = e\n		if err := a.set(r, reg, st); err != nil {\n			return quorum.Result{}, err\n		}\n",
			"		st.Promised = e\n		a.registers.byName[r].now = st\n"}}},
	{line: 2, rule: "step-fenced", name: "STEP not compared with promised", file: "storesvr/acceptor/ballot.go", in: []string{"storesvr/acceptor"}, edits: []edit{
		{"	if e.Less(st.Promised) {\n		return a.resultOf(quorum.VerdictNack, r, st), nil\n	}\n	c := a.copyOf(r)\n",
			"	c := a.copyOf(r)\n"},
		{"	next.Promised, next.Accepted, next.Max = e, e, max(st.Max, item.Max)\n",
			"	next.Accepted, next.Max = e, max(st.Max, item.Max)\n	if next.Promised.Less(e) {\n		next.Promised = e\n	}\n"}}},
	{line: 3, rule: "commit-before-ack", name: "ack before commit", file: "storesvr/writer.go", in: []string{"storesvr"}, edits: []edit{
		{"	var commits, batches uint64\n", "	for _, one := range group {\n		one.finish()\n	}\n	var commits, batches uint64\n"},
		{"	for _, one := range group {\n		one.finish()\n	}\n	return nil\n", "	return nil\n"}}},
	{rule: "streams-of-sessions", name: "a stream is opened without a proof", file: "storesvr/stream.go", in: []string{"storesvr"}, edits: []edit{
		{"errors.Join(secret.Proves(session), s.guard", "errors.Join(s.guard"}}},
	{rule: "streams-of-sessions", name: "a node opens the stream of another node's session", file: "storesvr/stream.go", in: []string{"tests/secure"}, edits: []edit{
		{", s.guard.Speaks(rpc.WhoOf(wire.Context()), pb.Store_Stream_FullMethodName, secret.Node)); err", "); err"}}},
	{rule: "streams-of-sessions", name: "a stream takes steps of any session", file: "storesvr/stream.go", in: []string{"storesvr"}, edits: []edit{
		{"	if err == nil && req.Session != 0 {\n", "	if false {\n"}}},
	{rule: "streams-of-sessions", name: "a stream to another store is taken", file: "storesvr/stream.go", in: []string{"storesvr"}, edits: []edit{
		{"	if err := meant(wire.Context(), s.replica.core.identity.UUID); err != nil {\n", "	if err := meant(wire.Context(), s.replica.core.identity.UUID); false {\n"}}},
	{rule: "streams-are-bounded", name: "a stream that takes no answers is read on", file: "storesvr/stream.go", in: []string{"storesvr"}, edits: []edit{
		{"		if t.calls == 0 || t.calls < streamCalls && t.bytes+size <= streamBytes {\n", "		if true {\n"}}},
	{rule: "streams-are-bounded", name: "a step is done whose time is over", file: "storesvr/writer.go", in: []string{"storesvr"}, edits: []edit{
		{"	if !w.until.IsZero() && ", "	if false && "}}},
	{rule: "streams-are-bounded", name: "a stream outlasts the stop of its store", file: "storesvr/stream.go", in: []string{"storesvr"}, edits: []edit{
		{"			return fmt.Errorf(\"stream: %w\", seq.ErrShuttingDown)\n", "			s.leaving = nil\n"}}},
	{rule: "streams-are-bounded", name: "any number of calls wait for a stream", file: "internal/wire/storeclient/stream.go", in: []string{"internal/wire/storeclient"}, edits: []edit{
		{"	case l.queued > 0 && l.queued+a.size > maxQueued:\n", "	case false:\n"}}},
	{rule: "streams-are-bounded", name: "calls are sent whose callers have left", file: "internal/wire/storeclient/stream.go", in: []string{"internal/wire/storeclient"}, edits: []edit{
		{"		if a := l.queue[n]; !a.left {\n", "		if a := l.queue[n]; true {\n"}}},
	{rule: "streams-break", name: "steps wait on for a stream that has broken", file: "internal/wire/storeclient/stream.go", in: []string{"internal/wire/storeclient"}, edits: []edit{
		{"	for _, a := range l.waiting {\n		a.answered", "	for _, a := range l.queue {\n		a.answered"}}},
	{rule: "streams-break", name: "a stream that has broken is used again", file: "internal/wire/storeclient/stream.go", in: []string{"internal/wire/storeclient"}, edits: []edit{
		{"l.now.secret == secret && l.now.alive() {", "l.now.secret == secret {"}}},
	{rule: "streams-break", name: "a store without streams is asked by none", file: "internal/wire/storeclient/stream.go", in: []string{"internal/wire/storeclient"}, edits: []edit{
		{"		if status.Code(err) == codes.Unimplemented {\n", "		if false {\n"}}},
	{rule: "streams-of-sessions", name: "a session's steps go on the stream of the one before", file: "internal/wire/storeclient/stream.go", in: []string{"internal/wire/storeclient"}, edits: []edit{
		{"	if l.now != nil && l.now.secret == secret && l", "	if l.now != nil && l"}}},
	{line: 5, rule: "read-quorum", name: "R=1 passes the validation of init", file: "storesvr/init.go", in: []string{"storesvr"}, edits: []edit{
		{"	case c.R+c.W <= c.N:\n", "	case c.R+c.W < c.N:\n"}}},
	{line: 6, rule: "write-quorum", name: "W=1 passes the validation of init", file: "storesvr/init.go", in: []string{"storesvr"}, edits: []edit{
		{"	case 2*c.W <= c.N:\n", "	case c.W < 1:\n"}}},
	{line: 7, rule: "epoch-with-session", name: "epoch without the session", file: "seq/nouns.go", in: []string{"storesvr/acceptor"}, edits: []edit{
		{"	return cmp.Compare(e.Session, o.Session)\n", "	return 0\n"}}},
	{line: 9, rule: "missing-is-not-zero", name: "missing register read as zero by the acceptor",
		file: "storesvr/acceptor/ballot.go", in: []string{"storesvr/acceptor"}, edits: []edit{
			{"		if !item.Create || !r.OnDemand() {\n", "		if false {\n"}}},
	{line: 9, rule: "missing-is-not-zero", name: "missing register made at zero when a store starts",
		file: "storesvr/disk/load.go", in: []string{"storesvr/disk"}, edits: []edit{
			{"			return nil, fmt.Errorf(\"%w: %s is missing\", ErrCorrupt, r)\n", "			registers[r] = acceptor.State{}\n"}}},
	{line: 9, rule: "missing-is-not-zero", name: "missing sections made at zero when a store starts",
		file: "storesvr/disk/sections.go", in: []string{"storesvr/disk"}, edits: []edit{
			{"			return fmt.Errorf(\"%w: section %d to section %d is missing\", ErrCorrupt, first, last)\n",
				"			record = seal(key, want[i][:len(want[i])-checksumSize])\n"}}},
	{line: 11, rule: "max-never-falls", name: "max lowered by a late, older STEP",
		file: "storesvr/acceptor/ballot.go", in: []string{"storesvr/acceptor"}, edits: []edit{
			{"next.Max = e, e, max(st.Max, item.Max)\n", "next.Max = e, e, item.Max\n	reg.now = State{}\n"}}},
	{line: 14, rule: "commit-error-is-unknown", name: "commit error taken for \"not written\"", file: "storesvr/writer.go", in: []string{"storesvr"}, edits: []edit{
		{"			return fmt.Errorf(\"%w: %w\", ErrCommit, err)\n		}\n		w.stats.committed(",
			"			for _, one := range group {\n				one.err = err\n				close(one.done)\n			}\n			return nil\n		}\n		w.stats.committed("}}},
	{line: 19, rule: "grace-after-restart", name: "no grace after store restart",
		file: "storesvr/acceptor/lease.go", in: []string{"storesvr/acceptor"}, edits: []edit{
			{"		graceEnds: cfg.Start + GraceOf(cfg.LeaseBound),\n", "		graceEnds: cfg.Start,\n"}}},
	{line: 19, rule: "grace-after-restart", name: "grace of a bound that is not on disk", file: "storesvr/replica.go", in: []string{"storesvr"}, edits: []edit{
		{"			u.LeaseBound = max(u.LeaseBound, bound, r.core.acceptor.LeaseBound())\n", ""}}},
	{line: 20, rule: "lease-bound-to-epoch", name: "allocator-wide renew without the epoch check, at a store",
		file: "storesvr/acceptor/lease.go", in: []string{"storesvr/acceptor"}, edits: []edit{
			{"	reg := l.registers.find(item.Register)\n	durable, onDisk := reg.committed()\n	return onDisk && item.Register.Leased() &&\n		reg.now.Promised == e && durable.Promised == e && l.released[item.Register] != e\n",
				"	reg := l.registers.find(item.Register)\n	return reg != nil && item.Register.Leased() && l.released[item.Register] != e\n"}}},
	{line: 21, rule: "lost-stays-lost", name: "renew brings a released section back, at a store",
		file: "storesvr/acceptor/lease.go", in: []string{"storesvr/acceptor"}, edits: []edit{
			{" && l.released[item.Register] != e\n", "\n"}}},
	{line: 22, rule: "lease-outlives-connection", name: "release on connection loss", file: "storesvr/replica.go", in: []string{"storesvr"}, edits: []edit{
		{"func (r *replica) Renew(ctx context.Context, req quorum.RenewRequest) (quorum.RenewReply, error) {\n",
			"func (r *replica) Renew(ctx context.Context, req quorum.RenewRequest) (quorum.RenewReply, error) {\n" +
				"	if ctx.Err() != nil {\n		_, _, err := r.release(quorum.ReleaseRequest{Ref: req.Ref, Session: req.Session, Secret: req.Secret, All: true})\n" +
				"		return quorum.RenewReply{}, errors.Join(ctx.Err(), err)\n	}\n"}}},
	{line: 24, rule: "incarnations-differ", name: "new incarnation taken for the old holder",
		file: "storesvr/acceptor/lease.go", in: []string{"storesvr/acceptor"}, edits: []edit{
			{"			return fmt.Errorf(\"%w: by session %s at %s for %v more\", seq.ErrNameTaken, id, other.addr, other.expiry-now)\n",
				"			delete(l.sessions, id)\n			l.sessions[req.Session] = other\n"}}},
	{line: 25, rule: "empty-disk-is-silent", name: "empty disk votes: a start makes a database",
		file: "storesvr/disk/disk.go", in: []string{"storesvr"}, edits: []edit{
			{"		return nil, ErrNoDatabase\n	case err != nil:\n",
				"		mapping, err := seq.NewMapping()\n		if err == nil {\n" +
					"			err = Create(filepath.Dir(path), Identity{Cluster: \"c1\", UUID: \"new\", Name: \"a\", N: 1, R: 1, W: 1, Names: []string{\"a\"}, Mapping: mapping}, Filling{})\n" +
					"		}\n		if err != nil {\n			return nil, err\n		}\n	case err != nil:\n"}}},
	{line: 25, rule: "empty-disk-is-silent", name: "empty disk votes: a new store is not asked to be bound",
		file: "storesvr/members.go", in: []string{"storesvr"}, edits: []edit{
			{"		return false, \"unbound:", "		return true, \"unbound:"}}},
	{line: 26, rule: "old-disk-is-silent", name: "rolled-back disk votes", file: "storesvr/core.go", in: []string{"storesvr"}, edits: []edit{
		{"	if old := c.witness.compare(nonce, claims); old != nil {\n", "	if old := c.witness.compare(nonce, claims); old != nil && false {\n"}}},
	{line: 26, rule: "old-disk-is-silent", name: "rolled-back disk votes: its older list is looked at first",
		file: "storesvr/replica.go", in: []string{"storesvr"}, edits: []edit{
			{"	if err := c.hear(req.Nonce", "	if c.members.sameList(req.Ref) != nil {\n		c.log.Info(\"another list\")\n	} else if err := c.hear(req.Nonce"}}},
	{line: 29, rule: "no-wrap", name: "counter wraps at the stores", file: "quorum/refusal.go", in: []string{"storesvr/acceptor"}, edits: []edit{
		{"		return uint64(seq.MaxSeq)\n", "		return math.MaxUint64\n"}}},
	{line: 30, rule: "clusters-apart", name: "two clusters share addresses: requests are answered",
		file: "storesvr/members.go", in: []string{"storesvr"}, edits: []edit{
			{"	case cluster != m.self.Cluster:\n", "	case false:\n"},
			{"	if own := m.ref(); ref != own {\n", "	if own := m.ref(); ref.Era != own.Era {\n"}}},
	{line: 30, rule: "clusters-apart", name: "two clusters share addresses: a foreign database is opened",
		file: "storesvr/disk/load.go", in: []string{"storesvr/disk"}, edits: []edit{
			{"	if cluster != \"\" && cluster != meta.Cluster {\n", "	if false {\n"}}},
	{rule: "own-step-keeps-lease", name: "an owner's step ends its own lease", file: "storesvr/acceptor/ballot.go", in: []string{"storesvr/acceptor"}, edits: []edit{
		{"		if e != st.Promised {\n			a.leases.vacate(r, st.Promised, who)\n		}\n", "		a.leases.vacate(r, st.Promised, who)\n"}}},
	{rule: "every-step-is-written", name: "a higher step under the same epoch is answered and not written",
		file: "storesvr/acceptor/ballot.go", in: []string{"storesvr/acceptor"}, edits: []edit{
			{"a.Accepted == b.Accepted && a.Max == b.Max &&", "a.Accepted == b.Accepted &&"}}},
	{rule: "merge-keeps-own-lease", name: "a merge of what was promised here too ends the lease",
		file: "storesvr/acceptor/care.go", in: []string{"storesvr/acceptor"}, edits: []edit{
			{"	if learner || next.Promised == old.Promised {\n", "	if learner {\n"}}},
	{rule: "dump-is-whole", name: "a dump leaves out which max came with a payload",
		file: "storesvr/acceptor/acceptor.go", in: []string{"storesvr/acceptor", "storesvr/backup"}, edits: []edit{
			{"Payload: s.Payload, PayloadMax: s.PayloadMax}", "Payload: s.Payload}"}}},
	{rule: "late-renewals-refused", name: "a renewal that was overtaken is taken in", file: "storesvr/acceptor/lease.go", in: []string{"storesvr/acceptor"}, edits: []edit{
		{"	return s != nil && req.Number != 0 && req.Number <= s.number\n", "	return s != nil && false\n"}}},
	{rule: "late-renewals-refused", name: "a renewal that comes twice is taken in twice", file: "storesvr/acceptor/lease.go", in: []string{"storesvr/acceptor"}, edits: []edit{
		{"req.Number <= s.number\n", "req.Number < s.number\n"}}},
	{rule: "late-renewals-refused", name: "a session forgets how it counted its renewals", file: "quorum/renew.go", in: []string{"quorum"}, edits: []edit{
		{"	l.made++\n", "	l.made = 1\n"}}},
	{rule: "compared-at-rest", name: "a store that is compared is told at once what it knows", file: "quorum/witness.go", in: []string{"quorum"}, edits: []edit{
		{"!known || before.Less(c) {", "!known || before.Less(c) || true {"}}},
	{rule: "drop-gives-up", name: "a drop of what is leased gives nothing up", file: "storesvr/acceptor/lease.go", in: []string{"storesvr/acceptor"}, edits: []edit{
		{"	l.giveUp(s, seq.Epoch{Round: item.Round, Session: id}, item.Register)\n}\n", "}\n"}}},
	{rule: "expired-is-told", name: "a session that expired is not told that what it had is gone",
		file: "storesvr/acceptor/lease.go", in: []string{"storesvr/acceptor"}, edits: []edit{
			{"		clear(s.attached)\n		reply.Reset = true\n", "		clear(s.attached)\n"}}},
	{rule: "release-excuses-once", name: "a release excuses belief in too much for ever",
		file: "storesvr/acceptor/lease.go", in: []string{"storesvr/acceptor"}, edits: []edit{
			{"	s.released = 0\n", ""}}},
	{rule: "leases-are-counted", name: "what is leased is not counted",
		file: "storesvr/acceptor/lease.go", in: []string{"storesvr/acceptor", "storesvr"}, edits: []edit{
			{"		if now < s.expiry && len(s.attached) > 0 {\n			return true\n", "		if now < s.expiry && len(s.attached) > 0 {\n			return false\n"}}},
	{rule: "documents-are-not-leased", name: "a document is leased", file: "storesvr/acceptor/lease.go", in: []string{"storesvr/acceptor"}, edits: []edit{
		{"	return onDisk && item.Register.Leased() &&\n", "	return onDisk &&\n"}}},
	{rule: "ended-means-gone", name: "an ended session is listed on and keeps its name",
		file: "storesvr/acceptor/release.go", in: []string{"storesvr/acceptor"}, edits: []edit{
			{"		delete(l.sessions, req.Session)\n", ""}}},
}
