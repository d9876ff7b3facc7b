package main

// careMutants are those of an operator's hand: replacement, backup and restore.
var careMutants = []mutant{
	{
		line: 27, rule: "learner-filled-first",
		name:  "replacement filled from one survivor",
		file:  "internal/storecare/settle.go",
		edits: []edit{{old: "	for _, s := range sources {\n		for r, st := range s.has {\n", new: "	for _, s := range sources[:1] {\n		for r, st := range s.has {\n"}},
		in:    []string{"internal/storecare"},
	},
	{
		line: 27, rule: "learner-filled-first",
		name:  "replacement made a voter unfilled, at the store",
		file:  "storesvr/members.go",
		edits: []edit{{old: "	case fresh, was && before.Learner && own.Filled != own.Version:\n", new: "	case false && was && before.Learner:\n"}},
		in:    []string{"internal/storecare"},
	},
	{
		line: 28, rule: "restore-bumps",
		name:  "backup restored without bump: sections and tags",
		file:  "storesvr/backup/restore.go",
		edits: []edit{{old: "	return st.Max + by, nil\n", new: "	return st.Max, nil\n"}},
		in:    []string{"storesvr/backup"},
	},
	{
		line: 28, rule: "restore-bumps",
		name:  "the same backup restored twice with the bump of once",
		file:  "storesvr/backup/restore.go",
		edits: []edit{{old: "	over, by := bits.Mul64(o.Bump, eras)\n", new: "	over, by := bits.Mul64(o.Bump, min(eras, 1))\n"}},
		in:    []string{"storesvr/backup"},
	},
	{
		line: 28, rule: "restore-bumps",
		name:  "backup restored without bump: worker marks",
		file:  "storesvr/disk/types.go",
		edits: []edit{{old: "	f.Worker = max(f.Worker, uint64(max(0, now.Add(f.Stamp.Margin).UnixMilli())))\n", new: ""}},
		in:    []string{"storesvr/backup"},
	},
	{
		rule: "restored-epochs-are-new", name: "a restored register begins under a round of before",
		file:  "storesvr/backup/restore.go",
		edits: []edit{{old: "seq.Epoch{Round: st.Promised.Round + 1, Session: nobody}", new: "seq.Epoch{Round: st.Promised.Round, Session: nobody}"}},
		in:    []string{"storesvr/backup"},
	},
	{
		rule: "bump-does-not-wrap", name: "a bump over many eras wraps",
		file:  "storesvr/backup/restore.go",
		edits: []edit{{old: "	case over == 0 && st.Max <= limit && by", new: "	case st.Max <= limit && by"}},
		in:    []string{"storesvr/backup"},
	},
	{
		rule: "records-are-read", name: "the records of a backup are read as empty",
		file:  "storesvr/backup/file.go",
		edits: []edit{{old: "	return st, n, nil\n", new: "	return quorum.RegisterState{}, n, nil\n"}},
		in:    []string{"storesvr/backup"},
	},
}
