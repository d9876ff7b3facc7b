package main

// diskMutants break the rules of an old disk: its store must notice that before it votes.
var diskMutants = []mutant{
	{rule: "old-disk-waits", name: "a store votes after one fellow too few", file: "storesvr/witness.go", in: []string{"storesvr"}, edits: []edit{
		{"heard > n-needed ||", "heard >= n-needed ||"}}},
	{rule: "old-disk-waits", name: "a store votes at once", file: "storesvr/witness.go", in: []string{"storesvr"}, edits: []edit{
		{"	w.done = heard > n-needed ||", "	w.done = true || heard > n-needed ||"}}},
	{rule: "old-disk-waits", name: "a store that has granted no lease waits for nothing", file: "storesvr/witness.go", in: []string{"storesvr"}, edits: []edit{
		{"acceptor.GraceOf(max(meta.Longest, leastWait))", "acceptor.GraceOf(meta.Longest)"}}},
	{rule: "old-disk-waits", name: "an orderly stop forgets the longest lease", file: "storesvr/witness.go", in: []string{"storesvr"}, edits: []edit{
		{"acceptor.GraceOf(max(meta.Longest, leastWait))", "acceptor.GraceOf(max(meta.LeaseBound, leastWait))"}}},
	{rule: "claims-only-when-compared", name: "a store makes claims before it was compared", file: "storesvr/witness.go", in: []string{"storesvr"}, edits: []edit{
		{"	if !w.comparing(now) {\n", "	if true {\n"}}},
	{rule: "claims-only-when-compared", name: "a claim of nothing takes the place of another", file: "quorum/api.go", in: []string{"quorum"}, edits: []edit{
		{"return o.Commits > 0 && (", "return ("}}},
	{rule: "claims-are-sealed", name: "a claim without the seal makes a disk old", file: "storesvr/witness.go", in: []string{"storesvr"}, edits: []edit{
		{"	if c.Store != w.members.self.UUID || !w.sealed(c) {\n", "	if c.Store != w.members.self.UUID {\n"}}},
	{rule: "claims-are-sealed", name: "a claim without the seal counts for a fellow that was heard",
		file: "storesvr/witness.go", in: []string{"storesvr"}, edits: []edit{
			{"		sound := c.Commits == 0 || w.sealed(c)\n", "		sound := true\n"}}},
	{rule: "fellows-asked-after-the-start", name: "what fellows said before the start counts, at the store",
		file: "storesvr/witness.go", in: []string{"storesvr"}, edits: []edit{
			{" && sound && nonce == w.nonce {", " && sound {"}}},
	{rule: "fellows-asked-after-the-start", name: "what fellows said before the start counts, at the session",
		file: "quorum/witness.go", in: []string{"quorum"}, edits: []edit{
			{" || sent.number <= s.ask.after {", " {"}}},
	{rule: "copy-of-one-commit", name: "a copy that lacks one commit looks as new as the disk", file: "storesvr/witness.go", in: []string{"storesvr"}, edits: []edit{
		{"		has = w.before\n", "		has = w.commits()\n"}}},
	{rule: "fellows-remember", name: "what is remembered of fellows is never on disk", file: "storesvr/core.go", in: []string{"storesvr"}, edits: []edit{
		{"		update.Remembered = c.witness.unsavedClaims()\n", ""}}},
	{rule: "fellows-remember", name: "an older claim takes the place of a newer one", file: "storesvr/witness.go", in: []string{"storesvr"}, edits: []edit{
		{"		if was.Less(c) {\n			w.remembered", "		if true {\n			w.remembered"}}},
	{rule: "promises-tell-the-disk", name: "what a promise says of the disk is not passed on", file: "quorum/group.go", in: []string{"quorum"}, edits: []edit{
		{"	if err == nil && v.cfg.OnClaim != nil &&", "	if false && v.cfg.OnClaim != nil &&"}}},
	{rule: "promises-tell-the-disk", name: "what a promise says of the disk is forgotten", file: "quorum/witness.go", in: []string{"quorum"}, edits: []edit{
		{"		if s.uuid == c.Store {\n			s.saw(c)", "		if false {\n			s.saw(c)"}}},
	{rule: "late-word-harmless", name: "a word that comes after the comparison is written down",
		file: "storesvr/witness.go", in: []string{"storesvr"}, edits: []edit{
			{"		if !w.done && c.By", "		if c.By"}}},
	{rule: "unproven-grants-nothing", name: "a store that compares its disk still renews leases", file: "quorum/renew.go", in: []string{"quorum"}, edits: []edit{
		{"	if reply.Nonce != 0 {\n", "	if reply.Nonce != 0 && false {\n"}}},
}
