package main

// etcdMutants break the rules of the registers on etcd.
var etcdMutants = []mutant{
	{rule: "etcd-by-revision", name: "a write goes by the epoch alone, whatever was written since", file: "internal/etcd/etcdstore/write.go", in: etcdTests, edits: []edit{
		{"	t := &Txn{If: []Compare{modified(key, it.on.modified)}, ", "	t := &Txn{"}}},
	{rule: "etcd-life-compared", name: "a promise trusts the list of sessions that it has", file: "internal/etcd/etcdstore/write.go", in: etcdTests, edits: []edit{
		{"	if d.guardLife != 0 {\n", "	if d.guardLife != 0 && false {\n"}}},
	{rule: "etcd-items-apart", name: "a batch is counted whole", file: "internal/etcd/etcdstore/write.go", in: etcdTests, edits: []edit{
		{"	if !a.Then {\n		err := w.records.taken(ctx, it.register, ", "	if !a.Then && false {\n		err := w.records.taken(ctx, it.register, "}}},
	{rule: "etcd-meta-compared", name: "writes go on in another era", file: "internal/etcd/etcdstore/cluster.go", in: etcdTests, edits: []edit{
		{"	return modified(c.keys.meta(), c.meta.rev)\n", "	return Compare{Key: c.keys.meta(), Not: true}\n"}}},
	{rule: "etcd-reservation", name: "reservations are ignored", file: "internal/etcd/etcdstore/rules.go", in: etcdTests, edits: []edit{
		{"	if r.reserved != 0 && r.reserved != who {\n", "	if r.reserved != 0 && r.reserved != who && false {\n"}}},
	{rule: "etcd-released-is-over", name: "what shows the epoch is the session's, though it gave it up", file: "internal/etcd/etcdstore/own.go", in: etcdTests, edits: []edit{
		{"	_, giving := o.giving[slot{name, e.Round}]\n	return giving\n", "	return false\n"}}},
	{rule: "etcd-released-is-over", name: "an epoch that was released is taken up again", file: "internal/etcd/etcdstore/rules.go", in: []string{"internal/etcd/etcdstore", "tests/registers"}, edits: []edit{
		{"	if r.released == e {\n		return true\n	}\n", ""}}},
	{rule: "etcd-step-needs-promise", name: "a step is taken as its own promise", file: "internal/etcd/etcdstore/rules.go", in: []string{"tests/registers"}, edits: []edit{
		{"	case e != r.promised:\n		return s.refused", "	case e != r.promised && false:\n		return s.refused"}}},
	{rule: "etcd-late-step-released", name: "a release leaves what no step has reached as it is", file: "internal/etcd/etcdstore/rules.go", in: etcdTests, edits: []edit{
		{"	d.write = d.next != r.register\n	return d\n", "	d.write = d.next != r.register && r.life != 0\n	return d\n"}}},
	{rule: "etcd-orphans", name: "what was stepped and not attached is kept for ever", file: "internal/etcd/etcdstore/own.go", in: etcdTests, edits: []edit{
		{"now-w.at > o.lease+quorum.DefaultTimeout {\n", "now-w.at > o.lease+quorum.DefaultTimeout && false {\n"}}},
	{rule: "etcd-orphans", name: "what is attached is taken for an orphan", file: "internal/etcd/etcdstore/own.go", in: etcdTests, edits: []edit{
		{"		if round, held := o.attached[r]; held && round == w.round {\n", "		if round, held := o.attached[r]; held && round != w.round {\n"},
		{"!it.Register.Leased() || held && round == it.Round {", "!it.Register.Leased() || held && round != it.Round {"}}},
	{rule: "etcd-releases-repeated", name: "a release that was not answered is forgotten", file: "internal/etcd/etcdstore/renew.go", in: etcdTests, edits: []edit{
		{"		if b.items[i].done {\n", "		if b.items[i].done || true {\n"}}},
	{rule: "etcd-timer-from-receipt", name: "the wait for a session begins with the sending", file: "internal/etcd/etcdstore/watch.go", in: etcdTests, edits: []edit{
		{"		b.last = now\n		if old == nil || old.beat != b.beat {\n", "		b.last = now\n		if old == nil || old.beat != b.beat {\n			b.quiet = b.most()\n"}}},
	{rule: "etcd-outage", name: "one answer counts for all the time since the last", file: "internal/etcd/etcdstore/watch.go", in: etcdTests, edits: []edit{
		{"min(now-b.last, b.most())", "now - b.last"}}},
	{rule: "etcd-own-writes-count", name: "reads prove that a session is silent", file: "internal/etcd/etcdstore/records.go", in: etcdTests, edits: []edit{
		{"s.watch.observe(results[0].KVs, a.Revision, false)", "s.watch.observe(results[0].KVs, a.Revision, true)"}}},
	{rule: "etcd-beat-defeats", name: "a session is ended though it has beaten since", file: "internal/etcd/etcdstore/watch.go", in: etcdTests, edits: []edit{
		{"If: []Compare{w.cluster.unmoved(), modified(key, silent[i].beat)}, ", "If: []Compare{w.cluster.unmoved()}, "}}},
	{rule: "etcd-clocks-drift", name: "a session is ended after its lease by a clock that may be fast", file: "internal/etcd/etcdstore/watch.go", in: etcdTests, edits: []edit{
		{"{ return b.Lease + time.Duration(2*quorum.Rho*float64(b.Lease)) }", "{ return b.Lease - time.Duration(2*quorum.Rho*float64(b.Lease)) }"}}},
	{rule: "etcd-ended-written", name: "a session that has ended leaves no mark", file: "internal/etcd/etcdstore/beat.go", in: etcdTests, edits: []edit{
		{"Then: []Op{remove(keys.session(who)), put(ended, encode(ended, ending{}))}})", "Then: []Op{remove(keys.session(who)), put(keys.watch(), encode(ended, ending{}))}})"}}},
	{rule: "etcd-ended-written", name: "the mark of an ended session is not looked at by who makes its key", file: "internal/etcd/etcdstore/beat.go", in: etcdTests, edits: []edit{
		{"If: []Compare{b.cluster.unmoved(), absent(me), absent(ended)}", "If: []Compare{b.cluster.unmoved(), absent(me)}"}}},
	{rule: "etcd-attach-under-its-life", name: "a register is attached under another life of the session", file: "internal/etcd/etcdstore/renew.go", in: etcdTests, edits: []edit{
		{"			if now != life {\n", "			if now != life && false {\n"}}},
	{rule: "etcd-sweep", name: "a session is made by a message from before a sweep", file: "internal/etcd/etcdstore/beat.go", in: etcdTests, edits: []edit{
		{", modified(keys.swept(), revisionIn(a.Results[5])))", ")"}}},
	{rule: "etcd-sweep", name: "marks are removed while what they keep out is under way", file: "internal/etcd/etcdstore/sweep.go", in: etcdTests, edits: []edit{
		{"[]Op{put(keys.swept(), seal(keys.swept(), nil))}", "[]Op{put(keys.watch(), seal(keys.watch(), nil))}"}}},
	{rule: "etcd-sweep", name: "a mark is removed though it was written again", file: "internal/etcd/etcdstore/sweep.go", in: etcdTests, edits: []edit{
		{"&Txn{If: []Compare{modified(kv.Key, kv.Modified)}, ", "&Txn{"}}},
	{rule: "etcd-sweep", name: "the name of a live session is removed", file: "internal/etcd/etcdstore/sweep.go", in: etcdTests, edits: []edit{
		{"		if !lives[of.Session] {\n", "		if !lives[of.Session] || true {\n"}}},
	{rule: "etcd-sweep", name: "what was left is kept for ever", file: "internal/etcd/etcdstore/renew.go", in: etcdTests, edits: []edit{
		{"	if beat.made {\n", "	if beat.made && false {\n"}}},
	{rule: "etcd-over", name: "a process makes the session again whose end it asked for", file: "internal/etcd/etcdstore/beat.go", in: etcdTests, edits: []edit{
		{"	if b.own.over(req.Session) {\n", "	if b.own.over(req.Session) && false {\n"}}},
	{rule: "etcd-name-free", name: "a node goes on beside the former session of its name", file: "internal/etcd/etcdstore/beat.go", in: etcdTests, edits: []edit{
		{"	if before.Session != 0 && before.Session != req.Session {\n", "	if before.Session != 0 && before.Session != req.Session && false {\n"}}},
	{rule: "etcd-beat-under-its-life", name: "a beat counts under whatever life the key has", file: "internal/etcd/etcdstore/own.go", in: etcdTests, edits: []edit{
		{"	if o.heldLife == life {\n		return\n", "	if o.heldLife == life || o.heldLife != 0 {\n		return\n"}}},
	{rule: "etcd-reset-owed", name: "a reset is forgotten with the reply that failed", file: "internal/etcd/etcdstore/own.go", in: etcdTests, edits: []edit{
		{"	reset := diverged || o.owed\n", "	reset := diverged\n"},
		{"	o.released = 0\n	clear(o.attached)\n", "	clear(o.attached)\n"}}},
	{rule: "etcd-restored", name: "a revision below what was seen is taken", file: "internal/etcd/etcdstore/cluster.go", in: etcdTests, edits: []edit{
		{"	case a.Revision < floor:\n", "	case false:\n"}}},
	{rule: "etcd-restored", name: "another etcd cluster is taken for the same", file: "internal/etcd/etcdstore/cluster.go", in: etcdTests, edits: []edit{
		{"	case a.Cluster != etcd:\n", "	case false:\n"},
		{"	case m.Etcd != etcd:\n", "	case false:\n"},
		{"	case a.Revision < floor:\n", "	case a.Revision < floor && a.Cluster == etcd:\n"}}},
	{rule: "etcd-restored", name: "a register that has lost what was confirmed is taken", file: "internal/etcd/etcdstore/records.go", in: etcdTests, edits: []edit{
		{"had && why != \"\" {\n", "had && why != \"\" && false {\n"}}},
	{rule: "etcd-restored", name: "other processes are not told that etcd was put back", file: "internal/etcd/etcdstore/cluster.go", in: etcdTests, edits: []edit{
		{"		there.Poison = why\n", "		there.Poison = \"\"\n"}}},
	{rule: "etcd-new-era", name: "ceilings are not raised", file: "cmd/seqctl/storectl/etcd.go", in: []string{"cmd/seqctl/storectl"}, edits: []edit{
		{"		b.States = append(b.States, st.Of(name))\n	}\n", "		_, _ = name, st\n	}\n	b.States = slices.Clone(states)\n"}}},
	{rule: "etcd-new-era", name: "the era is not raised", file: "internal/etcd/etcdstore/era.go", in: etcdTests, edits: []edit{
		{"	next.Era, next.Etcd, next.Making, next.Poison = o.Era, before.etcd, true, \"\"\n", "	next.Etcd, next.Making, next.Poison = before.etcd, true, \"\"\n"},
		{"now.at.UUID != before.UUID || now.at.Era != o.Era || !now.at.Making", "now.at.UUID != before.UUID || !now.at.Making"}}},
	{rule: "etcd-new-era", name: "what is written until the era before ends is not raised", file: "internal/etcd/etcdstore/era.go", in: etcdTests, edits: []edit{
		{"	if b, err = raise(now); err != nil {\n", "	if _, err = raise(now); err != nil {\n"}}},
	{rule: "etcd-new-era", name: "a new era is open before all is raised", file: "internal/etcd/etcdstore/era.go", in: etcdTests, edits: []edit{
		{"= o.Era, before.etcd, true, \"\"\n", "= o.Era, before.etcd, false, \"\"\n"},
		{"now.at.Era != o.Era || !now.at.Making", "now.at.Era != o.Era"}}},
	{rule: "etcd-new-era", name: "an interrupted restore forgets which era registers are of", file: "internal/etcd/etcdstore/era.go", in: etcdTests, edits: []edit{
		{"	next.Before = &before.OldestOf\n", "	next.Before = &before.Era\n"}}},
	{rule: "etcd-new-era", name: "leases of the era before are not waited for", file: "internal/etcd/etcdstore/era.go", in: etcdTests, edits: []edit{
		{"	if left := over - time.Since(stopped); left > 0 {\n", "	if left := over - time.Since(stopped); left > over {\n"}}},
	{rule: "etcd-new-era", name: "sessions of the era before keep their names", file: "internal/etcd/etcdstore/era.go", in: etcdTests, edits: []edit{
		{"	return o.finish(ctx, kv, k, now.at, now.Sessions, b, stopped)\n", "	return o.finish(ctx, kv, k, now.at, nil, b, stopped)\n"}}},
	{rule: "etcd-split", name: "a transaction has as many items as etcd has operations", file: "internal/etcd/etcdstore/kv.go", in: etcdTests, edits: []edit{
		{"	maxItems = MaxOps - 2\n", "	maxItems = MaxOps\n"}}},
	{rule: "etcd-split", name: "a transaction has as many bytes as there are", file: "internal/etcd/etcdstore/kv.go", in: etcdTests, edits: []edit{
		{"	maxBytes = 1_400_000\n", "	maxBytes = 14_000_000\n"}}},
	{rule: "etcd-token", name: "a token that is refused is not replaced", file: "internal/etcd/etcdclient/client.go", in: []string{"internal/etcd/etcdclient"}, edits: []edit{
		{"		refused = token\n", "		return err\n"}}},
	{rule: "etcd-token", name: "each caller logs in by itself", file: "internal/etcd/etcdclient/client.go", in: []string{"internal/etcd/etcdclient"}, edits: []edit{
		{"	if l == nil {\n", "	if l == nil || true {\n"}}},
	{rule: "etcd-values-sealed", name: "a value's checksum is not looked at", file: "internal/etcd/etcdstore/values.go", in: etcdTests, edits: []edit{
		{"	if n < 0 || binary", "	if n < 0 || false && binary"}}},
}

// etcdTests are the packages that are run for most of them.
var etcdTests = []string{"internal/etcd/etcdstore"}
