package main

// authMutants are those of who may do what.
var authMutants = []mutant{
	{rule: "default-deny", name: "a method that the table lacks is for everybody", file: "internal/auth/guard.go", in: []string{"internal/auth"}, edits: []edit{
		{"	case !listed:\n		return fmt.Errorf(", "	case !listed:\n		return nil\n	case !listed:\n		return fmt.Errorf("}}},
	{rule: "role-of-the-caller", name: "any role may call any method", file: "internal/auth/guard.go", in: []string{"internal/auth"}, edits: []edit{
		{"	case !access.May(h.role):\n", "	case h.role == \"\":\n"}}},
	{rule: "grants", name: "the first space of a batch decides", file: "internal/auth/guard.go", in: []string{"internal/auth"}, edits: []edit{
		{"	grants := make([]*Grant, len(demands))\n", "	demands = demands[:min(1, len(demands))]\n	grants := make([]*Grant, len(demands))\n"}}},
	{rule: "grants", name: "a grant holds for all verbs", file: "internal/auth/guard.go", in: []string{"internal/auth"}, edits: []edit{
		{"!g.covers(d.Kind, d.Name) || !slices.Contains(g.Verbs, d.Verb)", "!g.covers(d.Kind, d.Name) || !slices.Contains(g.Verbs, Take) && d.Verb == Take"}}},
	{rule: "force-is-for-operators", name: "a router may force", file: "internal/auth/guard.go", in: []string{"internal/auth"}, edits: []edit{
		{"	case d.Force:\n", "	case d.Force && h.role != Router:\n"}}},
	{rule: "revoked-tokens", name: "a token that was known once stays known", file: "internal/auth/policy.go", in: []string{"internal/auth"}, edits: []edit{
		{"	for id, now := range p.byName {\n", "	for h, one := range before.byToken {\n		p.byToken[h] = one\n	}\n	for id, now := range p.byName {\n"}}},
	{rule: "revoked-tokens", name: "a stream is checked when it opens only", file: "internal/rpc/authorize.go", in: []string{"internal/rpc"}, edits: []edit{
		{"		err := s.by.Check(s.who, s.method, m)\n", "		err := error(nil)\n"}}},
	{rule: "a-token-decides", name: "a certificate mends an unknown token", file: "internal/auth/guard.go", in: []string{"internal/auth"}, edits: []edit{
		{"	case w.Token != \"\":\n", "	case w.Token != \"\" && w.Shown.Identity.Role == \"\":\n"}}},
	{rule: "quota", name: "a new policy gives a fresh burst", file: "internal/auth/policy.go", in: []string{"internal/auth"}, edits: []edit{
		{"				g.quota = old.quota\n", "				_ = old\n"}}},
	{rule: "quota", name: "a call costs one key", file: "internal/auth/quota.go", in: []string{"internal/auth"}, edits: []edit{
		{"	cost := int64(float64(keys) * 1e9 /", "	cost := int64(1e9 /"}}},
	{rule: "role-of-the-server", name: "whoever has a certificate of the CA may be dialled", file: "internal/auth/identity.go", in: []string{"internal/auth", "internal/rpc"}, edits: []edit{
		{"	if !slices.Contains(roles, id.Role) {\n", "	if false {\n"}}},
	{rule: "role-of-the-server", name: "the dialler does not ask for the role", file: "internal/rpc/tls.go", in: []string{"internal/rpc"}, edits: []edit{
		{"	if c.tls.cluster == \"\" || len(c.roles) == 0 {\n", "	if true || len(c.roles) == 0 {\n"}}},
	{rule: "own-cluster", name: "certificates of any cluster", file: "internal/auth/identity.go", in: []string{"internal/auth"}, edits: []edit{
		{"	case id.Cluster != cluster:\n", "	case id.Cluster == \"\":\n"}}},
	{rule: "secret-files", name: "files that the group may read", file: "internal/auth/private.go", in: []string{"internal/auth", "cmd/seqctl/authctl"}, edits: []edit{
		{"mode&0o077 != 0", "mode&0o007 == 7"}}},
}
