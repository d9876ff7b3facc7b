package main

// frontMutants are those of callers without a quorum, and of nodes that leave.
var frontMutants = []mutant{
	{
		rule: "outage-is-of-all", name: "one AllocSvr with a quorum does not count",
		file:  "client/outage.go",
		edits: []edit{{old: "		case nil:\n			return false\n", new: "		case nil:\n"}},
		in:    []string{"client"},
	},
	{
		rule: "outage-is-of-all", name: "a call ends though others have a quorum",
		file:  "client/retry.go",
		edits: []edit{{old: "	case t.quorum != nil && k.c.outage.reason() != nil:\n", new: "	case t.quorum != nil:\n"}},
		in:    []string{"client"},
	},
	{
		rule: "outage-is-found", name: "an AllocSvr that cannot be reached has a say",
		file:  "client/outage.go",
		edits: []edit{{old: "		return errSilent\n", new: "		return nil\n"}},
		in:    []string{"client"},
	},
	{
		rule: "outage-is-found", name: "a fallback waits for its patience though the quorum is lost",
		file:  "client/fallback/fallback.go",
		edits: []edit{{old: " || errors.Is(err, seq.ErrNoQuorum)\n", new: "\n"}},
		in:    []string{"client"},
	},
	{
		rule: "refusals-are-sorted", name: "a refusal by policy is waited for",
		file:  "client/errors.go",
		edits: []edit{{old: "seq.ErrTimeExhausted, seq.ErrTickUsedUp, ", new: "seq.ErrTimeExhausted, "}},
		in:    []string{"client"},
	},
	{
		rule: "refusals-are-sorted", name: "a node that is unfit is asked again and again",
		file:  "client/errors.go",
		edits: []edit{{old: "{seq.ErrDatacenterTaken, seq.ErrNodeUnfit}", new: "{seq.ErrDatacenterTaken}"}},
		in:    []string{"client"},
	},
	{
		rule: "refusals-are-sorted", name: "a node takes part though its numbers do not fit",
		file:  "allocsvr/globalid/namespaces/node.go",
		edits: []edit{{old: "	if l.HasDatacenter() && n.Datacenter.ID > l.MaxDatacenter() {\n", new: "	if false {\n"}},
		in:    []string{"allocsvr/globalid"},
	},
	{
		rule: "leaving-tells-who-follows", name: "a node that has left says NO_QUORUM in place of who has its sections",
		file:  "allocsvr/alloc.go",
		edits: []edit{{old: "	if g.owner.Leaving() {\n		return nil\n", new: "	if false {\n		return nil\n"}},
		in:    []string{"allocsvr"},
	},
	{
		rule: "listener-outlives-the-start", name: "the listener ends with the server that answers at the start",
		file:  "allocsvr/starting.go",
		edits: []edit{{old: "		return d.SetDeadline(time.Unix(1, 0))\n", new: "		_ = d\n		return b.Listener.Close()\n"}},
		in:    []string{"allocsvr"},
	},
	{
		rule: "leaving-is-given-nothing", name: "a node leaves without a word in the table",
		file:  "allocsvr/owner/owner.go",
		edits: []edit{{old: "	g.tellLeaving(ctx)\n", new: ""}},
		in:    []string{"allocsvr/owner", "allocsvr"},
	},
	{
		rule: "leaving-is-given-nothing", name: "the mark of a node that leaves is not looked at",
		file:  "seq/routes.go",
		edits: []edit{{old: "{ return !n.Drained && n.Leaving != s }", new: "{ return !n.Drained }"}},
		in:    []string{"allocsvr/arbiter/placement", "allocsvr"},
	},
	{
		rule: "spells-are-of-sessions", name: "a node that came back is as old as the session before",
		file:  "allocsvr/arbiter/arbiter.go",
		edits: []edit{{old: "		if !ok || old.session != s.Session {\n", new: "		if !ok {\n"}},
		in:    []string{"allocsvr/arbiter"},
	},
	{
		rule: "spells-are-of-sessions", name: "a new session has the age of the one before until it is looked at",
		file:  "allocsvr/arbiter/arbiter.go",
		edits: []edit{{old: "; ok && spell.session == s {", new: "; ok {"}},
		in:    []string{"allocsvr/arbiter"},
	},
	{
		rule: "late-successor-takes", name: "a successor that is late is given up at once",
		file:  "allocsvr/owner/give.go",
		edits: []edit{{old: "	owned, err := g.letTake(life, to, taken)\n", new: "	owned, err := g.peers.Take(ctx, to.Addr, to.Session, taken)\n"}},
		in:    []string{"allocsvr/owner", "allocsvr"},
	},
	{
		rule: "late-successor-takes", name: "a successor that was drained meanwhile is given up at once",
		file:  "allocsvr/owner/give.go",
		edits: []edit{{old: "!g.routes.Table().Leaves(to.Name", new: "g.routes.Table().Gives(to.Name"}},
		in:    []string{"allocsvr/owner", "allocsvr"},
	},
	{
		rule: "moving-is-owned", name: "sections on their way count as without an owner",
		file:  "allocsvr/api/admin.go",
		edits: []edit{{old: "				o.moving++\n", new: "				o.unowned++\n"}},
		in:    []string{"allocsvr/api", "allocsvr"},
	},
	{
		rule: "drain-waits-for-moves", name: "a drain ends while sections are on their way",
		file:  "cmd/seqctl/ctl/drain.go",
		edits: []edit{{old: "	case moving > 0:\n", new: "	case moving > 0 && false:\n"}},
		in:    []string{"cmd/seqctl/ctl"},
	},
}
