package main

// careMutants are those of an operator's hand: replacement, backup and restore.
var careMutants = []mutant{
	{
		line: 27, name: "replacement filled from one survivor",
		file:  "internal/storecare/settle.go",
		edits: []edit{{old: "	for _, s := range sources {\n		for r, st := range s.has {\n", new: "	for _, s := range sources[:1] {\n		for r, st := range s.has {\n"}},
		pkg:   "internal/storecare", tests: []string{"TestAReplacementHasWhatAnyMajorityOfTheOldStoresConfirmed"},
	},
	{
		line: 27, name: "replacement made a voter unfilled, at the store",
		file:  "storesvr/members.go",
		edits: []edit{{old: "	case fresh, was && before.Learner && own.Filled != own.Version:\n", new: "	case false && was && before.Learner:\n"}},
		pkg:   "internal/storecare", tests: []string{"TestALearnerVotesForNobody"},
	},
	{
		line: 28, name: "backup restored without bump: sections and tags",
		file:  "storesvr/backup/restore.go",
		edits: []edit{{old: "	return st.Max + by, nil\n", new: "	return st.Max, nil\n"}},
		pkg:   "storesvr/backup", tests: []string{"TestARestoreBeginsAboveEverythingThatMayHaveBeenHandedOut"},
	},
	{
		line: 28, name: "the same backup restored twice with the bump of once",
		file:  "storesvr/backup/restore.go",
		edits: []edit{{old: "	over, by := bits.Mul64(o.Bump, eras)\n", new: "	over, by := bits.Mul64(o.Bump, min(eras, 1))\n"}},
		pkg:   "storesvr/backup", tests: []string{"TestTheSameBackupRestoredAgainBeginsAboveTheEraBetween"},
	},
	{
		line: 28, name: "backup restored without bump: worker marks",
		file:  "storesvr/disk/types.go",
		edits: []edit{{old: "	f.Worker = max(f.Worker, uint64(max(0, now.Add(f.Stamp.Margin).UnixMilli())))\n", new: ""}},
		pkg:   "storesvr/backup", tests: []string{"TestARestoreBeginsAboveEverythingThatMayHaveBeenHandedOut"},
	},
}
