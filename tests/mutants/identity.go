package main

// identityMutants break the identity of a cluster and of its stores: how stores are bound to each
// other, and that an address is no identity.
var identityMutants = []mutant{
	{rule: "binding-in-two-steps", name: "a store votes when it is bound", file: "storesvr/members.go", in: []string{"storesvr"}, sim: true, edits: []edit{
		{"	case m.Pending:\n		return false, \"bound: waiting to hear that all its fellow members are\"\n", ""}}},
	{rule: "binding-in-two-steps", name: "complete is told before all are bound", file: "internal/wire/storeclient/bind.go", in: []string{"storesvr"}, sim: true, edits: []edit{
		{"s.binding(members, originOf(there))); s.err != nil {\n			return\n		}\n", "s.binding(members, originOf(there))); s.err != nil {\n			break\n		}\n"}}},
	{rule: "binding-in-two-steps", name: "binding goes on after a store that does not say yes", file: "internal/wire/storeclient/bind.go", in: []string{"storesvr"}, sim: true, edits: []edit{
		{"s.binding(members, originOf(there))); s.err != nil {\n			return\n		}\n	}\n", "s.binding(members, originOf(there))); s.err != nil {\n			continue\n		}\n	}\n	if len(answered(there)) < len(there) {\n		return\n	}\n"}}},
	{rule: "binding-in-two-steps", name: "stores are bound in the order of the configuration", file: "internal/wire/storeclient/bind.go", in: []string{"storesvr"}, sim: true, edits: []edit{
		{"return cmp.Compare(a.id.UUID, b.id.UUID) })\n	var", "return 0 })\n	var"}}},
	{rule: "binding-in-two-steps", name: "a store that is not bound takes complete for a bind", file: "storesvr/members.go", in: []string{"internal/wire/storeclient"}, edits: []edit{
		{"	case own.Version == 0 && step == pb.BindStep_BIND_STEP_COMPLETE:\n", "	case false:\n"}}},
	{rule: "binding-in-two-steps", name: "a follower does not tell a pending store that its list is complete", file: "internal/wire/storeclient/follow.go", in: []string{"internal/wire/storeclient"}, edits: []edit{
		{"	bind(ctx, asked)\n", ""}}},
	{rule: "incarnation-is-kept", name: "a store forgets its incarnation with the first list", file: "storesvr/change.go", in: []string{"storesvr"}, edits: []edit{
		{"				u.Incarnation = known\n", ""}}},
	{rule: "incarnation-is-kept", name: "a store takes the list of another binding over", file: "storesvr/change.go", in: []string{"storesvr"}, edits: []edit{
		{"				err = c.members.life.Check(life)\n", ""}}},
	{rule: "incarnation-is-kept", name: "two bindings of one era pass for one", file: "seq/incarnation.go", in: []string{"seq"}, edits: []edit{
		{"	case own.Binding != other.Binding && ", "	case false && "}}},
	{rule: "address-is-no-identity", name: "the first store decides who belongs to the cluster", file: "internal/wire/storeclient/sift.go", in: []string{"internal/wire/storeclient"}, edits: []edit{
		{"		if other.better(best) {\n", "		if false {\n"}}},
	{rule: "address-is-no-identity", name: "two clusters with enough stores each: one is chosen", file: "internal/wire/storeclient/sift.go", in: []string{"internal/wire/storeclient"}, edits: []edit{
		{"		if other.rank > 0 && ", "		if false && "}}},
	{rule: "address-is-no-identity", name: "a cluster of one store counts like the one that was meant", file: "internal/wire/storeclient/sift.go", in: []string{"internal/wire/storeclient"}, edits: []edit{
		{"	case list.Version == 1 && list.N() < addrs:\n		out.rank = 1\n", ""}}},
	{rule: "address-is-no-identity", name: "an odd store has its vote counted", file: "internal/wire/storeclient/connect.go", in: []string{"internal/wire/storeclient"}, edits: []edit{
		{"return s.err != nil || s.odd != nil })\n", "return s.err != nil })\n"}}},
	{rule: "address-is-no-identity", name: "clients stay at their addresses when stores exchange theirs", file: "internal/wire/storeclient/match.go", in: []string{"internal/wire/storeclient"}, edits: []edit{
		{"		func(i, _ int, a *answer) bool { return a.err == nil && a.id.UUID == asked[i].client.UUID() },\n", ""}}},
	{rule: "address-is-no-identity", name: "the client of a missing member takes any store", file: "internal/wire/storeclient/match.go", in: []string{"internal/wire/storeclient"}, edits: []edit{
		{"		s.client.uuid.Store(&m.UUID)\n		c.Stores", "		c.Stores"}}},
	{rule: "one-uuid-one-process", name: "a store does not mind another process of its start", file: "storesvr/witness.go", in: []string{"storesvr"}, sim: true, edits: []edit{
		{"own.Twin(c) && c.StartSeal", "own.Twin(own) && c.StartSeal"}}},
	{rule: "one-uuid-one-process", name: "a store believes in another process without its seal", file: "storesvr/witness.go", in: []string{"storesvr"}, edits: []edit{
		{" && c.StartSeal == startSealOf(w.key, c) {\n", " {\n"}}},
	{rule: "one-uuid-one-process", name: "a fellow store keeps the newest claim alone", file: "storesvr/witness.go", in: []string{"storesvr"}, edits: []edit{
		{"			if other, there := w.others[m.UUID]; there {\n", "			if other, there := w.others[m.UUID]; there && false {\n"}}},
	{rule: "one-uuid-one-process", name: "a session keeps to itself what fellow stores say of a store that votes", file: "quorum/witness.go", in: []string{"storesvr"}, sim: true, edits: []edit{
		{"	for _, claims := range s.rumours {\n		out = append(out, claims...)\n	}\n", ""}}},
	{rule: "one-uuid-one-process", name: "what was said before the start counts as asked for", file: "quorum/witness.go", in: []string{"quorum"}, edits: []edit{
		{"	if s.ask.nonce != 0 { // what was said before is no answer to that\n		return out\n	}\n", ""},
		{"			c.By = \"\" // the store has not asked for it\n", "			c.By = by\n"},
		{"|| heard && c.Boot < s.seen.Boot) {", "|| (heard || true) && c.Boot < s.seen.Boot) {"}}},
	{rule: "one-uuid-one-process", name: "a connecting process goes by one of two", file: "internal/wire/storeclient/sift.go", in: []string{"internal/wire/storeclient"}, edits: []edit{
		{"			other.odd = alive(other, s)\n", ""}}},
	{rule: "address-is-no-identity", name: "a member that is away and never answered has no client", file: "internal/wire/storeclient/match.go", in: []string{"internal/wire/storeclient"}, edits: []edit{
		{"(uuid == m.UUID || uuid == \"\" && m.Addr == s.client.Addr())", "uuid == m.UUID"}}},
	{rule: "incarnation-is-kept", name: "a learner is made of the stores of two clusters", file: "cmd/storesvr/learner.go", in: []string{"cmd/storesvr"}, edits: []edit{
		{"} else if err := sameLife(one, id); err != nil {\n", "} else if err := sameLife(one, one); err != nil {\n"}}},
}
