package main

// diskMutants are those of a disk that was put back: how its store finds out before it votes.
var diskMutants = []mutant{
	{
		rule: "old-disk-waits", name: "a store votes after one fellow too few",
		file:  "storesvr/witness.go",
		edits: []edit{{old: "heard > n-needed ||", new: "heard >= n-needed ||"}},
		in:    []string{"storesvr"},
	},
	{
		rule: "old-disk-waits", name: "a store votes at once",
		file:  "storesvr/witness.go",
		edits: []edit{{old: "	w.done = heard > n-needed ||", new: "	w.done = true || heard > n-needed ||"}},
		in:    []string{"storesvr"},
	},
	{
		rule: "old-disk-waits", name: "a store that has granted no lease waits for nothing",
		file:  "storesvr/witness.go",
		edits: []edit{{old: "acceptor.GraceOf(max(meta.Longest, leastWait))", new: "acceptor.GraceOf(meta.Longest)"}},
		in:    []string{"storesvr"},
	},
	{
		rule: "old-disk-waits", name: "an orderly stop forgets the longest lease",
		file:  "storesvr/witness.go",
		edits: []edit{{old: "acceptor.GraceOf(max(meta.Longest, leastWait))", new: "acceptor.GraceOf(max(meta.LeaseBound, leastWait))"}},
		in:    []string{"storesvr"},
	},
	{
		rule: "claims-only-when-compared", name: "a store makes claims before it was compared",
		file:  "storesvr/witness.go",
		edits: []edit{{old: "	if !w.comparing(now) {\n", new: "	if true {\n"}},
		in:    []string{"storesvr"},
	},
	{
		rule: "claims-only-when-compared", name: "a claim of nothing takes the place of another",
		file:  "quorum/api.go",
		edits: []edit{{old: "return o.Commits > 0 && (", new: "return ("}},
		in:    []string{"quorum"},
	},
	{
		rule: "claims-are-sealed", name: "a claim without the seal makes a disk old",
		file:  "storesvr/witness.go",
		edits: []edit{{old: "	if c.Store != w.members.self.UUID || !w.sealed(c) {\n", new: "	if c.Store != w.members.self.UUID {\n"}},
		in:    []string{"storesvr"},
	},
	{
		rule: "claims-are-sealed", name: "a claim without the seal counts for a fellow that was heard",
		file:  "storesvr/witness.go",
		edits: []edit{{old: "		sound := c.Commits == 0 || w.sealed(c)\n", new: "		sound := true\n"}},
		in:    []string{"storesvr"},
	},
	{
		rule: "fellows-asked-after-the-start", name: "what fellows said before the start counts, at the store",
		file:  "storesvr/witness.go",
		edits: []edit{{old: " && sound && nonce == w.nonce {", new: " && sound {"}},
		in:    []string{"storesvr"},
	},
	{
		rule: "fellows-asked-after-the-start", name: "what fellows said before the start counts, at the session",
		file:  "quorum/witness.go",
		edits: []edit{{old: " || sent.number <= s.ask.after[by] {", new: " {"}},
		in:    []string{"quorum"},
	},
	{
		rule: "copy-of-one-commit", name: "a copy that lacks one commit looks as new as the disk",
		file:  "storesvr/witness.go",
		edits: []edit{{old: "		has = w.before\n", new: "		has = w.commits\n"}},
		in:    []string{"storesvr"},
	},
	{
		rule: "fellows-remember", name: "what is remembered of fellows is never on disk",
		file:  "storesvr/core.go",
		edits: []edit{{old: "		update.Remembered = c.witness.unsavedClaims()\n", new: ""}},
		in:    []string{"storesvr"},
	},
	{
		rule: "fellows-remember", name: "an older claim takes the place of a newer one",
		file:  "storesvr/witness.go",
		edits: []edit{{old: " && w.remembered[c.Store].Less(c) {", new: " {"}},
		in:    []string{"storesvr"},
	},
	{
		rule: "promises-tell-the-disk", name: "what a promise says of the disk is not passed on",
		file:  "quorum/group.go",
		edits: []edit{{old: "	if err == nil && v.cfg.OnClaim != nil &&", new: "	if false && v.cfg.OnClaim != nil &&"}},
		in:    []string{"quorum"},
	},
	{
		rule: "promises-tell-the-disk", name: "what a promise says of the disk is forgotten",
		file:  "quorum/witness.go",
		edits: []edit{{old: "		if s.uuid == c.Store && s.seen.Less(c) {", new: "		if false && s.seen.Less(c) {"}},
		in:    []string{"quorum"},
	},
	{
		rule: "late-word-harmless", name: "a word that comes after the comparison is written down",
		file:  "storesvr/witness.go",
		edits: []edit{{old: "		if !w.done && c.By", new: "		if c.By"}},
		in:    []string{"storesvr"},
	},
	{
		rule: "unproven-grants-nothing", name: "a store that compares its disk still renews leases",
		file:  "quorum/renew.go",
		edits: []edit{{old: "	if reply.Nonce != 0 {\n", new: "	if reply.Nonce != 0 && false {\n"}},
		in:    []string{"quorum"},
	},
}
