package main

// setsMutants break the rules of moves between Sets. Where one is explored in all interleavings,
// package sets catches it; the rest are caught by nodes and coordinators in package allocsvr. Of 30
// seeds of the simulator, of two minutes each, so many catch them: sets-ceiling 28, sets-refuse-first
// 15, sets-one-intent and sets-refuse-what-is-active 10, sets-activate-older 7,
// sets-activate-after-refusal 6, sets-exact-settled 3, sets-seal-after-cancel and
// sets-record-decides 2, sets-cancel and sets-counters-once 1, sets-own-max and
// sets-record-after-promise none; 6 one that activates while the seal is under way.
var setsMutants = []mutant{
	{
		rule: "sets-activate-after-refusal", name: "a refused move is activated after all",
		file: "sets/place.go", in: []string{"sets"},
		edits: []edit{{old: "may = p.State != Active && p.State != Limbo && p.Move < s.Move\n	case Refuse:", new: "may = p.State != Active && p.State != Limbo && p.Move <= s.Move\n	case Refuse:"}},
	},
	{
		rule: "sets-refuse-what-is-active", name: "a Set refuses a section that it serves",
		file: "sets/place.go", in: []string{"sets"},
		edits: []edit{{old: "	case Refuse:\n		next.State = Refused\n		may = p.State != Active && p.State != Limbo && p.Move < s.Move\n", new: "	case Refuse:\n		next.State = Refused\n		may = p.State != Limbo && p.Move <= s.Move\n"}},
	},
	{
		rule: "sets-settled-above", name: "the registers of the others do not say how far a section went there",
		file: "internal/ops/setadmin/settle.go", in: []string{"allocsvr"},
		edits: []edit{{old: "max(f.Ceilings[id], maxes[id], s.records[one.Name].At(id).Above)", new: "max(f.Ceilings[id], maxes[id]*0, s.records[one.Name].At(id).Above)"}},
	},
	{
		rule: "sets-settled-above", name: "the others do not note where a settled Set begins",
		file: "internal/ops/setadmin/settle.go", in: []string{"allocsvr"},
		edits: []edit{{old: "sets.Step{Op: sets.Refuse, Move: f.Number, Above: f.Ceilings}", new: "sets.Step{Op: sets.Refuse, Move: f.Number}"}},
	},
	{
		rule: "sets-settled-above", name: "a restored Set does not learn how far its sections went elsewhere",
		file: "sets/place.go", in: []string{"allocsvr"},
		edits: []edit{{old: "next.State, next.To, next.Above = Moved, s.To, above", new: "next.State, next.To = Moved, s.To"}},
	},
	{
		rule: "sets-settled-above", name: "a later refusal forgets where a settled Set began",
		file: "sets/place.go", in: []string{"sets", "allocsvr"},
		edits: []edit{{old: "		next.Above = max(p.Above, above)\n", new: "		next.Above = above\n"}},
	},
	{
		rule: "sets-settled-moves", name: "a settled root does not learn of moves between other Sets",
		file: "internal/ops/setadmin/settle.go", in: []string{"allocsvr"},
		edits: []edit{{old: "rpc.SetMovesToProto(f.Open)", new: "rpc.SetMovesToProto(f.Open[:0])"}},
	},
	{
		rule: "sets-settled-moves", name: "a move that a settled root does not know seals all the same",
		file: "internal/ops/setadmin/survey.go", in: []string{"allocsvr"},
		edits: []edit{{old: "if in != \"\" && !leaving && ", new: "if in == \"none\" && !leaving && "}},
	},
	{
		rule: "sets-settled-moves", name: "what a move between other Sets has opened is taken out of it",
		file: "internal/ops/setadmin/survey.go", in: []string{"allocsvr"},
		edits: []edit{{old: "if in != \"\" && !leaving && ", new: "if in != \"\" && (leaving || true) && "}},
	},
	{
		rule: "sets-stop-of-its-move", name: "a stop of an earlier move is told for a later one",
		file: "allocsvr/owner/moves.go", in: []string{"allocsvr/owner"},
		edits: []edit{{old: "if ok = ok && s.move == move; !ok && !full {", new: "if !ok && !full {"}},
	},
	{
		rule: "sets-sent-on", name: "a move that is over sends callers on",
		file: "allocsvr/owner/moves.go", in: []string{"allocsvr/owner"},
		edits: []edit{{old: "ok := m.stops[id]; ok && s.move == move {\n			m.sent", new: "ok := m.stops[id]; ok {\n			m.sent"}},
	},
	{
		rule: "sets-sent-on", name: "callers are sent on within the Set that the section has left",
		file: "allocsvr/alloc.go", in: []string{"allocsvr"},
		edits: []edit{{old: "return g.elsewhere(id, record, addr)", new: "return g.byTable(id, addr)"}},
	},
	{
		rule: "sets-same-space", name: "a section moves to a Set where it is of another space",
		file: "internal/ops/setadmin/mover.go", in: []string{"allocsvr"},
		edits: []edit{{old: "	if err := alike(ctx, m.From, m.To, ids); err != nil { // before anything is sealed\n", new: "	if err := alike(ctx, m.From, m.To, nil); err != nil {\n"}},
	},
	{
		rule: "sets-space-begins-alike", name: "a space begins elsewhere in another Set",
		file: "seq/extend.go", in: []string{"seq"},
		edits: []edit{{old: "	if must != 0 && must != s.First {\n", new: "	if false {\n"}},
	},
	{
		rule: "sets-keys-of-what-counts", name: "a space that counts is hashed as in another Set",
		file: "allocsvr/documents/keys.go", in: []string{"allocsvr/documents"},
		edits: []edit{{old: "		if _, there := now[space]; there {\n", new: "		if false {\n"}},
	},
	{
		rule: "sets-cancel", name: "a sealed section is given back without the other Set's refusal",
		file: "sets/place.go", in: []string{"sets"},
		edits: []edit{{old: "	case Cancel:\n		next.State = Active\n		may = p.State == Active && p.Move < s.Move\n", new: "	case Cancel:\n		next.State = Active\n		may = p.State == Active && p.Move < s.Move || p.State == Sealed && p.Move == s.Move\n"}},
	},
	{
		rule: "sets-seal-after-cancel", name: "a move that was cancelled seals all the same",
		file: "sets/place.go", in: []string{"sets"},
		edits: []edit{{old: "may = p.State == Active && p.Move < s.Move\n	case Activate:", new: "may = p.State == Active && p.Move <= s.Move\n	case Activate:"}},
	},
	{
		rule: "sets-activate-older", name: "an older move is activated over a later one",
		file: "sets/place.go", in: []string{"sets"},
		edits: []edit{{old: "may = p.State != Active && p.State != Limbo && p.Move < s.Move\n	case Refuse:", new: "may = p.State != Active && p.State != Limbo\n	case Refuse:"}},
	},
	{
		rule: "sets-one-intent", name: "two moves of a section are open",
		file: "sets/map.go", in: []string{"sets"},
		edits: []edit{{old: "if slices.ContainsFunc(Sections(open.Sections), func(id seq.SectionID) bool { return slices.Contains(ids, id) }) {", new: "if false {"}},
	},
	{
		rule: "sets-restored-map", name: "a move begins by the map of a backup",
		file: "sets/map.go", in: []string{"sets"},
		edits: []edit{{old: "	if m.Restored {\n", new: "	if false {\n"}},
	},
	{
		rule: "sets-limbo", name: "a restored Set has what its backup says",
		file: "storesvr/backup/restore.go", in: []string{"allocsvr"},
		edits: []edit{{old: "return record.Restored().Encode()", new: "return record.Encode()"}},
	},
	{
		rule: "sets-record-decides", name: "a node serves what the record does not have",
		file: "allocsvr/owner/acquire.go", in: []string{"allocsvr/owner"},
		edits: []edit{{old: "if err == nil && record.Has(g.Bid.c.ID()) {", new: "if _ = record; err == nil {"}},
	},
	{
		rule: "sets-record-after-promise", name: "the record is read before the promise",
		file: "allocsvr/owner/acquire.go", in: []string{"allocsvr/owner"},
		edits: []edit{{old: "	if t.done.read == nil {\n		t.done.read = t.o.reading(t.ctx)\n	}\n", new: ""},
			{old: "	gained := ownership.Acquire(ctx, holder, tries)\n	t1", new: "	done.read = o.reading(ctx)\n	_, _ = done.read()\n	gained := ownership.Acquire(ctx, holder, tries)\n	t1"}},
	},
	{
		rule: "sets-stopped-own", name: "a node stops what it may have lost, and tells its own ceiling",
		file: "allocsvr/owner/moves.go", in: []string{"allocsvr/owner", "allocsvr"},
		edits: []edit{{old: "		if err == nil || mine && now.sure {\n", new: "		if true {\n"}},
	},
	{
		rule: "sets-stopped-own", name: "a section that may not be lost is given up, with its counters",
		file: "allocsvr/owner/moves.go", in: []string{"allocsvr/owner"},
		edits: []edit{{old: "mine && errors.Is(err, seq.ErrNoLease) {", new: "mine && !errors.Is(err, seq.ErrMoveOver) {"}},
	},
	{
		rule: "sets-handed-over", name: "a hand-over waits for what was sealed meanwhile",
		file: "allocsvr/owner/give.go", in: []string{"allocsvr/owner"},
		edits: []edit{{old: "return record.Has(id) && !slices", new: "return !slices"}},
	},
	{
		rule: "sets-ceiling", name: "a section that arrives without counters begins below its ceiling",
		file: "allocsvr/owner/open.go", in: []string{"allocsvr/owner"},
		edits: []edit{{old: "base := max(found.Max, t.stopped.Ceiling)", new: "base := found.Max"}},
	},
	{
		rule: "sets-exact-settled", name: "a section of an exact space that is settled asks for a ceiling",
		file: "allocsvr/owner/open.go", in: []string{"allocsvr"},
		edits: []edit{{old: "	if t.c.Space().Mode == seq.Exact {\n		t.start(found)\n", new: "	if false {\n		t.start(found)\n"}},
	},
	{
		rule: "sets-exact-settled", name: "a Set that never had a section of an exact space does not say so",
		file: "allocsvr/owner/moves.go", in: []string{"allocsvr"},
		edits: []edit{{old: "if p := record.At(id); p.State == sets.Sealed && m.o.sections.Section(id).Space().Mode == seq.Exact {", new: "if m.o.sections.Section(id).Space().Mode == seq.Exact {"}},
	},
	{
		rule: "sets-own-max", name: "a section that comes back begins below what the Set handed out itself",
		file: "allocsvr/owner/open.go", in: []string{"allocsvr/owner"},
		edits: []edit{{old: "base := max(found.Max, t.stopped.Ceiling)", new: "base := t.stopped.Ceiling"}},
	},
	{
		rule: "sets-activated-to-the-end", name: "counters are dropped if the coordinator is gone while the Set activates their section",
		file: "allocsvr/owner/open.go", in: []string{"allocsvr/owner"},
		edits: []edit{{old: "context.WithTimeout(context.WithoutCancel(ctx), activateWithin)", new: "context.WithTimeout(ctx, activateWithin)"}},
	},
	{
		rule: "sets-counters-once", name: "counters are used though another node activated the section",
		file: "allocsvr/owner/open.go", in: []string{"allocsvr/owner"},
		edits: []edit{{old: "step.By != 0 && now.At(t.c.ID()).By == step.By &&", new: "step.By != 0 && now.Has(t.c.ID()) &&"}},
	},
	{
		rule: "sets-refuse-first", name: "a sealed section is reopened before the other Set has refused",
		file: "internal/ops/setadmin/mover.go", in: []string{"allocsvr"}, sim: true,
		edits: []edit{{old: "	if len(sealed) > 0 {\n", new: "	if false {\n"}},
	},
	{
		rule: "sets-message-size", name: "an answer has the counters of all sections of a batch",
		file: "allocsvr/owner/moves.go", in: []string{"allocsvr/owner"},
		edits: []edit{{old: "if full = used > 0 && used+len(s.Body) > room.Message; full {", new: "if full {"}},
	},
	{
		rule: "sets-message-size", name: "a section is told with counters that no message takes",
		file: "allocsvr/owner/moves.go", in: []string{"allocsvr/owner"},
		edits: []edit{{old: "if len(s.Body) > room.Section {", new: "if false {"}},
	},
	{
		rule: "sets-message-size", name: "a batch is opened by one message",
		file: "internal/ops/setadmin/mover.go", in: []string{"internal/ops/setadmin"},
		edits: []edit{{old: "size > rpc.MaxCounters && len(req.Sections) > 0 {", new: "size > 100*rpc.MaxCounters {"}},
	},
	{
		rule: "sets-check-first", name: "the sections of a request are gone through before there can be so many",
		file: "allocsvr/api/setmap.go", in: []string{"allocsvr/api"},
		edits: []edit{{old: "return ranges, sets.CheckRanges(ranges)", new: "return ranges[:0], nil"}},
	},
	{
		rule: "sets-was-active", name: "what has gone on from a Set counts as never activated there",
		file: "sets/place.go", in: []string{"sets", "allocsvr"},
		edits: []edit{{old: " && p.Was < move && ", new: " && "}},
	},
	{
		rule: "sets-was-active", name: "a refusal forgets that the Set had the section",
		file: "sets/place.go", in: []string{"sets", "allocsvr"},
		edits: []edit{{old: "		next.Was = p.Was\n", new: ""}},
	},
	{
		rule: "sets-move-to-limbo", name: "sections are stopped for a Set that can neither take nor refuse them",
		file: "internal/ops/setadmin/mover.go", in: []string{"allocsvr"},
		edits: []edit{{old: "	} else if err := m.settled(record, ids); err != nil {\n		return fmt.Errorf(\"move", new: "	} else if err := m.settled(record, nil); err != nil {\n		return fmt.Errorf(\"move"}},
	},
	{
		rule: "sets-settle-asks-all", name: "a restored Set is settled by the map alone",
		file: "internal/ops/setadmin/survey.go", in: []string{"allocsvr"},
		edits: []edit{{old: "			case p.State == sets.Active, p.State == sets.Sealed && p.To != s.Set: // if it is on its way, then not from here\n", new: "			case s.m.Sets[s.m.Index(id)].Name == name && p.State == sets.Active:\n"}},
	},
	{
		rule: "sets-settle-refuses", name: "a section is settled before other Sets refuse it",
		file: "internal/ops/setadmin/survey.go", in: []string{"allocsvr"},
		edits: []edit{{old: "err := s.all[name].step(ctx, sets.Step{Op: sets.Refuse, Move: f.Number}, open)", new: "var err error"}},
	},
	{
		rule: "sets-tags", name: "a node of another Set than the root writes a tag down",
		file: "allocsvr/segment/take.go", in: []string{"allocsvr/segment"},
		edits: []edit{{old: "	if err := s.elsewhere(); err != nil {\n		return Tag{}, false, err\n	}\n", new: ""}},
	},
	{
		rule: "sets-settled-refuses", name: "a move to a Set that has settled the section otherwise is never over",
		file: "internal/ops/setadmin/mover.go", in: []string{"allocsvr"},
		edits: []edit{{old: "case p.Never(m.Move.ID): ", new: "case false: "}},
	},
	{
		rule: "sets-settled-late", name: "what is settled late ends a move that has begun since",
		file: "sets/map.go", in: []string{"sets"},
		edits: []edit{{old: "!m.movedSince(s, f) && name != move.From && name != move.To", new: "name != \"\""}},
	},
	{
		rule: "sets-settled-late", name: "what is settled late undoes a move that has ended",
		file: "sets/map.go", in: []string{"sets"},
		edits: []edit{{old: "		if !m.movedSince(s, f) {\n", new: "		if true {\n"}},
	},
	{
		rule: "sets-settled-late", name: "an older move that ends while Sets are asked is undone",
		file: "sets/map.go", in: []string{"sets", "allocsvr"},
		edits: []edit{{old: "return by != f.Seen[s] && by != f.Number", new: "return by > f.Number"}},
	},
	{
		rule: "sets-settled-arrived", name: "the move of a section that has arrived is forgotten, and its former Set stays sealed",
		file: "sets/map.go", in: []string{"sets", "allocsvr"},
		edits: []edit{{old: " && name != move.From && name != move.To", new: " && name != move.From"}},
	},
	{
		rule: "sets-back-from-elsewhere", name: "a move from where a section is not can still seal it once it was taken back",
		file: "internal/ops/setadmin/mover.go", in: []string{"allocsvr"},
		edits: []edit{{old: "{{sets.Refuse, never}, ", new: "{"}},
	},
	{
		rule: "sets-all-restored", name: "of what is in limbo in several Sets the others do not give it away",
		file: "internal/ops/setadmin/settle.go", in: []string{"allocsvr"},
		edits: []edit{{old: "		if len(give) > 0 && err == nil {\n", new: "		if false {\n"}},
	},
	{
		rule: "sets-all-restored", name: "Sets that were all restored each take a section",
		file: "internal/ops/setadmin/survey.go", in: []string{"allocsvr"},
		edits: []edit{{old: "		if f.In[id] == s.Set {\n", new: "		if false {\n"}},
	},
	{
		rule: "sets-all-restored", name: "what settlements have skipped since the backups is handed out again",
		file: "internal/ops/setadmin/settle.go", in: []string{"allocsvr"},
		edits: []edit{{old: "	if len(rivals) == 0 {\n", new: "	if true {\n"}},
	},
	{
		rule: "sets-all-restored", name: "the map of a restored root gives away what is in limbo elsewhere",
		file: "internal/ops/setadmin/survey.go", in: []string{"allocsvr"},
		edits: []edit{{old: "; s.records[named].At(id).State == sets.Limbo {\n", new: "; false {\n"}},
	},
	{
		rule: "sets-lost", name: "a section that no Set has stays so",
		file: "internal/ops/setadmin/settle.go", in: []string{"allocsvr"},
		edits: []edit{{old: " || s.lost(id) {", new: " {"}},
	},
	{
		rule: "sets-settled-each", name: "all sections of a batch begin above the highest",
		file: "sets/record.go", in: []string{"sets", "allocsvr"},
		edits: []edit{{old: "	var made []Run\n", new: "	var made []Run\n	highest := uint64(0)\n	for _, a := range s.Above {\n		highest = max(highest, a)\n	}\n"}, {old: "old.after(s, s.Above[id])", new: "old.after(s, highest)"}},
	},
	{
		rule: "sets-added", name: "spaces that are added to a settled Set are in limbo",
		file: "internal/ops/setadmin/settle.go", in: []string{"allocsvr"},
		edits: []edit{{old: "	if err := s.rest(ctx, number); err != nil || !s.m.Restored {\n", new: "	if !s.m.Restored {\n"}},
	},
	{
		rule: "sets-added", name: "a Set has a space that is elsewhere as soon as it is added",
		file: "internal/ops/setadmin/settle.go", in: []string{"allocsvr"},
		edits: []edit{{old: " || own.sections < s.sections() {\n", new: " {\n"}},
	},
	{
		rule: "sets-numbers-of-eras", name: "a restored root gives numbers of moves out again",
		file: "sets/map.go", in: []string{"allocsvr", "sets"},
		edits: []edit{{old: "	m.Last += eras << 32\n", new: "	_ = eras\n"}},
	},
	{
		rule: "sets-one-root", name: "a Set of one root becomes one of another",
		file: "sets/record.go", in: []string{"allocsvr/documents"},
		edits: []edit{{old: "	case r.RootCluster != \"\" && rootCluster != \"\" && r.RootCluster != rootCluster:", new: "	case false:"}},
	},
	{
		rule: "sets-join-checked", name: "a cluster that may not join begins to",
		file: "allocsvr/documents/sets.go", in: []string{"allocsvr/documents"},
		edits: []edit{{old: "		_, _, err = r.Join(name, root, rootCluster)\n", new: ""}},
	},
	{
		rule: "sets-join-checked", name: "the map has a Set that may not join",
		file: "internal/ops/setadmin/root.go", in: []string{"allocsvr"},
		edits: []edit{{old: "	if err := joins(ctx, s, record, rootAddrs, cluster); err != nil {", new: "	if err := joins(ctx, s, record, rootAddrs, cluster); err != nil && false {"}},
	},
	{
		rule: "sets-joined-once", name: "a cluster that was initialised anew is given what one of its id had",
		file: "allocsvr/api/join.go", in: []string{"allocsvr"},
		edits: []edit{{old: "	if gave || at > 0 &&", new: "	if gave && false || at > len(m.Sets) &&"}},
	},
}
