package main

// consoleMutants break the rules of the console page.
var consoleMutants = []mutant{
	{rule: "console-changes-nothing", name: "other methods than GET are answered", file: "internal/ops/console/http.go", in: []string{"internal/ops/console"}, edits: []edit{
		{"		if r.Method != http.MethodGet {\n", "		if r.Method == http.MethodDelete {\n"}}},
	{rule: "console-is-for-readers", name: "whoever may look a UID up may look", file: "internal/ops/console/http.go", in: []string{"tests/secure"}, edits: []edit{
		{"	if err := c.cfg.Guard.Check(who, pb.Admin_Status_FullMethodName, nil); err != nil {\n		return err\n	}\n", ""}}},
	{rule: "console-collector-stops", name: "the collector goes on when nobody watches", file: "internal/ops/console/collector.go", in: []string{"internal/ops/console"}, edits: []edit{
		{"		if !want[status] || c.life.Err() != nil {\n", "		if c.life.Err() != nil {\n"}}},
	{rule: "console-collector-stops", name: "connections stay when nobody watches", file: "internal/ops/console/collector.go", in: []string{"internal/ops/console"}, edits: []edit{
		{"	defer c.release()\n", ""}}},
	{rule: "console-collector-stops", name: "a part is collected when nobody wants it any more", file: "internal/ops/console/collector.go", in: []string{"internal/ops/console"}, edits: []edit{
		{"		want[t] = c.watched[t] > 0 || now.Before(c.until[t])\n", "		want[t] = c.watched[t] > 0 || now.Before(c.until[t]) || !c.until[t].IsZero() && c.watched[status] > 0\n"}}},
	{rule: "console-costs-one-status", name: "each node is asked for the whole", file: "internal/ops/survey/survey.go", in: []string{"internal/ops/survey"}, edits: []edit{
		{"		go ask(ctx, conns, node, true, brief)\n", "		go ask(ctx, conns, node, false, brief)\n"}}},
	{rule: "console-costs-one-status", name: "a node that fails is the last one asked for the whole", file: "internal/ops/survey/survey.go", in: []string{"internal/ops/survey"}, edits: []edit{
		{"			if asking = false; a.err == nil {\n				s.add(a)\n			}\n", "			if asking, next = false, nil; a.err == nil {\n				s.add(a)\n			}\n"}}},
	{rule: "console-knows-sets", name: "a Set that died is not told of", file: "internal/ops/survey/sets.go", in: []string{"internal/ops/survey"}, edits: []edit{
		{"		for _, t := range of.ownTroubles() {\n", "		for _, t := range of.ownTroubles()[:0] {\n"}}},
	{rule: "console-knows-sets", name: "sections of a Set that does not answer count as owned", file: "internal/ops/survey/sets.go", in: []string{"internal/ops/survey"}, edits: []edit{
		{"	return uint32(s.Cluster.Here())\n", "	return 0\n"}}},
	{rule: "console-knows-sets", name: "an address that hangs keeps the others from being asked", file: "internal/ops/survey/sets.go", in: []string{"internal/ops/survey"}, edits: []edit{
		{"			soon = time.After(headStart)\n", "			soon = time.After(time.Hour + headStart)\n"}}},
	{rule: "console-counts-all-routers", name: "a router that restarted counts from its start", file: "internal/ops/console/traffic.go", in: []string{"internal/ops/console"}, edits: []edit{
		{"; ok && c.Ended >= was.Ended {\n", "; ok {\n"}}},
	{rule: "console-one-collector", name: "each who watches has a collector", file: "internal/ops/console/collector.go", in: []string{"internal/ops/console"}, edits: []edit{
		{"	if !c.running {\n", "	if true {\n"}}},
	{rule: "console-nothing-inline", name: "inline scripts are allowed", file: "internal/ops/console/http.go", in: []string{"internal/ops/console"}, edits: []edit{
		{"script-src 'self';", "script-src 'self' 'unsafe-inline';"}}},
}
