package main

// spaceMutants break the rules of spaces that are added to a running cluster.
var spaceMutants = []mutant{
	{rule: "spaces-one-after-the-other", name: "each operator adds to what it knows itself", file: "allocsvr/documents/spaces.go", in: []string{"allocsvr/documents"}, edits: []edit{
		{"		if len(now.Spaces) == 0 {\n", "		if len(have.Spaces) > 0 {\n"}}},
	{rule: "spaces-one-after-the-other", name: "a store takes a mapping that does not extend its own", file: "storesvr/extend.go", in: []string{"storesvr"}, edits: []edit{
		{"			case !m.Extends(own):\n", "			case len(m.Spaces) == 0:\n"}}},
	{rule: "spaces-one-after-the-other", name: "a node takes a mapping that does not extend its own", file: "allocsvr/section/layout.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"	case !m.Extends(now.mapping) || len(m.Spaces)", "	case len(m.Spaces)"}}},
	{rule: "sections-made-once", name: "sections are made anew with each space", file: "storesvr/extend.go", in: []string{"storesvr"}, edits: []edit{
		{"seq.SectionID(own.Sections())", "seq.SectionID(c.identity.Mapping.Sections())"}}},
	{rule: "sections-made-once", name: "the mapping is not on disk with its sections", file: "storesvr/disk/disk.go", in: []string{"storesvr/disk"}, edits: []edit{
		{"	d.sections.grow(m.Sections())\n	return putJSON(b, keyIdentity, id)\n", "	d.sections.grow(m.Sections())\n	return nil\n"}}},
	{rule: "sections-made-once", name: "a space is shown before it is on disk", file: "storesvr/extend.go", in: []string{"storesvr"}, edits: []edit{
		{"			u.Mapping, taken = &m, true\n", "			u.Mapping, taken, c.mapping = &m, true, m\n"}}},
	{rule: "tags-stay", name: "tags are placed among the sections of added spaces, too", file: "seq/mapping.go", in: []string{"seq"}, edits: []edit{
		{"% uint64(m.initial()))", "% uint64(m.Sections()))"}}},
	{rule: "tables-never-shorten", name: "an arbiter that has not heard of a space takes its sections out of the table", file: "allocsvr/arbiter/arbiter.go", in: []string{"allocsvr/arbiter"}, edits: []edit{
		{"max(r.cfg.Sections(), len(t.Sections))", "r.cfg.Sections()"}}},
	{rule: "keys-before-space", name: "a space is served without the secret of its string keys", file: "allocsvr/alloc.go", in: []string{"allocsvr"}, edits: []edit{
		{"	a.keys.Store(&keys)\n", "	_ = keys\n"}}},
	{rule: "growing-holds-up-nothing", name: "a node holds its lock over messages to stores", file: "allocsvr/extend.go", in: []string{"allocsvr"}, edits: []edit{
		{"	all, err := documents.NewKeys(", "	n.growing.Lock()\n	defer n.growing.Unlock()\n	all, err := documents.NewKeys("},
		{"	n.growing.Lock() // not over the messages above\n	defer n.growing.Unlock()\n", ""}}},
	{rule: "unheard-is-asked-again", name: "a node that has not heard of a space ends the call", file: "internal/sdk/call/rules.go", in: []string{"client"}, edits: []edit{
		{"return Final(err) && !errors.Is(err, seq.ErrUnknownSpace)", "return Final(err)"}}},
	{rule: "unheard-is-asked-again", name: "a store that missed a space is not told", file: "internal/wire/storeclient/lists.go", in: []string{"internal/wire/storeclient"}, edits: []edit{
		{"!s.bound() || s.id.Mapping.Extends(m)", "!s.bound() || s.id.Mapping.Extends(m) || true"}}},
	{rule: "level-before-merge", name: "registers are merged into a store that lacks their space", file: "internal/ops/storeadmin/repair.go", in: []string{"internal/ops/storeadmin"}, edits: []edit{
		{"	if err := c.level(ctx, all); err != nil {\n", "	if err := c.level(ctx, all[:1]); err != nil {\n"}}},
	{rule: "level-before-merge", name: "a backup has the spaces of the first store", file: "internal/ops/storeadmin/snapshot.go", in: []string{"internal/ops/storeadmin"}, edits: []edit{
		{"all.spaces(mappingOf(voters))", "all.spaces(mappingOf(voters[:1]))"}}},
}
