package main

// quorumMutants are those of a session that counts answers and leases.
var quorumMutants = []mutant{
	{
		line: 4, rule: "distinct-stores",
		name:  "two acks of one store counted as two",
		file:  "quorum/group.go",
		edits: []edit{{old: "		if uuid == a.uuid {\n", new: "		if false && uuid == a.uuid {\n"}},
		in:    []string{"quorum"},
	},
	{
		line: 4, rule: "distinct-stores",
		name: "a store that answers as another is believed",
		file: "quorum/config.go",
		edits: []edit{
			{old: "	case want != \"\" && want != uuid:\n", new: "	case false:\n"},
			{old: "		if j != i && stores[j].UUID == uuid {\n", new: "		if false {\n"},
		},
		in: []string{"quorum"},
	},
	{
		line: 5, rule: "read-quorum",
		name:  "R=1 passes the validation of a session",
		file:  "quorum/config.go",
		edits: []edit{{old: "	case c.R+c.W <= c.N:\n", new: "	case c.R+c.W < c.N:\n"}},
		in:    []string{"quorum"},
	},
	{
		line: 5, rule: "read-quorum",
		name:  "R=1: one store is enough to read",
		file:  "quorum/calls.go",
		edits: []edit{{old: "	if len(answers) < v.cfg.R {\n", new: "	if len(answers) < 1 {\n"}},
		in:    []string{"quorum"},
	},
	{
		line: 6, rule: "write-quorum",
		name:  "W=1: one ack confirms",
		file:  "quorum/batch.go",
		edits: []edit{{old: "	case count[yes] >= b.w:\n", new: "	case count[yes] >= 1:\n"}},
		in:    []string{"quorum"},
	},
	{
		line: 9, rule: "missing-is-not-zero",
		name:  "missing register read as zero by a session",
		file:  "quorum/batch.go",
		edits: []edit{{old: "		if b.absentIsFree && b.register(i).OnDemand() {\n", new: "		if b.absentIsFree {\n"}},
		in:    []string{"quorum"},
	},
	{
		line: 12, rule: "base-of-all-promises",
		name: "base from the first responder",
		file: "quorum/batch.go",
		edits: []edit{{
			old: "	o.Max = max(o.Max, r.Max)\n	if o.Accepted.IsZero() || o.Accepted.Less(r.Accepted) {\n",
			new: "	if o.Acks == 0 {\n		o.Max = r.Max\n	}\n	if o.Accepted.IsZero() || o.Accepted.Less(r.Accepted) {\n",
		}},
		in: []string{"quorum"},
	},
	{
		line: 13, rule: "nack-decides",
		name:  "a NACK outvoted by acks",
		file:  "quorum/batch.go",
		edits: []edit{{old: "	case nack && b.nackDecides:\n", new: "	case nack && false:\n"}},
		in:    []string{"quorum"},
	},
	{
		line: 15, rule: "lease-from-sending",
		name: "lease counted from the ack",
		file: "quorum/lease.go",
		edits: []edit{{
			old: "	sent.at = l.cfg.Clock.Now() // before sending: mutation 15\n	reply, err := s.store.Store.Renew(ctx, req)\n",
			new: "	reply, err := s.store.Store.Renew(ctx, req)\n	sent.at = l.cfg.Clock.Now()\n",
		}},
		in: []string{"quorum"},
	},
	{
		line: 16, rule: "lease-of-w-stores",
		name:  "lease of W-1 stores",
		file:  "quorum/hold.go",
		edits: []edit{{old: "	n, w := len(c.stores), c.w\n", new: "	n, w := len(c.stores), max(1, c.w-1)\n"}},
		in:    []string{"quorum"},
	},
	{
		line: 20, rule: "lease-bound-to-epoch",
		name:  "allocator-wide renew without the epoch check, at its session",
		file:  "quorum/hold.go",
		edits: []edit{{old: "	mask := h.attached.Load() & c.mask\n", new: "	mask := c.mask\n"}},
		in:    []string{"quorum"},
	},
	{
		line: 21, rule: "lost-stays-lost",
		name: "renew brings a lost section back",
		file: "quorum/renew.go",
		edits: []edit{{
			old: "		if _, waiting := s.pending[h]; !waiting || h.over.Load() {\n			continue\n		}\n",
			new: "",
		}},
		in: []string{"quorum"},
	},
	{
		line: 21, rule: "lost-stays-lost",
		name:  "a lost epoch is attached again",
		file:  "quorum/hold.go",
		edits: []edit{{old: "ok && round <= ended ||", new: "ok && round < ended ||"}},
		in:    []string{"quorum"},
	},
	{
		line: 26, rule: "old-disk-is-silent",
		name:  "rolled-back disk votes: nobody tells a store what it had",
		file:  "quorum/renew.go",
		edits: []edit{{old: "		Lease: l.cfg.Lease, Seen: s.commits}\n", new: "		Lease: l.cfg.Lease}\n"}},
		in:    []string{"quorum"},
	},
}
