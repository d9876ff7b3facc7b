package main

// careMutants break the rules of replacement, backup and restore by operators.
var careMutants = []mutant{
	{line: 27, rule: "learner-filled-first", name: "replacement filled from one survivor",
		file: "internal/ops/storeadmin/repair.go", in: []string{"internal/ops/storeadmin"}, edits: []edit{
			{"	for _, s := range sources {\n		for r, st := range s.has {\n", "	for _, s := range sources[:1] {\n		for r, st := range s.has {\n"}}},
	{line: 27, rule: "learner-filled-first", name: "replacement made a voter unfilled, at the store",
		file: "storesvr/members.go", in: []string{"internal/ops/storeadmin"}, edits: []edit{
			{"	case fresh, unfilled, m.self.Learner && own.Filled == 0:\n", "	case false && unfilled:\n"}}},
	{rule: "lists-overlap-by-steps", name: "a store is removed though reads need fewer than writes",
		file: "internal/ops/storeadmin/change.go", in: []string{"internal/ops/storeadmin"}, edits: []edit{
			{"	}, c.raise(next), []Step{\n", "	}, []Step{\n"}}},
	{rule: "lists-overlap-by-steps", name: "a store is added though reads need fewer than writes",
		file: "internal/ops/storeadmin/change.go", in: []string{"internal/ops/storeadmin"}, edits: []edit{
			{"R: max(c.list.R, c.list.W), W: c.list.W, Members: append(", "R: c.list.R, W: c.list.W, Members: append("}}},
	{rule: "lists-overlap-by-steps", name: "a replacement goes back to reads that need one store",
		file: "internal/ops/storeadmin/change.go", in: []string{"internal/ops/storeadmin"}, edits: []edit{
			{"		d.R = max(d.R, d.W)", "		d.R = min(d.R, d.W)"}}},
	{rule: "lists-overlap-by-steps", name: "a change that a build of before began cannot be ended",
		file: "internal/ops/storeadmin/change.go", in: []string{"internal/ops/storeadmin"}, edits: []edit{
			{"return append(c.raise(c.whole()), c.finish()...)", "return c.finish()"}}},
	{rule: "lists-overlap-by-steps", name: "documents are read before so many stores vote as a read needs",
		file: "internal/ops/storeadmin/repair.go", in: []string{"internal/ops/storeadmin"}, edits: []edit{
			{"err == nil && len(voters) < c.list.R {", "false {"}}},
	{rule: "care-knows-the-change", name: "a command goes on though it cannot read the change under way",
		file: "internal/ops/storeadmin/care.go", in: []string{"internal/ops/storeadmin"}, edits: []edit{
			{"		err = c.catchUp(ctx)\n", "		_ = c.catchUp(ctx)\n"}}},
	{line: 28, rule: "restore-bumps", name: "backup restored without bump: sections and tags",
		file: "storesvr/backup/restore.go", in: []string{"storesvr/backup"}, edits: []edit{
			{"		return last + by, nil\n", "		return last, nil\n"}}},
	{line: 28, rule: "restore-bumps", name: "the same backup restored twice with the bump of once",
		file: "storesvr/backup/restore.go", in: []string{"storesvr/backup"}, edits: []edit{
			{"	over, by := bits.Mul64(o.Bump, eras)\n", "	over, by := bits.Mul64(o.Bump, min(eras, 1))\n"}}},
	{line: 28, rule: "restore-bumps", name: "backup restored without bump: worker marks",
		file: "storesvr/disk/types.go", in: []string{"storesvr/backup"}, edits: []edit{
			{"	f.Worker = max(f.Worker, uint64(max(0, now.Add(f.Stamp.Margin).UnixMilli())))\n", ""}}},
	{rule: "restored-epochs-are-new", name: "a restored register begins under a round of before",
		file: "storesvr/backup/restore.go", in: []string{"storesvr/backup"}, edits: []edit{
			{"seq.Epoch{Round: st.Promised.Round + 1, Session: nobody}", "seq.Epoch{Round: st.Promised.Round, Session: nobody}"}}},
	{rule: "bump-does-not-wrap", name: "a bump over many eras wraps", file: "storesvr/backup/restore.go", in: []string{"storesvr/backup"}, edits: []edit{
		{"	case over == 0 && last <= limit && by", "	case last <= limit && by"}}},
	{rule: "records-are-read", name: "the records of a backup are read as empty", file: "storesvr/backup/input.go", in: []string{"storesvr/backup"}, edits: []edit{
		{"	return st, b, nil\n", "	return quorum.RegisterState{}, b, nil\n"}}},
	{rule: "signed-backups", name: "every signature holds", file: "storesvr/backup/input.go", in: []string{"storesvr/backup"}, edits: []edit{
		{"		case hmac.Equal(want, got):\n", "		case hmac.Equal(want, want):\n"}}},
	{rule: "signed-backups", name: "a restore does not look at the signature", file: "cmd/seqctl/storectl/restore.go", in: []string{"cmd/seqctl/storectl"}, edits: []edit{
		{"			err = key.Check(m, sig)\n", "			_ = key.Check(m, sig)\n"}}},
	{rule: "signed-backups", name: "a key takes an unsigned backup", file: "storesvr/backup/sign.go", in: []string{"storesvr/backup"}, edits: []edit{
		{"	case sig == Unsigned && k != nil:\n", "	case sig == \"\" && k != nil:\n"}}},
}
