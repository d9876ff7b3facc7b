package main

// copyMutants break the rules of exact sections at the stores.
var copyMutants = []mutant{
	{rule: "exact-stores", name: "the journal is answered before it is written", file: "storesvr/writer.go", in: []string{"storesvr"}, edits: []edit{
		{"	commits, batches, err = w.write(update, entries)\n", "	for _, one := range group {\n			close(one.done)\n		}\n		group = nil\n		commits, batches, err = w.write(update, entries)\n"}}},
	{rule: "exact-stores", name: "a copy is shown before it is on disk", file: "storesvr/copies.go", in: []string{"storesvr"}, edits: []edit{
		{"	var results []quorum.Result\n	err := r.writer.submit(ctx, &write{\n		apply: func(time.Duration, bool, *disk.Update) error {\n			if req.Prefix",
			"	var results []quorum.Result\n	return quorum.Reply{UUID: r.core.identity.UUID, Results: r.core.copies(req.Registers, r.writer.disk)}, nil\n	err := r.writer.submit(ctx, &write{\n		apply: func(time.Duration, bool, *disk.Update) error {\n			if req.Prefix"}}},
	{rule: "exact-stores", name: "records are on disk before their promise", file: "storesvr/writer.go", in: []string{"storesvr"}, edits: []edit{
		{"	if !update.Empty() || update.Remembered != nil {\n		if commits, err = w.disk.Commit(update); err != nil {\n			return 0, 0, err\n		}\n	}\n", ""},
		{"	return commits, batches, nil\n", "	if !update.Empty() || update.Remembered != nil {\n		if commits, err = w.disk.Commit(update); err != nil {\n			return 0, 0, err\n		}\n	}\n	return commits, batches, nil\n"}}},
	{rule: "exact-stores", name: "a copy that stands elsewhere is an ack", file: "storesvr/acceptor/log.go", in: []string{"storesvr", "storesvr/acceptor"}, edits: []edit{
		{"		res := a.resultOf(quorum.VerdictElsewhere, r, st)\n", "		res := a.resultOf(quorum.VerdictOK, r, st)\n"}}},
	{rule: "exact-stores", name: "records raise no promise", file: "storesvr/acceptor/log.go", in: []string{"storesvr/acceptor"}, edits: []edit{
		{"	if e != st.Promised {\n", "	if e != st.Promised && false {\n"}}},
	{rule: "exact-stores", name: "a change of another epoch than its item's is taken", file: "storesvr/acceptor/log.go", in: []string{"storesvr"}, edits: []edit{
		{"	case at != e:\n", "	case at != e && false:\n"}}},
	{rule: "exact-stores", name: "a section of an exact space takes a max", file: "quorum/refusal.go", in: []string{"storesvr"}, edits: []edit{
		{"	case limits.Exact && item.Max > 0:\n", "	case limits.Exact && item.Max > 0 && false:\n"}}},
	{rule: "exact-stores", name: "a whole copy is written as it is later", file: "storesvr/acceptor/log.go", in: []string{"storesvr"}, edits: []edit{
		{"		entry.Whole = change.Text\n	}\n	s.entries = append(s.entries, entry)\n", "		entry.Whole = change.Text\n	}\n	s.entries = append(s.entries, entry)\n	for i := range s.entries {\n		if s.entries[i].Whole != nil && s.entries[i].Section == entry.Section {\n			s.entries[i].Whole = c.Borrow().AppendTo(nil)\n		}\n	}\n"}}},
	{rule: "exact-journal", name: "a journal that is gone is taken for an empty one", file: "storesvr/disk/beside.go", in: []string{"storesvr"}, edits: []edit{
		{"	j, err := open(b.config(dir, meta.Journal.ID))\n", "	j, err := open(b.config(dir, meta.Journal.ID))\n	if err != nil {\n		cfg := b.config(dir, newJournalID())\n		_ = journal.Create(cfg, nil)\n		meta.Journal = &Journal{ID: cfg.ID}\n		j, err = open(cfg)\n	}\n"}}},
	{rule: "exact-journal", name: "a journal from before what the database has seen is taken", file: "storesvr/disk/beside.go", in: []string{"storesvr/disk"}, edits: []edit{
		{"; got < want {\n", "; got < want && false {\n"}}},
	{rule: "exact-journal", name: "records of an epoch that the database did not promise are taken", file: "storesvr/disk/beside.go", in: []string{"storesvr/disk"}, edits: []edit{
		{"		case promised.Less(at.Epoch):\n", "		case promised.Less(at.Epoch) && false:\n"}}},
	{rule: "exact-journal", name: "batches do not count as commits", file: "storesvr/witness.go", in: []string{"storesvr"}, edits: []edit{
		{"{ return w.database + w.journal }", "{ return w.database }"}}},
	{rule: "exact-journal", name: "what is remembered of fellows waits for a register to change", file: "storesvr/core.go", in: []string{"storesvr"}, edits: []edit{
		{"	if !update.Empty() || len(entries) > 0 {\n", "	if !update.Empty() {\n"}}},
	{rule: "exact-repair", name: "copies are merged by the longer one", file: "quorum/state.go", in: []string{"internal/ops/storeadmin", "quorum"}, edits: []edit{
		{"	if c := a.Accepted.Compare(b.Accepted); c < 0 || c == 0 && a.PayloadMax < b.PayloadMax {\n", "	if a.PayloadMax < b.PayloadMax {\n"}}},
	{rule: "exact-repair", name: "a copy is taken though its promise was refused", file: "storesvr/acceptor/care.go", in: []string{"storesvr/acceptor"}, edits: []edit{
		{"	if err != nil || !take {", "	if !take {"}}},
	{rule: "exact-journal", name: "a batch is answered before it is on the disk", file: "storesvr/journal/journal.go", in: []string{"storesvr/journal"}, sim: true, edits: []edit{
		{"	if err := f.Sync(); err != nil {\n		return fmt.Errorf(\"sync batch %d: %w\", j.number, err)\n	}\n", ""}}},
	{rule: "exact-journal", name: "a start trusts a batch that is not on the disk", file: "storesvr/journal/load.go", in: []string{"storesvr/journal"}, sim: true, edits: []edit{
		{"			if err := f.Sync(); err != nil {\n", "			if err := error(nil); err != nil {\n"}}},
	{rule: "exact-repair", name: "a voter takes a copy below its promise", file: "storesvr/acceptor/care.go", in: []string{"storesvr/acceptor"}, edits: []edit{
		{"(learner || !whole.At().Epoch.Less(reg.state().Promised))", "true"}}},
	{rule: "exact-repair", name: "repair does not wait for W copies", file: "internal/ops/storeadmin/repair.go", in: []string{"internal/ops/storeadmin"}, edits: []edit{
		{"		if have < c.list.W {\n", "		if have < 1 {\n"}}},
	{rule: "exact-restore", name: "UIDs that the backup does not know begin at one", file: "exact/state.go", in: []string{"storesvr/backup"}, edits: []edit{
		{"	return s.floor\n", "	return 0\n"}}},
	{rule: "exact-restore", name: "UIDs of the backup go on where they were", file: "exact/state.go", in: []string{"storesvr/backup"}, edits: []edit{
		{"		out.last.Raise(uid, last)\n", ""}}},
}
