package main

// floorMutants break the rules of a restored era: where tags and worker ids begin.
var floorMutants = []mutant{
	{rule: "floors-of-the-era", name: "tags have no floor", file: "quorum/api.go", in: []string{"storesvr/acceptor"}, edits: []edit{
		{"		return f.Tag\n", "		return 0\n"}}},
	{rule: "floors-of-the-era", name: "worker ids have no floor", file: "quorum/api.go", in: []string{"storesvr/acceptor"}, edits: []edit{
		{"		return f.Worker\n", "		return 0\n"}}},
	{rule: "floors-of-the-era", name: "a register counts for less than its floor",
		file: "storesvr/acceptor/ballot.go", in: []string{"storesvr/acceptor"}, edits: []edit{
			{"Max: max(st.Max, floor), Floor", "Max: st.Max, Floor"}}},
	{rule: "floors-of-the-era", name: "a floor does not travel", file: "internal/wire/storewire/reply.go", in: []string{"internal/wire/storewire"}, edits: []edit{
		{"			Floor:     res.GetFloor(),\n", ""}}},
	{rule: "learners-have-the-floors", name: "a learner is made without the floors", file: "storesvr/init.go", in: []string{"internal/ops/storeadmin"}, edits: []edit{
		{"disk.Filling{Floors: disk.Floors{Floors: cfg.Floors}, ", "disk.Filling{"}}},
	{rule: "learners-have-the-floors", name: "a learner is not told of the floors", file: "cmd/storesvr/learner.go", in: []string{"cmd/storesvr"}, edits: []edit{
		{", Floors: id.Floors, Zone: o.zone, ", ", Zone: o.zone, "}}},
	{rule: "backups-have-the-floors", name: "the floors of the voters are not in a backup",
		file: "internal/ops/storeadmin/snapshot.go", in: []string{"internal/ops/storeadmin"}, edits: []edit{
			{"snap.Floors.Over(s.id.Floors), max(", "snap.Floors, max("}}},
	{rule: "backups-have-the-floors", name: "the floor of tags falls with the next restore",
		file: "storesvr/backup/restore.go", in: []string{"storesvr/backup"}, edits: []edit{
			{"{&floors.Tag, m.Floors.Tag, ", "{&floors.Tag, 0, "}}},
	{rule: "backups-have-the-floors", name: "the floor of sections falls with the next restore",
		file: "storesvr/backup/restore.go", in: []string{"storesvr/backup"}, edits: []edit{
			{"{&floors.Section, m.Floors.Section, ", "{&floors.Section, 0, "}}},
	{rule: "backups-have-the-floors", name: "what counted for the floor is raised from zero",
		file: "storesvr/backup/restore.go", in: []string{"storesvr/backup"}, edits: []edit{
			{"max(st.Max, m.Floors.Of(r))", "st.Max"}}},
	{rule: "backups-have-the-floors", name: "a section without records is lifted from zero",
		file: "storesvr/backup/restore.go", in: []string{"storesvr/backup"}, edits: []edit{
			{"max(last, m.Floors.Of(st.Register))", "last"}}},
	{rule: "floors-of-the-era", name: "sections have no floor", file: "quorum/api.go", in: []string{"storesvr"}, edits: []edit{
		{"		return f.Section\n", "		return 0\n"}}},
	{rule: "floors-of-the-era", name: "exact sections have no floor", file: "storesvr/journal/journal.go", in: []string{"storesvr"}, edits: []edit{
		{"exact.Beginning(j.cfg.Floor)", "exact.Beginning(0)"}}},
	{rule: "floors-of-the-era", name: "the floor of sections is not told", file: "internal/wire/storewire/reply.go", in: []string{"internal/ops/storeadmin"}, edits: []edit{
		{", SectionFloor: id.Floors.Section", ""}}},
	{rule: "every-kind-has-rules", name: "a kind without a rule keeps its numbers in a restore",
		file: "storesvr/backup/restore.go", in: []string{"storesvr/backup"}, edits: []edit{
			{"	case seq.Keep:\n		next.Max = st.Max\n	default:\n		return acceptor.State{}, fmt.Errorf(\"%w: nothing says what a restore does to %s\", ErrNewer, r)\n",
				"	default:\n		next.Max = st.Max\n"}}},
	{rule: "every-kind-has-rules", name: "a column of the table is empty", file: "seq/kinds.go", in: []string{"seq"}, edits: []edit{
		{"\"worker\", ByLease, OnPrepare, Mark, Keep, WorkerFloor}", "\"worker\", ByLease, OnPrepare, Mark, Keep, 0}"}}},
	{rule: "backups-are-whole", name: "a space that was decided and told to nobody is not in a backup",
		file: "internal/ops/storeadmin/snapshot.go", in: []string{"internal/ops/storeadmin"}, edits: []edit{
			{"		if decided.Extends(have) {\n", "		if have.Extends(decided) {\n"}}},
	{rule: "floor-above-the-backup", name: "the floor of worker ids goes by the time of the restore alone",
		file: "storesvr/backup/restore.go", in: []string{"storesvr/backup"}, edits: []edit{
			{"	since := m.Taken\n", "	since := time.Time{}\n"}}},
	{rule: "floor-is-durable", name: "a store answers before its floor is on disk", file: "storesvr/floors.go", in: []string{"storesvr"}, edits: []edit{
		{"	commits, err := db.Commit(disk.Update{Floors: &made})\n", "	commits, err := meta.Commits, error(nil)\n"}}},
	{rule: "floor-is-durable", name: "the end of the wait for windows is not on disk", file: "storesvr/floors.go", in: []string{"storesvr"}, edits: []edit{
		{"			u.Floors = &disk.Floors{Floors: floors}\n			lowered = u.Floors\n", "			lowered = &disk.Floors{Floors: floors}\n"}}},
	{rule: "windows-over-lowers", name: "the end of the wait for windows raises the floor", file: "storesvr/floors.go", in: []string{"storesvr"}, edits: []edit{
		{"			if keptBack(floors, c.wall()) <= Overdrawn {\n", "			if false {\n"}}},
	{rule: "tags-begin-above-the-era", name: "a tag begins at its start and not above the era",
		file: "allocsvr/segment/buffers.go", in: []string{"allocsvr/segment"}, edits: []edit{
			{"{ return era + t.Start - 1 }", "{ return t.Start - 1 }"}}},
	{rule: "end-of-a-counter", name: "a counter near its end is restored where it stood",
		file: "storesvr/backup/restore.go", in: []string{"storesvr/backup"}, edits: []edit{
			{"		return max(last, limit), nil\n", "		return last, nil\n"}}},
	{rule: "end-of-a-counter", name: "a bump that is too large uses up counters that are not near their end",
		file: "storesvr/backup/restore.go", in: []string{"storesvr/backup"}, edits: []edit{
			{"	case over == 0 && last > limit-seq.NearEnd:\n", "	case over == 0:\n"}}},
}
