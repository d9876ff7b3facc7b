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
				old: "	if e.Less(st.Promised) {\n		return resultOf(quorum.VerdictNack, st), nil\n	}\n	if why := refusal(item, limits); why != \"\" {",
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
		file: "storesvr/loop.go",
		edits: []edit{{
			old: "			return fmt.Errorf(\"%w: %w\", ErrCommit, err)\n		}\n		r.stats.committed(",
			new: "			for _, w := range group {\n				w.err = err\n				close(w.done)\n			}\n			return nil\n		}\n		r.stats.committed(",
		}},
		in: []string{"storesvr"},
	},
	{
		line: 19, rule: "grace-after-restart",
		name:  "no grace after store restart",
		file:  "storesvr/acceptor/acceptor.go",
		edits: []edit{{old: "		graceEnds: cfg.Start + GraceOf(cfg.LeaseBound),\n", new: "		graceEnds: cfg.Start,\n"}},
		in:    []string{"storesvr/acceptor"},
	},
	{
		line: 19, rule: "grace-after-restart",
		name: "grace of a bound that is not on disk",
		file: "storesvr/replica.go",
		edits: []edit{{
			old: "			u.LeaseBound = max(u.LeaseBound, bound, r.acceptor.LeaseBound())\n",
			new: "",
		}},
		in: []string{"storesvr"},
	},
	{
		line: 20, rule: "lease-bound-to-epoch",
		name: "allocator-wide renew without the epoch check, at a store",
		file: "storesvr/acceptor/lease.go",
		edits: []edit{{
			old: "	reg := a.registers.find(item.Register)\n	durable, onDisk := reg.committed()\n	return onDisk && item.Register.Leased() &&\n		reg.now.Promised == e && durable.Promised == e && a.released[item.Register] != e\n",
			new: "	reg := a.registers.find(item.Register)\n	return reg != nil && item.Register.Leased() && a.released[item.Register] != e\n",
		}},
		in: []string{"storesvr/acceptor"},
	},
	{
		line: 21, rule: "lost-stays-lost",
		name:  "renew brings a released section back, at a store",
		file:  "storesvr/acceptor/lease.go",
		edits: []edit{{old: " && a.released[item.Register] != e\n", new: "\n"}},
		in:    []string{"storesvr/acceptor"},
	},
	{
		line: 22, rule: "lease-outlives-connection",
		name: "release on connection loss",
		file: "storesvr/replica.go",
		edits: []edit{{
			old: "func (r *replica) Renew(ctx context.Context, req quorum.RenewRequest) (quorum.RenewReply, error) {\n",
			new: "func (r *replica) Renew(ctx context.Context, req quorum.RenewRequest) (quorum.RenewReply, error) {\n" +
				"	if ctx.Err() != nil {\n		_, _, err := r.release(quorum.ReleaseRequest{Ref: req.Ref, Session: req.Session, All: true})\n" +
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
			new: "			delete(a.sessions, id)\n			a.sessions[req.Session] = other\n",
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
				"			err = Create(filepath.Dir(path), Identity{Cluster: \"c1\", UUID: \"new\", Name: \"a\", N: 1, R: 1, W: 1, Names: []string{\"a\"}, Mapping: mapping})\n" +
				"		}\n		if err != nil {\n			return nil, err\n		}\n	case err != nil:\n",
		}},
		in: []string{"storesvr"},
	},
	{
		line: 25, rule: "empty-disk-is-silent",
		name:  "empty disk votes: a new store is not asked to be bound",
		file:  "storesvr/replica.go",
		edits: []edit{{old: "	case r.members.Version == 0:\n", new: "	case false:\n"}},
		in:    []string{"storesvr"},
	},
	{
		line: 26, rule: "old-disk-is-silent",
		name:  "rolled-back disk votes",
		file:  "storesvr/replica.go",
		edits: []edit{{old: "	if req.Seen > r.commits && r.distrusted == \"\" {\n", new: "	if false {\n"}},
		in:    []string{"storesvr"},
	},
	{
		line: 26, rule: "old-disk-is-silent",
		name:  "rolled-back disk votes: its older list is looked at first",
		file:  "storesvr/replica.go",
		edits: []edit{{old: "	if req.Seen > r.commits && r.distrusted == \"\" {\n", new: "	if req.Seen > r.commits && r.admit(req.Ref) == nil {\n"}},
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
		file: "storesvr/replica.go",
		edits: []edit{
			{old: "	case cluster != r.identity.Cluster:\n", new: "	case false:\n"},
			{old: "	if own := r.ref(); ref != own {\n", new: "	if own := r.ref(); ref.Era != own.Era {\n"},
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
}
