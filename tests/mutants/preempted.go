package main

// preemptMutants break the rules of sections that are taken over a living lease.
var preemptMutants = []mutant{
	{rule: "preempt-leaseless-alone", name: "a store lets ordinary sections be preempted", file: "storesvr/acceptor/release.go", in: []string{"storesvr/acceptor"}, edits: []edit{
		{"	if !s.Mode.Leaseless() {\n", "	if !s.Mode.Leaseless() && false {\n"}}},
	{rule: "preempt-leaseless-alone", name: "a store lets tags be preempted", file: "storesvr/acceptor/release.go", in: []string{"storesvr/acceptor"}, edits: []edit{
		{"		return fmt.Sprintf(\"preempt of %s, expected a section of a strict or exact space\", r)\n", "		return \"\"\n"}}},
	{rule: "preempt-leaseless-alone", name: "a unique-only space answers without a lease", file: "seq/mapping.go", in: []string{"storesvr/acceptor"}, edits: []edit{
		{"return m == Strict || m == Exact }", "return m != Ordered }"}}},
	{rule: "preempt-leaseless-alone", name: "etcd lets ordinary sections be preempted", file: "internal/etcd/etcdstore/rules.go", in: []string{"internal/etcd/etcdstore"}, edits: []edit{
		{"	if !space.Mode.Leaseless() {\n", "	if !space.Mode.Leaseless() && false {\n"}}},
	{rule: "preempt-owners-of-before", name: "an owner of a build of before is preempted", file: "storesvr/acceptor/release.go", in: []string{"storesvr/acceptor"}, edits: []edit{
		{"(l.over.ofBefore == nil || !l.over.ofBefore(holder))", "(l.over.ofBefore == nil || l.over.ofBefore != nil)"}}},
	{rule: "preempt-owners-of-before", name: "a store does not know what its sessions speak", file: "storesvr/gate.go", in: []string{"storesvr"}, edits: []edit{
		{"	return said && own < version.Preempted\n", "	return said && own < 0\n"}}},
	{rule: "preempt-owners-of-before", name: "an owner that is not known is taken for one of this build", file: "storesvr/acceptor/release.go", in: []string{"storesvr/acceptor"}, edits: []edit{
		{"	return l.sessions[holder] != nil && ", "	return "}}},
	{rule: "preempt-spares-handovers", name: "a preemption takes what is handed to another", file: "storesvr/acceptor/release.go", in: []string{"storesvr/acceptor"}, edits: []edit{
		{"ok && res.to != who && now < res.until {\n", "ok && res.to != who && now < res.until && !preempt {\n"}}},
	{rule: "preempt-durable", name: "the promise of a preemption is in memory only", file: "storesvr/acceptor/ballot.go", in: []string{"storesvr/acceptor"}, edits: []edit{
		{"		st.Promised = e\n		if err := a.set(r, reg, st); err != nil {\n			return quorum.Result{}, err\n		}\n	}\n	res :=",
			"		st.Promised = e\n		if preempt && reg != nil {\n			reg.now = st\n		} else if err := a.set(r, reg, st); err != nil {\n			return quorum.Result{}, err\n		}\n	}\n	res :="}}},
	{rule: "strict-looks", name: "Current of a strict space answers by the lease", file: "allocsvr/section/current.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"			if space.Mode == seq.Strict {\n				read.note(c)\n			}\n", ""}}},
	{rule: "strict-looks", name: "a page of a strict space answers by the lease", file: "allocsvr/section/raisemany.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"		err = t.look(ctx, read)[id]\n", "		_ = t.look(ctx, read)\n"}}},
	{rule: "strict-looks", name: "a raise of a strict space answers by the lease", file: "allocsvr/section/raise.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"		err = t.look(ctx, r.read)[r.c.id]\n", "		_ = t.look(ctx, r.read)\n"}}},
	{rule: "strict-looks", name: "a strict batch looks before it takes", file: "allocsvr/section/take.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"	if t.exact {\n		t.settleLogged(ctx)\n", "	t.confirmEpochs(ctx)\n	if t.exact {\n		t.settleLogged(ctx)\n"},
		{"	t.pending = t.pending[:0]\n	t.confirmEpochs(ctx)\n", "	t.pending = t.pending[:0]\n"}}},
	{rule: "strict-looks", name: "an owner keeps a section that a look found to be another's", file: "allocsvr/section/current.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"			t.lose(t.Section(id), epochs[k], over.Met)\n", "			_ = epochs[k]\n"}}},
	{rule: "preempt-standby", name: "a standby preempts what fewer than W stores would let it have", file: "allocsvr/ownership/acquire.go", in: []string{"allocsvr"}, edits: []edit{
		{"		if out.State != quorum.Won {\n			bids[i].Failed(Looking, out)\n", "		if out.State == quorum.Refused {\n			bids[i].Failed(Looking, out)\n"}}},
	{rule: "preempt-standby", name: "a section is taken from a session that is not silent", file: "allocsvr/owner/preempt.go", in: []string{"allocsvr"}, edits: []edit{
		{"		if s, live := alive[name]; name != o.name && (!live || s.Session == session) {\n", "		if name != o.name {\n			session = alive[name].Session\n"}}},
	{rule: "preempt-standby", name: "a node that came back loses its sections again at once", file: "allocsvr/owner/preempt.go", in: []string{"allocsvr"}, edits: []edit{
		{"last.from == holder && p.now-last.at < p.o.lease {\n", "last.from == holder && p.now < last.at {\n"}}},
	{rule: "preempt-standby", name: "a section is handed back to a silent node", file: "allocsvr/owner/give.go", in: []string{"allocsvr"}, edits: []edit{
		{" && !g.suspects(owner.Name)", ""}}},
	{rule: "silence", name: "one late answer makes a node silent", file: "internal/base/wake/patience.go", in: []string{"allocsvr/nodes"}, edits: []edit{
		{"	return max(p.Least, usuals*p.usual, p.usual+4*p.deviation) << ", "	return p.Least << "}}},
	{rule: "silence", name: "false suspicions give a node no more time", file: "internal/base/wake/patience.go", in: []string{"allocsvr/nodes"}, edits: []edit{
		{"min(len(p.wrong)/mostFalse, 8)", "min(len(p.wrong)/mostFalse, 0)"}}},
	{rule: "silence", name: "a node that starts is silent", file: "allocsvr/nodes/silence.go", in: []string{"allocsvr/nodes"}, edits: []edit{
		{"		if !h.asked || h.answers < known || ", "		if !h.asked || "}}},
	{rule: "sdk-listens", name: "keys of an ordinary space are given up as well", file: "internal/sdk/stream/silence.go", in: []string{"internal/sdk/stream"}, edits: []edit{
		{"leaseless := func(b *batch) bool { return b.leaseless }", "leaseless := func(b *batch) bool { return b != nil }"}}},
	{rule: "sdk-listens", name: "a key that waited at the server makes it slow for good", file: "internal/sdk/stream/silence.go", in: []string{"internal/sdk/stream"}, edits: []edit{
		{"l.patience.Answered(min(took, 3*l.patience.Least))", "l.patience.Answered(took)"}}},
	{rule: "sdk-listens", name: "a word of the server is no word", file: "internal/sdk/stream/silence.go", in: []string{"internal/sdk/stream"}, edits: []edit{
		{"	if l.word.After(since) {\n", "	if since.After(l.word) {\n"}}},
	{rule: "sdk-listens", name: "a server that was never heard is silent", file: "internal/sdk/stream/silence.go", in: []string{"internal/sdk/stream"}, edits: []edit{
		{"	if since.IsZero() || l.word.IsZero() {\n", "	if since.IsZero() {\n"}}},
	{rule: "sdk-listens", name: "the time in which the process stood still counts", file: "internal/sdk/stream/silence.go", in: []string{"internal/sdk/stream"}, edits: []edit{
		{"now.Sub(since)-l.late", "now.Sub(since)"}}},
	{rule: "sdk-listens", name: "a false suspicion gives a server no more time", file: "internal/sdk/stream/silence.go", in: []string{"internal/sdk/stream"}, edits: []edit{
		{"		l.patience.Wrong(now.Sub(l.born))\n", ""}}},
	{rule: "silence", name: "a later ping makes a node younger", file: "allocsvr/nodes/silence.go", in: []string{"allocsvr/nodes"}, edits: []edit{
		{"	if h := s.of(session); !h.asked {\n", "	if h := s.of(session); true {\n"}}},
	{rule: "silence", name: "a node that was late itself suspects others", file: "allocsvr/nodes/silence.go", in: []string{"allocsvr/nodes"}, edits: []edit{
		{"			h.since = min(h.since+late, now)\n", "			h.since = max(h.since, now-late)\n"}}},
	{rule: "silence", name: "a node that runs late gives others no more time", file: "allocsvr/nodes/silence.go", in: []string{"allocsvr/nodes"}, edits: []edit{
		{"h.patience.At(now) + s.own.At(now)", "h.patience.At(now)"}}},
}
