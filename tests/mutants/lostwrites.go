package main

// lostWriteMutants break the rules of the checks of a store's database at its start.
var lostWriteMutants = []mutant{
	{rule: "lost-writes-are-found", name: "a record that is replaced stays in the sum", file: "storesvr/disk/sum.go", in: []string{"storesvr/disk"}, edits: []edit{
		{"		b.sum.remove(hashOf(b.name, key, old))\n", "		_ = old\n"}}},
	{rule: "lost-writes-are-found", name: "the sum is not compared", file: "storesvr/disk/sum.go", in: []string{"storesvr/disk"}, edits: []edit{
		{"	case s.sum != found:\n", "	case false:\n"}}},
	{rule: "lost-writes-are-found", name: "an older root passes", file: "storesvr/disk/sum.go", in: []string{"storesvr/disk"}, edits: []edit{
		{"	case s.tx != uint64(tx.ID()):\n", "	case false:\n"}}},
	{rule: "lost-writes-are-found", name: "an older list of free pages passes", file: "storesvr/disk/pages.go", in: []string{"storesvr/disk"}, edits: []edit{
		{"		case p.used[id]:\n", "		case false:\n"}}},
	{rule: "lost-writes-are-found", name: "a sum that an older build has left behind is trusted", file: "storesvr/disk/sum.go", in: []string{"storesvr/disk"}, edits: []edit{
		{"	case s.boots < boots:", "	case s.boots < boots && false:"}}},
	{rule: "newer-is-not-damaged", name: "a record of a newer build is passed over", file: "storesvr/disk/load.go", in: []string{"storesvr/disk"}, edits: []edit{
		{"		return newer(\"record %q\", key)\n", "		return nil\n"}}},
	{rule: "newer-is-not-damaged", name: "a field of a newer build is passed over", file: "storesvr/disk/record.go", in: []string{"storesvr/disk"}, edits: []edit{
		{"	in.DisallowUnknownFields()", "	_ = in.More()"}}},
	{rule: "newer-is-not-damaged", name: "a lost write is taken for a newer build", file: "storesvr/disk/load.go", in: []string{"storesvr/disk"}, edits: []edit{
		{"		if err != nil && !errors.Is(err, ErrNewer) {\n", "		if err != nil {\n"}}},
	{rule: "newer-is-not-damaged", name: "a field of a newer backup is passed over", file: "storesvr/backup/input.go", in: []string{"storesvr/backup"}, edits: []edit{
		{"	known.DisallowUnknownFields()\n", ""}}},
	{rule: "newer-is-not-damaged", name: "a new disk is advised for a newer one", file: "storesvr/storesvr.go", in: []string{"storesvr"}, edits: []edit{
		{"	case errors.Is(err, disk.ErrNewer), ", "	case "}}},
}
