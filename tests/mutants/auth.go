package main

// authMutants break the rules of roles and their methods.
var authMutants = []mutant{
	{rule: "default-deny", name: "a method that the table lacks is for everybody", file: "internal/wire/auth/guard.go", in: []string{"internal/wire/auth"}, edits: []edit{
		{"	case !listed:\n		return fmt.Errorf(", "	case !listed:\n		return nil\n	case !listed:\n		return fmt.Errorf("}}},
	{rule: "role-of-the-caller", name: "any role may call any method", file: "internal/wire/auth/guard.go", in: []string{"internal/wire/auth"}, edits: []edit{
		{"	case !access.May(h.role):\n", "	case h.role == \"\":\n"}}},
	{rule: "grants", name: "the first space of a batch decides", file: "internal/wire/auth/guard.go", in: []string{"internal/wire/auth"}, edits: []edit{
		{"	grants := make([]*Grant, len(demands))\n", "	demands = demands[:min(1, len(demands))]\n	grants := make([]*Grant, len(demands))\n"}}},
	{rule: "grants", name: "a grant holds for all verbs", file: "internal/wire/auth/guard.go", in: []string{"internal/wire/auth"}, edits: []edit{
		{"!g.covers(d.Kind, d.Name) || !slices.Contains(g.Verbs, d.Verb)", "!g.covers(d.Kind, d.Name) || !slices.Contains(g.Verbs, Take) && d.Verb == Take"}}},
	{rule: "grants", name: "a grant for raises has no bound", file: "internal/wire/auth/guard.go", in: []string{"internal/wire/auth"}, edits: []edit{
		{"			*d.Within = far\n", ""}}},
	{rule: "grants", name: "a grant bounds where a raise ends", file: "allocsvr/section/raise.go", in: []string{"allocsvr"}, edits: []edit{
		{"r.floor > now && r.floor-now > r.reach.Within", "r.floor > now && r.floor > r.reach.Within"}}},
	{rule: "grants", name: "the router forgets how far a raise may go", file: "router/raise.go", in: []string{"tests/secure"}, edits: []edit{
		{"	if r.GetMaxJump() > 0 {\n", "	if false {\n"}}},
	{rule: "refusals-are-counted", name: "every refusal counts as one of a stranger", file: "internal/wire/auth/refusals.go", in: []string{"internal/wire/auth"}, edits: []edit{
		{"		return &r.forbidden\n", "		return &r.unknown\n"}}},
	{rule: "refusals-are-counted", name: "who is refused before there is a call is not counted", file: "internal/wire/auth/guard.go", in: []string{"internal/wire/auth"}, edits: []edit{
		{"		_ = g.verdict(h, \"\", err)\n", ""}}},
	{rule: "changes-are-written-down", name: "only what was done leaves a line", file: "internal/wire/rpc/changes.go", in: []string{"internal/wire/rpc"}, edits: []edit{
		{"	if out, ok := c.turn(one, time.Now()); ok {\n", "	if out, ok := c.turn(one, time.Now()); ok && one.Outcome == \"OK\" {\n"}}},
	{rule: "changes-are-written-down", name: "a level of the log silences changes", file: "internal/wire/rpc/changes.go", in: []string{"internal/wire/rpc"}, edits: []edit{
		{"		_ = c.log.Handler().Handle(context.Background(), r) // not Log: a level does not silence it\n", "		if c.log.Enabled(context.Background(), r.Level) {\n			_ = c.log.Handler().Handle(context.Background(), r)\n		}\n"}}},
	{rule: "changes-are-written-down", name: "what was refused is an event", file: "internal/wire/rpc/changes.go", in: []string{"internal/wire/rpc"}, edits: []edit{
		{"c.done != nil && one.Outcome == \"OK\" && !one.told", "c.done != nil && !one.told"}}},
	{rule: "changes-are-written-down", name: "everybody may say for whom he acts", file: "internal/wire/rpc/changes.go", in: []string{"tests/secure"}, edits: []edit{
		{"	if c.by == nil || one.Role == auth.Router {\n", "	if true {\n"}}},
	{rule: "force-is-for-operators", name: "a router may force", file: "internal/wire/auth/guard.go", in: []string{"internal/wire/auth"}, edits: []edit{
		{"	case d.Force:\n", "	case d.Force && h.role != Router:\n"}}},
	{rule: "revoked-tokens", name: "a token that was known once stays known", file: "internal/wire/auth/policy.go", in: []string{"internal/wire/auth"}, edits: []edit{
		{"	for id, now := range p.byName {\n", "	for h, one := range before.byToken {\n		p.byToken[h] = one\n	}\n	for id, now := range p.byName {\n"}}},
	{rule: "revoked-tokens", name: "a stream is checked when it opens only", file: "internal/wire/gate/authorize.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"		err := s.by.Check(s.who, s.method, m)\n", "		err := error(nil)\n"}}},
	{rule: "a-token-decides", name: "a certificate mends an unknown token", file: "internal/wire/auth/guard.go", in: []string{"internal/wire/auth"}, edits: []edit{
		{"	case w.Token != \"\":\n", "	case w.Token != \"\" && w.Evidence.Identity.Role == \"\":\n"}}},
	{rule: "quota", name: "a new policy gives a fresh burst", file: "internal/wire/auth/policy.go", in: []string{"internal/wire/auth"}, edits: []edit{
		{"				g.quota = old.quota\n", "				_ = old\n"}}},
	{rule: "quota", name: "a call costs one key", file: "internal/wire/auth/quota.go", in: []string{"internal/wire/auth"}, edits: []edit{
		{"	cost := int64(float64(keys) * 1e9 /", "	cost := int64(1e9 /"}}},
	{rule: "role-of-the-server", name: "whoever has a certificate of the CA may be dialled", file: "internal/wire/auth/identity.go", in: []string{"internal/wire/auth", "internal/wire/rpc"}, edits: []edit{
		{"	if !slices.Contains(roles, id.Role) {\n", "	if false {\n"}}},
	{rule: "role-of-the-server", name: "the dialler does not ask for the role", file: "internal/wire/rpc/tls.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"	if c.tls.cluster == \"\" || len(c.roles) == 0 {\n", "	if true || len(c.roles) == 0 {\n"}}},
	{rule: "own-cluster", name: "certificates of any cluster", file: "internal/wire/auth/identity.go", in: []string{"internal/wire/auth"}, edits: []edit{
		{"	case id.Cluster != cluster && (others == nil || !others(id.Cluster)):\n", "	case id.Cluster == \"\":\n"}}},
	{rule: "own-cluster", name: "a guard takes certificates of any cluster", file: "internal/wire/auth/guard.go", in: []string{"internal/wire/auth"}, edits: []edit{
		{"	case !g.takes(p, w.Evidence.Identity.Cluster):\n", "	case w.Evidence.Identity.Cluster == \"\":\n"}}},
	{rule: "own-cluster", name: "whoever one Set trusts is of all", file: "internal/wire/auth/guard.go", in: []string{"internal/wire/auth"}, edits: []edit{
		{"p != nil && slices.Contains(p.Clusters, cluster)", "p != nil && len(p.Clusters) > 0"}}},
	{rule: "nodes-of-other-sets", name: "a node of another Set may do what those here may", file: "internal/wire/auth/guard.go", in: []string{"internal/wire/auth"}, edits: []edit{
		{"	case h.away && h.role != Router && !access.Abroad && !access.Public:\n", "	case h.away && h.role == \"\":\n"}}},
	{rule: "nodes-of-other-sets", name: "a node of another Set speaks for the one of its name", file: "internal/wire/auth/guard.go", in: []string{"internal/wire/auth"}, edits: []edit{
		{"h.id, h.away = h.id+\" of \"+id.Cluster, true", "h.away = true"}}},
	{rule: "nodes-of-other-sets", name: "nodes of other Sets may not read the map", file: "internal/wire/auth/methods.go", in: []string{"internal/wire/auth"}, edits: []edit{
		{"Reader, Operator}, Abroad: true}", "Reader, Operator}}"}}},
	{rule: "nodes-of-other-sets", name: "stores and peers of other Sets are dialled as own ones", file: "internal/wire/rpc/tls.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"t, nil, roles}", "t, t.sets, roles}"}}},
	{rule: "secret-files", name: "files that the group may read", file: "internal/wire/auth/private.go", in: []string{"internal/wire/auth", "cmd/seqctl/authctl"}, edits: []edit{
		{"	if mode&0o037 == 0 && lentByRoot(info) {\n", "	if mode&0o037 == 0 {\n"}}},
	{rule: "secret-files", name: "files that the group may write", file: "internal/wire/auth/private.go", in: []string{"internal/wire/auth", "cmd/seqctl/authctl"}, edits: []edit{
		{"mode&0o037 == 0 &&", "mode&0o017 == 0 &&"}}},
	{rule: "secret-files", name: "root's files that any group may read", file: "internal/wire/auth/private_unix.go", in: []string{"internal/wire/auth"}, edits: []edit{
		{"	return err == nil && slices.Contains(append(groups, os.Getegid()), int(of.Gid))\n", "	return err == nil && (slices.Contains(append(groups, os.Getegid()), int(of.Gid)) || of.Uid == 0)\n"}}},
	{rule: "secret-files", name: "anybody's files that the group may read", file: "internal/wire/auth/private_unix.go", in: []string{"internal/wire/auth"}, edits: []edit{
		{"of.Uid != 0 ||", "of.Uid == 1<<30 ||"}}},
	{rule: "plaintext-ends", name: "the fronts take plaintext beside TLS for ever", file: "internal/wire/rpc/listener.go", in: []string{"internal/wire/rpc"}, edits: []edit{
		{"	case t.plaintext == NoPlaintext:\n", "	case t == nil:\n"}}},
	{rule: "silent-connections", name: "a connection that is silent holds up those behind it", file: "internal/wire/rpc/listener.go", in: []string{"internal/wire/rpc"}, edits: []edit{
		{"			go l.look(conn)\n", "			l.look(conn)\n"}}},
	{rule: "plaintext-is-told", name: "plaintext towards other machines is not told of", file: "internal/wire/rpc/exposed.go", in: []string{"internal/wire/rpc"}, edits: []edit{
		{"		if addr != \"\" && !onLoopback(addr) {\n", "		if addr != \"\" && !onLoopback(addr) && t != nil {\n"}}},
	{rule: "plaintext-is-told", name: "a listener on all addresses is taken for loopback", file: "internal/wire/rpc/exposed.go", in: []string{"internal/wire/rpc"}, edits: []edit{
		{"net.ParseIP(host).IsLoopback())", "net.ParseIP(host).IsLoopback() || net.ParseIP(host).IsUnspecified())"}}},
	{rule: "session-of-its-node", name: "any AllocSvr speaks for any session", file: "internal/wire/auth/speak.go", in: []string{"internal/wire/auth"}, edits: []edit{
		{"h.id == string(Alloc)+\"/\"+node,", "node != \"\","}}},
	{rule: "session-of-its-node", name: "an operator speaks for sessions of nodes", file: "internal/wire/auth/speak.go", in: []string{"internal/wire/auth"}, edits: []edit{
		{"h.role == Operator && node == \"\":", "h.role == Operator:"}}},
	{rule: "session-of-its-node", name: "the guard does not ask whose session it is", file: "internal/wire/auth/guard.go", in: []string{"internal/wire/auth"}, edits: []edit{
		{"		err = h.maySpeakFor(access.Node(message))\n", "		_ = access.Node(message)\n"}}},
	{rule: "session-of-its-node", name: "a session is derived from the seed alone", file: "seq/secret.go", in: []string{"seq"}, edits: []edit{
		{"s.Seed[:]...), s.Node...))", "s.Seed[:]...), \"node\"...))"}}},
	{rule: "session-of-its-node", name: "a session renews under any name", file: "storesvr/replica.go", in: []string{"storesvr"}, edits: []edit{
		{"of != \"\" && of != req.Name {", "of != \"\" && false {"}}},
	{rule: "hand-over-by-its-node", name: "an offer of any AllocSvr is taken", file: "allocsvr/api/peer.go", in: []string{"tests/secure"}, edits: []edit{
		{"			return p.Guard.Speaks(rpc.WhoOf(ctx), method, s.Name)\n", "			_ = rpc.WhoOf\n			return nil\n"}}},
	{rule: "hand-over-by-its-node", name: "an offer from a session that nobody knows is taken", file: "allocsvr/api/peer.go", in: []string{"tests/secure"}, edits: []edit{
		{"	if p.Guard.Mode() != auth.Require {\n", "	if p.Guard != nil {\n"}}},
	{rule: "share-of-the-pool", name: "one who asks gets all that clients may have", file: "allocsvr/globalid/workers/delegate.go", in: []string{"allocsvr/globalid"}, edits: []edit{
		{"		share = 1\n", "		share = maxHeld\n"}}},
	{rule: "share-of-the-pool", name: "calls at the same moment do not count each other", file: "allocsvr/globalid/workers/delegate.go", in: []string{"allocsvr/globalid"}, edits: []edit{
		{"	before = e.asking\n", "	before = 0\n"}, {", s.asking}\n", ", 0}\n"}}},
	{rule: "own-certificate", name: "another's certificate takes the place of the own", file: "internal/wire/rpc/tls.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"	if err == nil && t.own.Role != \"\" {\n", "	if err == nil && t.own.Role == \"none\" {\n"}}},
}
