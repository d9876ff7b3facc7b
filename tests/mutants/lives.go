package main

// callerLifeMutants break the rules of callers that hold to one life of a cluster.
var callerLifeMutants = []mutant{
	{rule: "caller-says-its-life", name: "a server does not look at the life that a call is for", file: "internal/wire/rpc/cluster.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"	return a.life.check(ctx)\n", "	return nil\n"}}},
	{rule: "caller-says-its-life", name: "calls do not say their life", file: "internal/wire/rpc/cluster.go", in: []string{"client"}, edits: []edit{
		{"		t.header[IncarnationHeader] = life.String()\n", ""}}},
	{rule: "all-addresses-before-the-first-call", name: "the first answer decides at the start", file: "internal/sdk/route/life.go", in: []string{"client"}, edits: []edit{
		{"	slices.SortStableFunc(answers", "	answers = answers[:min(1, len(answers))]\n	slices.SortStableFunc(answers"}}},
	{rule: "all-addresses-before-the-first-call", name: "the oldest era is taken at the start", file: "internal/sdk/route/life.go", in: []string{"client"}, edits: []edit{
		{"int64(b.life.Era)-int64(a.life.Era)", "int64(a.life.Era)-int64(b.life.Era)"}}},
	{rule: "two-clusters-are-refused", name: "one of two clusters is taken at the start", file: "internal/sdk/route/life.go", in: []string{"client"}, edits: []edit{
		{"		if err := words[best].life.Check(w.life); errors.Is(err, seq.ErrForeignCluster) {", "		if err := words[best].life.Check(w.life); false {"}}},
	{rule: "two-clusters-are-refused", name: "an address that falls silent no longer counts", file: "internal/sdk/route/life.go", in: []string{"client"}, edits: []edit{
		{"	for _, a := range answers {\n		a.from.word.Store(", "	for _, one := range all.seeds {\n		one.word.Store(nil)\n	}\n	for _, a := range answers {\n		a.from.word.Store("}}},
	{rule: "two-clusters-are-refused", name: "one of two names is taken at the start", file: "internal/sdk/route/life.go", in: []string{"client"}, edits: []edit{
		{"t.cfg.ClusterID == \"\" && w.cluster", "false && w.cluster"}}},
	{rule: "a-restore-is-followed-once", name: "the table of the old era stays", file: "internal/sdk/route/life.go", in: []string{"client"}, edits: []edit{
		{"		s.version.Store(0)\n", ""}}},
	{rule: "a-restore-is-followed-once", name: "streams to the old era go on", file: "internal/sdk/route/life.go", in: []string{"client"}, edits: []edit{
		{"			one.Peer.HangUp()\n", "			_ = one\n"}}},
	{rule: "a-restore-is-followed-once", name: "a server that refuses is not asked which life it is of", file: "internal/sdk/call/retry.go", in: []string{"client"}, edits: []edit{
		{"		from.Doubt()\n", ""}}},
	{rule: "a-restore-is-followed-once", name: "a client goes over to an older era", file: "internal/sdk/route/life.go", in: []string{"client"}, edits: []edit{
		{"	if err := own.Life().Check(life); err != nil {", "	if err := own.Life().Check(life); errors.Is(err, seq.ErrForeignCluster) {"},
		{"	case own.Life().Newer(life):\n", "	case own.Life() != life:\n"}}},
	{rule: "foreign-cluster-ends-calls", name: "calls wait for another life to be gone", file: "internal/sdk/call/retry.go", in: []string{"client"}, edits: []edit{
		{"	if t.asked > 0 && t.asked == t.strange && k.c.table.Strangers() {", "	if false {"}}},
	{rule: "foreign-cluster-ends-calls", name: "an answer of another cluster is a sign of life", file: "internal/sdk/call/probe.go", in: []string{"client"}, edits: []edit{
		{"				err = of.Refuses(", "				_ = of.Refuses("}}},
	{rule: "life-of-a-set", name: "the life in the map is not held to", file: "internal/wire/rpc/sets.go", in: []string{"client"}, edits: []edit{
		{"Addrs: s.GetAddrs(), Incarnation: IncarnationFromProto(s.GetIncarnation())}", "Addrs: s.GetAddrs()}"}}},
	{rule: "router-tells-its-life", name: "a router does not tell the life that it holds to", file: "router/server.go", in: []string{"router"}, edits: []edit{
		{", Incarnation: rpc.IncarnationToProto(root.Incarnation)}", "}"}}},
	{rule: "router-tells-its-life", name: "a router serves calls for another life", file: "router/router.go", in: []string{"router"}, edits: []edit{
		{"Incarnation: r.sdk.Caller().Table().Incarnation, ", ""}}},
	{rule: "router-tells-its-life", name: "a table of the old era is sent for one of the new", file: "router/server.go", in: []string{"router"}, edits: []edit{
		{"t != nil && t.of == routes {", "t != nil && t.of.Version == routes.Version {"}}},
	{rule: "alloc-checks-the-life", name: "an AllocSvr serves calls for another life", file: "allocsvr/allocsvr.go", in: []string{"allocsvr"}, edits: []edit{
		{"ClusterID: p.ClusterID, Incarnation: p.Incarnation, ", "ClusterID: p.ClusterID, "}}},
	{rule: "restore-keeps-the-id", name: "a restore begins another cluster", file: "storesvr/backup/restore.go", in: []string{"storesvr/backup"}, edits: []edit{
		{", Origin: m.origin()}", "}"}}},
	{rule: "restore-keeps-the-id", name: "a restore in place begins another cluster", file: "internal/etcd/etcdstore/era.go", in: []string{"internal/etcd/etcdstore"}, edits: []edit{
		{"	origin := next.incarnation().Cluster\n", "	origin := seq.ClusterID{}\n"}}},
	{rule: "gossip-of-one-cluster", name: "a node of another cluster is a member", file: "membership/delegate.go", in: []string{"membership"}, edits: []edit{
		{"	err := v.meta.Incarnation.Check(meta.Incarnation)\n", "	var err error\n"}}},
	{rule: "gossip-of-one-cluster", name: "nodes of another cluster come by way of others", file: "membership/view.go", in: []string{"membership"}, edits: []edit{
		{"mc.Delegate, mc.Events, mc.Conflict, mc.Alive, mc.Merge = d, d, d, d, d\n", "mc.Delegate, mc.Events, mc.Conflict, mc.Merge = d, d, d, d\n"}}},
	{rule: "gossip-of-one-cluster", name: "the tables of another era count", file: "membership/roster.go", in: []string{"membership"}, edits: []edit{
		{"m.State == StateAlive && own.Check(m.Meta.Incarnation) == nil", "m.State == StateAlive"}}},
	{rule: "a-restore-is-followed-once", name: "the gossip of a later era is not heard", file: "router/gossip.go", in: []string{"router"}, edits: []edit{
		{" || view.LaterEra()", ""}}},
	{rule: "a-restore-is-followed-once", name: "any node of a later era has a table", file: "membership/roster.go", in: []string{"membership"}, edits: []edit{
		{"m.State == StateAlive && m.Meta.Role == RoleAlloc && ", "m.State == StateAlive && "}}},
	{rule: "a-restore-is-followed-once", name: "a question to a dead node asks for no table", file: "internal/sdk/call/conns.go", in: []string{"client"}, edits: []edit{
		{"			of.Poke() // the table may name nodes that are gone\n", "			_ = of\n"}}},
	{rule: "region-by-incarnation", name: "another region of this name is this cluster", file: "allocsvr/globalid/regions/regions.go", in: []string{"allocsvr/globalid"}, edits: []edit{
		{"c.ID == other.ID && !errors.Is(c.Life.Check(other.Life), seq.ErrForeignCluster)", "c.ID == other.ID"}}},
	{rule: "set-add-looks-at-use", name: "a cluster that was called becomes a Set", file: "internal/ops/setadmin/root.go", in: []string{"allocsvr"}, edits: []edit{
		{"		if used > 0 {\n", "		if false {\n"}}},
	{rule: "set-add-looks-at-use", name: "a node that was called joins", file: "allocsvr/api/join.go", in: []string{"allocsvr"}, edits: []edit{
		{"if n := s.used(); n > 0 && ", "if n := s.used(); false && "}}},
	{rule: "life-of-a-set", name: "another cluster takes the place of a Set with sections", file: "sets/map.go", in: []string{"sets"}, edits: []edit{
		{"errors.Is(err, seq.ErrForeignCluster) && slices.Contains(m.In, uint16(i))", "false"}}},
}
