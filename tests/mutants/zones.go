package main

// zoneMutants break the rules of failure zones, and of datacenters that callers ask for.
var zoneMutants = []mutant{
	{rule: "standbys-are-in-other-zones", name: "zones say nothing about who stands by",
		file: "allocsvr/arbiter/placement/assign.go", in: []string{"allocsvr/arbiter/placement"}, edits: []edit{
			{"		return free(i) && !slices.ContainsFunc(chosen, together)\n", "		_ = together\n		return free(i)\n"}}},
	{rule: "standbys-are-in-other-zones", name: "the second standby may be in the zone of the first",
		file: "allocsvr/arbiter/placement/assign.go", in: []string{"allocsvr/arbiter/placement"}, edits: []edit{
			{"slices.ContainsFunc(chosen, together)", "slices.ContainsFunc(chosen[:1], together)"}}},
	{rule: "standbys-are-in-other-zones", name: "a standby in the owner's zone stays",
		file: "allocsvr/arbiter/placement/assign.go", in: []string{"allocsvr/arbiter/placement"}, edits: []edit{
			{"		if i := p.stays(id, len(chosen), may); i != seq.NoNode {\n", "		if i := p.stays(id, len(chosen), free); i != seq.NoNode {\n"}}},
	{rule: "standbys-are-in-other-zones", name: "a zone that is back stands by for nothing",
		file: "allocsvr/arbiter/placement/assign.go", in: []string{"allocsvr/arbiter/placement"}, edits: []edit{
			{"	if p.zoned {\n", "	if false {\n"}}},
	{rule: "standbys-are-in-other-zones", name: "nodes keep their zones to themselves",
		file: "allocsvr/arbiter/arbiter.go", in: []string{"allocsvr"}, edits: []edit{
			{"		t.Nodes[i].Weight, t.Nodes[i].Zone = r.cfg.Weight, r.cfg.Zone\n", "		t.Nodes[i].Weight = r.cfg.Weight\n"}}},
	{rule: "standbys-are-in-other-zones", name: "zones do not travel with the route table",
		file: "internal/wire/rpc/routes.go", in: []string{"internal/wire/gate"}, edits: []edit{
			{"Leaving: uint64(n.Leaving), Zone: n.Zone}", "Leaving: uint64(n.Leaving)}"}}},
	{rule: "a-zone-is-one-loss", name: "a zone that falls away freezes the table",
		file: "allocsvr/arbiter/arbiter.go", in: []string{"allocsvr/arbiter"}, edits: []edit{
			{"	if len(zones) == 1 {\n		return 1\n	}\n", ""}}},
	{rule: "a-zone-is-one-loss", name: "nodes of several zones are one loss",
		file: "allocsvr/arbiter/arbiter.go", in: []string{"allocsvr/arbiter"}, edits: []edit{
			{"	if len(zones) == 1 {\n", "	if len(zones) > 0 {\n"}}},
	{rule: "a-zone-is-one-loss", name: "one of two zones is one loss",
		file: "allocsvr/arbiter/arbiter.go", in: []string{"allocsvr/arbiter"}, edits: []edit{
			{"	if len(t.Zones()) < 3 {\n", "	if len(t.Zones()) < 2 {\n"}}},
	{rule: "no-zone-has-a-quorum", name: "one store too many is let pass", file: "quorum/zones.go", in: []string{"quorum"}, edits: []edit{
		{"count[z] >= w {", "count[z] > w {"}}},
	{rule: "no-zone-has-a-quorum", name: "init looks at no zones", file: "storesvr/init.go", in: []string{"cmd/storesvr"}, edits: []edit{
		{"	return quorum.CheckZones(nil, c.Zones, c.W)\n", "	return nil\n"}}},
	{rule: "no-zone-has-a-quorum", name: "a replacement looks at no zones", file: "internal/ops/storeadmin/change.go", in: []string{"internal/ops/storeadmin"}, edits: []edit{
		{"	if err := c.apart(next.Members, c.list.W); err != nil {\n", "	if err := error(nil); err != nil {\n"}}},
	{rule: "no-zone-has-a-quorum", name: "a removal looks at no zones", file: "internal/ops/storeadmin/change.go", in: []string{"internal/ops/storeadmin"}, edits: []edit{
		{"			return c.apart(next.Members, w)\n", "			return nil\n"}}},
	{rule: "no-zone-has-a-quorum", name: "a store tells no zone", file: "storesvr/describe.go", in: []string{"internal/ops/storeadmin"}, edits: []edit{
		{", Zone: c.zone, ", ", "}}},
	{rule: "no-zone-has-a-quorum", name: "a zone that a change does without is forgotten", file: "quorum/zones.go", in: []string{"quorum", "internal/ops/storeadmin"}, edits: []edit{
		{"byZone(slices.Concat(before, after))", "byZone(after)"}}},
	{rule: "no-zone-has-a-quorum", name: "a store that is dead was nowhere", file: "internal/ops/storeadmin/zones.go", in: []string{"internal/ops/storeadmin"}, edits: []edit{
		{"client.Describe(ctx); err == nil {", "client.Describe(ctx); err == nil || id.Zone == \"\" {"}}},
	{rule: "no-zone-has-a-quorum", name: "the first list has no zones", file: "internal/wire/storeclient/bind.go", in: []string{"internal/ops/storeadmin"}, edits: []edit{
		{"Name: s.id.Name, Zone: s.id.Zone}", "Name: s.id.Name}"}}},
	{rule: "no-zone-has-a-quorum", name: "a store that was taken in was nowhere", file: "internal/ops/storeadmin/change.go", in: []string{"internal/ops/storeadmin"}, edits: []edit{
		{"Learner: true, Zone: id.Zone}", "Learner: true}"}}},
	{rule: "no-zone-has-a-quorum", name: "a newcomer is taken for the dead store of its name", file: "storesvr/zones.go", in: []string{"storesvr"}, edits: []edit{
		{"cmp.Or(m.Zone, zones[m.Name])", "cmp.Or(zones[m.Name], m.Zone)"}}},
	{rule: "no-zone-has-a-quorum", name: "a list with other zones is another list", file: "quorum/members.go", in: []string{"storesvr"}, edits: []edit{
		{"	o.Zone = m.Zone\n", ""}}},
	{rule: "no-zone-has-a-quorum", name: "allocators do not know where a dead store was", file: "allocsvr/backend.go", in: []string{"allocsvr"}, edits: []edit{
		{"!st.GetReachable() && st.GetUuid() == m.GetUuid()", "false"}}},
	{rule: "no-zone-has-a-quorum", name: "the metric counts no store that is long dead", file: "storesvr/zones.go", in: []string{"storesvr"}, edits: []edit{
		{"cmp.Or(stores[m.Name], m.Zone)", "cmp.Or(stores[m.Name])"}}},
	{rule: "zones-move-no-section", name: "a node of a zone loses what it has", file: "allocsvr/arbiter/placement/assign.go", in: []string{"allocsvr/arbiter/placement"}, edits: []edit{
		{"	if p.fit(old.Owner) {\n", "	if p.fit(old.Owner) && (!p.zoned || p.nodes[old.Owner].aliveFor > 0) {\n"}}},
	{rule: "no-zone-has-a-quorum", name: "seqctl keeps quiet about the one of two zones that has a quorum", file: "internal/ops/survey/zones.go", in: []string{"internal/ops/survey"}, edits: []edit{
		{"named == quorum.FewestZones-1 {", "named == 0 {"}}},
	{rule: "no-zone-has-a-quorum", name: "seqctl keeps quiet about zones whose loss stops the cluster",
		file: "internal/ops/survey/troubles.go", in: []string{"internal/ops/survey"}, edits: []edit{
			{"	all = append(all, s.zoneTroubles(best)...)\n", ""}}},
	{rule: "own-zone-first", name: "the SDK asks routers of all zones in turn", file: "internal/sdk/route/zones.go", in: []string{"internal/sdk/route", "router"}, edits: []edit{
		{"answered[i] && zones[i] == s.t.cfg.Zone ||", "answered[i] && zones[i] == \"\" ||"}}},
	{rule: "own-zone-first", name: "a router that moved stays in its former zone", file: "internal/sdk/route/zones.go", in: []string{"internal/sdk/route"}, edits: []edit{
		{"|| !answered[i] && was[one] {", "|| was[one] {"}}},
	{rule: "own-zone-first", name: "a router that restarts has lost its callers", file: "internal/sdk/route/zones.go", in: []string{"internal/sdk/route"}, edits: []edit{
		{"|| !answered[i] && was[one] {", "{"}}},
	{rule: "own-zone-first", name: "the SDK asks the routers of its zone alone", file: "internal/sdk/route/servers.go", in: []string{"internal/sdk/route"}, edits: []edit{
		{"	if step >= len(group) {\n", "	if len(group) == 0 {\n"}}},
	{rule: "datacenters-are-asked-for", name: "IDs come from whichever datacenter", file: "allocsvr/globalid/namespaces/datacenter.go", in: []string{"allocsvr/globalid"}, edits: []edit{
		{"	case datacenter == \"\":\n", "	case true:\n"}}},
	{rule: "datacenters-are-asked-for", name: "a datacenter that a node does not know is known nowhere", file: "internal/sdk/call/errors.go", in: []string{"client"}, edits: []edit{
		{"	seq.ErrUnknownNamespace, seq.ErrTimeExhausted,", "	seq.ErrUnknownDatacenter, seq.ErrUnknownNamespace, seq.ErrTimeExhausted,"}}},
}
