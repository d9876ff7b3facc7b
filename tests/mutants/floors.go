package main

// floorMutants are those of an era that was restored: where tags and worker ids begin.
var floorMutants = []mutant{
	{
		rule: "floors-of-the-era", name: "tags have no floor",
		file:  "quorum/api.go",
		edits: []edit{{old: "		return f.Tag\n", new: "		return 0\n"}},
		in:    []string{"storesvr/acceptor"},
	},
	{
		rule: "floors-of-the-era", name: "worker ids have no floor",
		file:  "quorum/api.go",
		edits: []edit{{old: "		return f.Worker\n", new: "		return 0\n"}},
		in:    []string{"storesvr/acceptor"},
	},
	{
		rule: "floors-of-the-era", name: "a register counts for less than its floor",
		file:  "storesvr/acceptor/ballot.go",
		edits: []edit{{old: "Max: max(st.Max, floor), Floor", new: "Max: st.Max, Floor"}},
		in:    []string{"storesvr/acceptor"},
	},
	{
		rule: "floors-of-the-era", name: "a floor does not travel",
		file:  "internal/storewire/reply.go",
		edits: []edit{{old: "			Floor:     res.GetFloor(),\n", new: ""}},
		in:    []string{"internal/storewire"},
	},
	{
		rule: "learners-have-the-floors", name: "a learner is made without the floors",
		file:  "storesvr/init.go",
		edits: []edit{{old: "disk.Filling{Floors: disk.Floors{Floors: cfg.Floors}}", new: "disk.Filling{}"}},
		in:    []string{"internal/storecare"},
	},
	{
		rule: "learners-have-the-floors", name: "a learner is not told of the floors",
		file:  "cmd/storesvr/learner.go",
		edits: []edit{{old: ", Floors: id.Floors})", new: "})"}},
		in:    []string{"cmd/storesvr"},
	},
	{
		rule: "backups-have-the-floors", name: "the floors of the voters are not in a backup",
		file:  "internal/storecare/snapshot.go",
		edits: []edit{{old: "		snap.Floors = snap.Floors.Over(s.id.Floors)\n", new: ""}},
		in:    []string{"internal/storecare"},
	},
	{
		rule: "backups-have-the-floors", name: "the floor of tags falls with the next restore",
		file:  "storesvr/backup/restore.go",
		edits: []edit{{old: "Max: m.Floors.Tag}", new: "Max: 0}"}},
		in:    []string{"storesvr/backup"},
	},
	{
		rule: "floor-above-the-backup", name: "the floor of worker ids goes by the time of the restore alone",
		file:  "storesvr/backup/restore.go",
		edits: []edit{{old: "	since := m.Taken\n", new: "	since := time.Time{}\n"}},
		in:    []string{"storesvr/backup"},
	},
	{
		rule: "floor-is-durable", name: "a store answers before its floor is on disk",
		file:  "storesvr/floors.go",
		edits: []edit{{old: "	commits, err := db.Commit(disk.Update{Floors: &made})\n", new: "	commits, err := meta.Commits, error(nil)\n"}},
		in:    []string{"storesvr"},
	},
	{
		rule: "floor-is-durable", name: "the end of the wait for windows is not on disk",
		file:  "storesvr/floors.go",
		edits: []edit{{old: "			u.Floors = &disk.Floors{Floors: floors}\n			lowered = u.Floors\n", new: "			lowered = &disk.Floors{Floors: floors}\n"}},
		in:    []string{"storesvr"},
	},
	{
		rule: "windows-over-lowers", name: "the end of the wait for windows raises the floor",
		file:  "storesvr/floors.go",
		edits: []edit{{old: "			if keptBack(floors, c.wall()) <= Overdrawn {\n", new: "			if false {\n"}},
		in:    []string{"storesvr"},
	},
	{
		rule: "tags-begin-above-the-era", name: "a tag begins at its start and not above the era",
		file:  "allocsvr/segment/buffers.go",
		edits: []edit{{old: "{ return era + t.Start - 1 }", new: "{ return t.Start - 1 }"}},
		in:    []string{"allocsvr/segment"},
	},
	{
		rule: "floors-are-no-marks", name: "the floor of a store makes a right clock look wrong",
		file:  "allocsvr/globalid/workers/pick.go",
		edits: []edit{{old: "u.Holder != self && u.Mark > u.Floor && ", new: "u.Holder != self && "}},
		in:    []string{"allocsvr/globalid/workers"},
	},
	{
		rule: "end-of-a-counter", name: "a counter near its end is restored where it stood",
		file:  "storesvr/backup/restore.go",
		edits: []edit{{old: "		return max(st.Max, limit), nil\n", new: "		return st.Max, nil\n"}},
		in:    []string{"storesvr/backup"},
	},
	{
		rule: "end-of-a-counter", name: "a bump that is too large uses up counters that are not near their end",
		file:  "storesvr/backup/restore.go",
		edits: []edit{{old: "	case over == 0 && st.Max > limit-seq.NearEnd:\n", new: "	case over == 0:\n"}},
		in:    []string{"storesvr/backup"},
	},
}
