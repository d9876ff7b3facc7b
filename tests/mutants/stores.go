package main

// storeMutants are those of one store: its acceptor, its disk and its one writer.
var storeMutants = []mutant{
	{
		line: 1, rule: "durable-promise",
		name: "promise kept in memory only",
		file: "storesvr/acceptor/ballot.go",
		edits: []edit{{
			old: "		st.Promised = e\n		if err := a.set(r, reg, st); err != nil {\n			return quorum.Result{}, err\n		}\n",
			new: "		st.Promised = e\n		a.registers.byName[r].now = st\n",
		}},
		in: []string{"storesvr"},
	},
	{
		line: 2, rule: "step-fenced",
		name: "STEP not compared with promised",
		file: "storesvr/acceptor/ballot.go",
		edits: []edit{
			{
				old: "	if e.Less(st.Promised) {\n		return a.resultOf(quorum.VerdictNack, r, st), nil\n	}\n	if why := refusal(item, limits); why != \"\" {",
				new: "	if why := refusal(item, limits); why != \"\" {",
			},
			{
				old: "	next.Promised, next.Accepted, next.Max = e, e, max(st.Max, item.Max)\n",
				new: "	next.Accepted, next.Max = e, max(st.Max, item.Max)\n	if next.Promised.Less(e) {\n		next.Promised = e\n	}\n",
			},
		},
		in: []string{"storesvr/acceptor"},
	},
	{
		line: 3, rule: "commit-before-ack",
		name: "ack before commit",
		file: "storesvr/writer.go",
		edits: []edit{
			{
				old: "	var commits uint64\n	if !update.Empty() {\n",
				new: "	for _, one := range group {\n		close(one.done)\n	}\n	var commits uint64\n	if !update.Empty() {\n",
			},
			{
				old: "	for _, one := range group {\n		close(one.done)\n	}\n	return nil\n",
				new: "	return nil\n",
			},
		},
		in: []string{"storesvr"},
	},
	{
		line: 5, rule: "read-quorum",
		name:  "R=1 passes the validation of init",
		file:  "storesvr/init.go",
		edits: []edit{{old: "	case c.R+c.W <= c.N:\n", new: "	case c.R+c.W < c.N:\n"}},
		in:    []string{"storesvr"},
	},
	{
		line: 6, rule: "write-quorum",
		name:  "W=1 passes the validation of init",
		file:  "storesvr/init.go",
		edits: []edit{{old: "	case 2*c.W <= c.N:\n", new: "	case c.W < 1:\n"}},
		in:    []string{"storesvr"},
	},
	{
		line: 7, rule: "epoch-with-session",
		name:  "epoch without the session",
		file:  "seq/nouns.go",
		edits: []edit{{old: "	return cmp.Compare(e.Session, o.Session)\n", new: "	return 0\n"}},
		in:    []string{"storesvr/acceptor"},
	},
	{
		line: 9, rule: "missing-is-not-zero",
		name:  "missing register read as zero by the acceptor",
		file:  "storesvr/acceptor/ballot.go",
		edits: []edit{{old: "		if !item.Create || !r.OnDemand() {\n", new: "		if false {\n"}},
		in:    []string{"storesvr/acceptor"},
	},
	{
		line: 9, rule: "missing-is-not-zero",
		name: "missing register made at zero when a store starts",
		file: "storesvr/disk/load.go",
		edits: []edit{{
			old: "			return nil, fmt.Errorf(\"%w: %s is missing\", ErrCorrupt, r)\n",
			new: "			registers[r] = acceptor.State{}\n",
		}},
		in: []string{"storesvr/disk"},
	},
	{
		line: 9, rule: "missing-is-not-zero",
		name: "missing sections made at zero when a store starts",
		file: "storesvr/disk/sections.go",
		edits: []edit{{
			old: "			return fmt.Errorf(\"%w: section %d to section %d is missing\", ErrCorrupt, first, last)\n",
			new: "			record = seal(key, want[i][:len(want[i])-checksumSize])\n",
		}},
		in: []string{"storesvr/disk"},
	},
	{
		line: 11, rule: "max-never-falls",
		name: "max lowered by a late, older STEP",
		file: "storesvr/acceptor/ballot.go",
		edits: []edit{{
			old: "next.Max = e, e, max(st.Max, item.Max)\n",
			new: "next.Max = e, e, item.Max\n	reg.now = State{}\n",
		}},
		in: []string{"storesvr/acceptor"},
	},
	{
		line: 14, rule: "commit-error-is-unknown",
		name: "commit error taken for \"not written\"",
		file: "storesvr/writer.go",
		edits: []edit{{
			old: "			return fmt.Errorf(\"%w: %w\", ErrCommit, err)\n		}\n		w.stats.committed(",
			new: "			for _, one := range group {\n				one.err = err\n				close(one.done)\n			}\n			return nil\n		}\n		w.stats.committed(",
		}},
		in: []string{"storesvr"},
	},
	{
		line: 19, rule: "grace-after-restart",
		name:  "no grace after store restart",
		file:  "storesvr/acceptor/lease.go",
		edits: []edit{{old: "		graceEnds: cfg.Start + GraceOf(cfg.LeaseBound),\n", new: "		graceEnds: cfg.Start,\n"}},
		in:    []string{"storesvr/acceptor"},
	},
	{
		line: 19, rule: "grace-after-restart",
		name: "grace of a bound that is not on disk",
		file: "storesvr/replica.go",
		edits: []edit{{
			old: "			u.LeaseBound = max(u.LeaseBound, bound, r.core.acceptor.LeaseBound())\n",
			new: "",
		}},
		in: []string{"storesvr"},
	},
	{
		line: 20, rule: "lease-bound-to-epoch",
		name: "allocator-wide renew without the epoch check, at a store",
		file: "storesvr/acceptor/lease.go",
		edits: []edit{{
			old: "	reg := l.registers.find(item.Register)\n	durable, onDisk := reg.committed()\n	return onDisk && item.Register.Leased() &&\n		reg.now.Promised == e && durable.Promised == e && l.released[item.Register] != e\n",
			new: "	reg := l.registers.find(item.Register)\n	return reg != nil && item.Register.Leased() && l.released[item.Register] != e\n",
		}},
		in: []string{"storesvr/acceptor"},
	},
	{
		line: 21, rule: "lost-stays-lost",
		name:  "renew brings a released section back, at a store",
		file:  "storesvr/acceptor/lease.go",
		edits: []edit{{old: " && l.released[item.Register] != e\n", new: "\n"}},
		in:    []string{"storesvr/acceptor"},
	},
	{
		line: 22, rule: "lease-outlives-connection",
		name: "release on connection loss",
		file: "storesvr/replica.go",
		edits: []edit{{
			old: "func (r *replica) Renew(ctx context.Context, req quorum.RenewRequest) (quorum.RenewReply, error) {\n",
			new: "func (r *replica) Renew(ctx context.Context, req quorum.RenewRequest) (quorum.RenewReply, error) {\n" +
				"	if ctx.Err() != nil {\n		_, _, err := r.release(quorum.ReleaseRequest{Ref: req.Ref, Session: req.Session, Secret: req.Secret, All: true})\n" +
				"		return quorum.RenewReply{}, errors.Join(ctx.Err(), err)\n	}\n",
		}},
		in: []string{"storesvr"},
	},
	{
		line: 24, rule: "incarnations-differ",
		name: "new incarnation taken for the old holder",
		file: "storesvr/acceptor/lease.go",
		edits: []edit{{
			old: "			return fmt.Errorf(\"%w: by session %s at %s for %v more\", seq.ErrNameTaken, id, other.addr, other.expiry-now)\n",
			new: "			delete(l.sessions, id)\n			l.sessions[req.Session] = other\n",
		}},
		in: []string{"storesvr/acceptor"},
	},
	{
		line: 25, rule: "empty-disk-is-silent",
		name: "empty disk votes: a start makes a database",
		file: "storesvr/disk/disk.go",
		edits: []edit{{
			old: "		return nil, ErrNoDatabase\n	case err != nil:\n",
			new: "		mapping, err := seq.NewMapping()\n		if err == nil {\n" +
				"			err = Create(filepath.Dir(path), Identity{Cluster: \"c1\", UUID: \"new\", Name: \"a\", N: 1, R: 1, W: 1, Names: []string{\"a\"}, Mapping: mapping}, Filling{})\n" +
				"		}\n		if err != nil {\n			return nil, err\n		}\n	case err != nil:\n",
		}},
		in: []string{"storesvr"},
	},
	{
		line: 25, rule: "empty-disk-is-silent",
		name:  "empty disk votes: a new store is not asked to be bound",
		file:  "storesvr/members.go",
		edits: []edit{{old: "		return false, \"unbound:", new: "		return true, \"unbound:"}},
		in:    []string{"storesvr"},
	},
	{
		line: 26, rule: "old-disk-is-silent",
		name:  "rolled-back disk votes",
		file:  "storesvr/core.go",
		edits: []edit{{old: "	if old := c.witness.compare(nonce, claims); old != nil {\n", new: "	if old := c.witness.compare(nonce, claims); old != nil && false {\n"}},
		in:    []string{"storesvr"},
	},
	{
		line: 26, rule: "old-disk-is-silent",
		name:  "rolled-back disk votes: its older list is looked at first",
		file:  "storesvr/replica.go",
		edits: []edit{{old: "	if err := c.hear(req.Nonce", new: "	if c.members.sameList(req.Ref) != nil {\n		c.log.Info(\"another list\")\n	} else if err := c.hear(req.Nonce"}},
		in:    []string{"storesvr"},
	},
	{
		line: 29, rule: "no-wrap",
		name:  "counter wraps at the stores",
		file:  "storesvr/acceptor/ballot.go",
		edits: []edit{{old: "	case kind == seq.KindSection && item.Max > uint64(seq.MaxSeq):\n", new: "	case false:\n"}},
		in:    []string{"storesvr/acceptor"},
	},
	{
		line: 30, rule: "clusters-apart",
		name: "two clusters share addresses: requests are answered",
		file: "storesvr/members.go",
		edits: []edit{
			{old: "	case cluster != m.self.Cluster:\n", new: "	case false:\n"},
			{old: "	if own := m.ref(); ref != own {\n", new: "	if own := m.ref(); ref.Era != own.Era {\n"},
		},
		in: []string{"storesvr"},
	},
	{
		line: 30, rule: "clusters-apart",
		name:  "two clusters share addresses: a foreign database is opened",
		file:  "storesvr/disk/load.go",
		edits: []edit{{old: "		if cluster != \"\" && cluster != meta.Cluster {\n", new: "		if false {\n"}},
		in:    []string{"storesvr/disk"},
	},
	{
		rule: "own-step-keeps-lease", name: "an owner's step ends its own lease",
		file:  "storesvr/acceptor/ballot.go",
		edits: []edit{{old: "		if e != st.Promised {\n			a.leases.vacate(r, st.Promised, who)\n		}\n", new: "		a.leases.vacate(r, st.Promised, who)\n"}},
		in:    []string{"storesvr/acceptor"},
	},
	{
		rule: "every-step-is-written", name: "a higher step under the same epoch is answered and not written",
		file:  "storesvr/acceptor/ballot.go",
		edits: []edit{{old: "a.Accepted == b.Accepted && a.Max == b.Max &&", new: "a.Accepted == b.Accepted &&"}},
		in:    []string{"storesvr/acceptor"},
	},
	{
		rule: "merge-keeps-own-lease", name: "a merge of what was promised here too ends the lease",
		file:  "storesvr/acceptor/care.go",
		edits: []edit{{old: "	if learner || next.Promised == old.Promised {\n", new: "	if learner {\n"}},
		in:    []string{"storesvr/acceptor"},
	},
	{
		rule: "dump-is-whole", name: "a dump leaves out which max came with a payload",
		file:  "storesvr/acceptor/acceptor.go",
		edits: []edit{{old: "Payload: s.Payload, PayloadMax: s.PayloadMax}", new: "Payload: s.Payload}"}},
		in:    []string{"storesvr/acceptor", "storesvr/backup"},
	},
	{
		rule: "drop-gives-up", name: "a drop of what is leased gives nothing up",
		file:  "storesvr/acceptor/lease.go",
		edits: []edit{{old: "	l.giveUp(s, seq.Epoch{Round: item.Round, Session: id}, item.Register)\n}\n", new: "}\n"}},
		in:    []string{"storesvr/acceptor"},
	},
	{
		rule: "expired-is-told", name: "a session that expired is not told that what it had is gone",
		file:  "storesvr/acceptor/lease.go",
		edits: []edit{{old: "		clear(s.attached)\n		reply.Reset = true\n", new: "		clear(s.attached)\n"}},
		in:    []string{"storesvr/acceptor"},
	},
	{
		rule: "release-excuses-once", name: "a release excuses belief in too much for ever",
		file:  "storesvr/acceptor/lease.go",
		edits: []edit{{old: "	s.released = 0\n", new: ""}},
		in:    []string{"storesvr/acceptor"},
	},
	{
		rule: "leases-are-counted", name: "what is leased is not counted",
		file:  "storesvr/acceptor/lease.go",
		edits: []edit{{old: "		if now < s.expiry && len(s.attached) > 0 {\n			return true\n", new: "		if now < s.expiry && len(s.attached) > 0 {\n			return false\n"}},
		in:    []string{"storesvr/acceptor", "storesvr"},
	},
	{
		rule: "documents-are-not-leased", name: "a document is leased",
		file:  "storesvr/acceptor/lease.go",
		edits: []edit{{old: "	return onDisk && item.Register.Leased() &&\n", new: "	return onDisk &&\n"}},
		in:    []string{"storesvr/acceptor"},
	},
	{
		rule: "ended-means-gone", name: "an ended session is listed on and keeps its name",
		file:  "storesvr/acceptor/release.go",
		edits: []edit{{old: "		delete(l.sessions, req.Session)\n", new: ""}},
		in:    []string{"storesvr/acceptor"},
	},
}
