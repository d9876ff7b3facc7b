package main

// frontMutants break the rules of callers without a quorum, and of nodes that leave.
var frontMutants = []mutant{
	{rule: "outage-is-of-all", name: "one AllocSvr with a quorum does not count", file: "internal/sdk/call/outage.go", in: []string{"client"}, edits: []edit{
		{"		case nil:\n			return nil, len(all)\n", "		case nil:\n"}}},
	{rule: "outage-is-of-all", name: "a call ends though others have a quorum", file: "internal/sdk/call/retry.go", in: []string{"client"}, edits: []edit{
		{"	case in.Care.Reason() != nil:\n", "	case true:\n"}}},
	{rule: "outage-is-found", name: "an AllocSvr that cannot be reached has a say", file: "internal/sdk/call/outage.go", in: []string{"client"}, edits: []edit{
		{"		return errSilent\n", "		return nil\n"}}},
	{rule: "outage-is-found", name: "a fallback waits for its patience though the quorum is lost",
		file: "client/fallback/fallback.go", in: []string{"client"}, edits: []edit{
			{" || errors.Is(err, seq.ErrNoQuorum)\n", "\n"}}},
	{rule: "refusals-are-sorted", name: "a refusal by policy is waited for", file: "internal/sdk/call/errors.go", in: []string{"client"}, edits: []edit{
		{"seq.ErrTimeExhausted, seq.ErrTickUsedUp, ", "seq.ErrTimeExhausted, "}}},
	{rule: "refusals-are-sorted", name: "a node that is unfit is asked again and again", file: "internal/sdk/call/errors.go", in: []string{"client"}, edits: []edit{
		{"{seq.ErrDatacenterTaken, seq.ErrNodeUnfit, ", "{seq.ErrDatacenterTaken, "}}},
	{rule: "refusals-are-sorted", name: "a node takes part though its numbers do not fit",
		file: "allocsvr/globalid/namespaces/node.go", in: []string{"allocsvr/globalid"}, edits: []edit{
			{"	if l.HasDatacenter() && n.Datacenter.ID > l.MaxDatacenter() {\n", "	if false {\n"}}},
	{rule: "leaving-tells-who-follows", name: "a node that has left says NO_QUORUM in place of who has its sections",
		file: "allocsvr/alloc.go", in: []string{"allocsvr"}, edits: []edit{
			{"	if g.owner.Leaving() {\n		return nil\n", "	if false {\n		return nil\n"}}},
	{rule: "members-found-again", name: "an AllocSvr that starts ends where the members change meanwhile",
		file: "allocsvr/connect.go", in: []string{"tests/integration"}, edits: []edit{
			{"if !again && fatal(err) ||", "if _ = again; fatal(err) ||"}}},
	{rule: "listener-outlives-the-start", name: "the listener ends with the server that answers at the start",
		file: "allocsvr/starting.go", in: []string{"allocsvr"}, edits: []edit{
			{"		return d.SetDeadline(time.Unix(1, 0))\n", "		_ = d\n		return b.Listener.Close()\n"}}},
	{rule: "leaving-is-given-nothing", name: "a node leaves without a word in the table",
		file: "allocsvr/owner/owner.go", in: []string{"allocsvr/owner", "allocsvr"}, edits: []edit{
			{"	g.tellLeaving(ctx)\n", ""}}},
	{rule: "leaving-is-given-nothing", name: "the mark of a node that leaves is not looked at",
		file: "seq/routes.go", in: []string{"allocsvr/arbiter/placement", "allocsvr"}, edits: []edit{
			{"{ return !n.Drained && n.Leaving != s }", "{ return !n.Drained }"}}},
	{rule: "spells-are-of-sessions", name: "a node that came back is as old as the session before",
		file: "allocsvr/arbiter/arbiter.go", in: []string{"allocsvr/arbiter"}, edits: []edit{
			{"		if !ok || old.session != s.Session {\n", "		if !ok {\n"}}},
	{rule: "spells-are-of-sessions", name: "a new session has the age of the one before until it is looked at",
		file: "allocsvr/arbiter/arbiter.go", in: []string{"allocsvr/arbiter"}, edits: []edit{
			{"; ok && spell.session == s {", "; ok {"}}},
	{rule: "late-successor-takes", name: "a successor that is late is given up at once",
		file: "allocsvr/owner/give.go", in: []string{"allocsvr/owner", "allocsvr"}, edits: []edit{
			{"	owned, err := g.letTake(life, to, taken)\n", "	owned, err := g.peers.Take(ctx, to.Addr, to.Session, taken)\n"}}},
	{rule: "late-successor-takes", name: "a successor that was drained meanwhile is given up at once",
		file: "allocsvr/owner/give.go", in: []string{"allocsvr/owner", "allocsvr"}, edits: []edit{
			{"!g.routes.Table().Leaves(to.Name", "g.routes.Table().Gives(to.Name"}}},
	{rule: "moving-is-owned", name: "sections on their way count as without an owner",
		file: "allocsvr/api/admin.go", in: []string{"allocsvr/api", "allocsvr"}, edits: []edit{
			{"				o.moving++\n", "				o.unowned++\n"}}},
	{rule: "drain-waits-for-moves", name: "a drain ends while sections are on their way",
		file: "cmd/seqctl/ctl/await.go", in: []string{"cmd/seqctl/ctl"}, edits: []edit{
			{"	case moving > 0:\n", "	case moving > 0 && false:\n"}}},
	{rule: "fronts-open-together", name: "a front that cannot listen leaves the others open", file: "router/fronts.go", in: []string{"router"}, edits: []edit{
		{"			r.unlisten()\n", ""}}},
	{rule: "replies-keep-their-order", name: "a connection is read while its commands are answered", file: "router/line/loop_linux.go", in: []string{"router/line"}, edits: []edit{
		{"	if c.state.Or(news)&busy != 0 {\n", "	if c.state.Or(news); false {\n"}}},
	{rule: "replies-not-taken-stop-reading", name: "a connection that takes no replies is read", file: "router/line/loop_linux.go", in: []string{"router/line"}, edits: []edit{
		{"	if len(c.out) > 0 || c.fault != nil ||", "	if c.fault != nil ||"}}},
	{rule: "half-commands-end", name: "each byte prolongs a command that does not end", file: "router/line/loop_linux.go", in: []string{"router/line"}, edits: []edit{
		{"		if !open {\n", "		if open {\n"}}},
	{rule: "ids-fit-javascript", name: "a snowflake ID is an integer reply", file: "router/line/resp/dialect.go", in: []string{"router/line/resp"}, edits: []edit{
		{"	case o.Kind == line.TakeID:\n", "	case false:\n"}}},
	{rule: "transactions-are-whole", name: "EXEC carries out what is left of a broken transaction", file: "router/line/resp/transaction.go", in: []string{"router/line/resp"}, edits: []edit{
		{"	if tx.broken {\n", "	if false {\n"}}},
	{rule: "transactions-are-whole", name: "EXEC takes though a command of it is not allowed", file: "router/line/resp/transaction.go", in: []string{"router/line/resp"}, edits: []edit{
		{"; tx.ops[i].Err != nil {\n", "; false {\n"}}},
	{rule: "orders-are-done-once", name: "keys that wait at the server fail with the others", file: "internal/sdk/stream/order.go", in: []string{"internal/sdk/stream"}, edits: []edit{
		{"			if s.Open() {\n", "			if false {\n"}}},
}
