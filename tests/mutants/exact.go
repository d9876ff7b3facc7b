package main

// exactMutants break the rules of exact spaces: of a copy, of an owner, of the logs at a node.
var exactMutants = []mutant{
	{rule: "exact-positions", name: "a record follows any of the right index", file: "exact/record.go", in: []string{"exact"}, edits: []edit{
		{"return r.after() == p }", "return r.Index == p.Index+1 }"}}},
	{rule: "exact-positions", name: "the longer copy is taken, whatever its epoch", file: "exact/record.go", in: []string{"exact"}, edits: []edit{
		{"	if c := p.Epoch.Compare(o.Epoch); c != 0 {\n		return c < 0\n	}\n", ""}}},
	{rule: "exact-positions", name: "any copy of the newest epoch is taken", file: "exact/record.go", in: []string{"exact"}, edits: []edit{
		{"	return p.Index < o.Index\n", "	return false\n"}}},
	{rule: "exact-acks", name: "a position of another epoch is an ack", file: "exact/copy.go", in: []string{"exact"}, edits: []edit{
		{"	case at.Epoch == b.Epoch && at.Index >= end.Index:\n", "	case at.Index >= end.Index:\n"}}},
	{rule: "exact-acks", name: "a repeated whole copy puts a store back", file: "exact/copy.go", in: []string{"exact"}, edits: []edit{
		{"	case c.state.at.Epoch == s.at.Epoch && c.state.at.Index >= s.at.Index:\n		return false, nil\n", ""}}},
	{rule: "exact-acks", name: "a whole copy leaves a longer one of another epoch", file: "exact/copy.go", in: []string{"exact"}, edits: []edit{
		{"c.state.at.Epoch == s.at.Epoch && c.state.at.Index >= s.at.Index", "c.state.at.Index >= s.at.Index"}}},
	{rule: "exact-begins", name: "an owner begins without a record of its own", file: "exact/owner.go", in: []string{"exact"}, edits: []edit{
		{"	if err := o.add(Record{Kind: Began}, now); err != nil {\n", "	o.asked = true\n	if err := error(nil); err != nil {\n"}}},
	{rule: "exact-begins", name: "what was found is told before W stores have it", file: "exact/owner.go", in: []string{"exact", "allocsvr/logs"}, edits: []edit{
		{" && o.round > 0:", ":"}}},
	{rule: "exact-begins", name: "a repetition waits for the batch after its own", file: "exact/owner.go", in: []string{"exact"}, edits: []edit{
		{"	o.state.ids.begin()\n	o.round++\n", "	o.round++\n"}}},
	{rule: "exact-begins", name: "an index is used twice", file: "exact/owner.go", in: []string{"exact"}, edits: []edit{
		{"o.epoch, o.state.at.Index+1, o.state.at.Epoch", "o.epoch, max(o.state.at.Index, 1), o.state.at.Epoch"}}},
	{rule: "exact-checks", name: "a record is not checked against the numbers before it in its batch", file: "exact/batch.go", in: []string{"exact"}, edits: []edit{
		{"n := *b.ofUID(uid); n > 0 {\n", "n := *b.ofUID(uid); n < 0 {\n"}}},
	{rule: "exact-checks", name: "a record is not checked against the ids before it in its batch", file: "exact/batch.go", in: []string{"exact"}, edits: []edit{
		{"			return b.records[n-1].until(b.window), true\n", "			return 0, false\n"}}},
	{rule: "exact-checks", name: "a record is checked against the first of its UID", file: "exact/batch.go", in: []string{"exact"}, edits: []edit{
		{"		*b.ofUID(r.UID) = int32(len(records))\n", "		if x := b.ofUID(r.UID); *x == 0 {\n			*x = int32(len(records))\n		}\n"}}},
	{rule: "exact-checks", name: "a record is checked against the first use of its id", file: "exact/batch.go", in: []string{"exact"}, edits: []edit{
		{"		*b.ofRequest(request{r.UID, r.ID}) = int32(len(records))\n", "		if x := b.ofRequest(request{r.UID, r.ID}); *x == 0 {\n			*x = int32(len(records))\n		}\n"}}},
	{rule: "exact-room", name: "one store without memory stops new ids", file: "quorum/room.go", in: []string{"quorum"}, edits: []edit{
		{"max(min(c.w, n)-1, 0)", "n-1"}}},
	{rule: "exact-room", name: "a removed store's room counts for the next in its place", file: "quorum/voters.go", in: []string{"quorum"}, edits: []edit{
		{"		l.rooms[slot].Store(nil)\n", ""}}},
	{rule: "exact-room", name: "exact sections have no share", file: "allocsvr/section/memory.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"share > 0 && uint64(max(logs, 0)) >= share", "false"}}},
	{rule: "exact-room", name: "an owner fills the stores between two replies", file: "allocsvr/section/memory.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"room.Left <= grown", "room.Left <= 0*grown"}}},
	{rule: "exact-room", name: "a reply does not say what is left", file: "storesvr/replica.go", in: []string{"storesvr"}, edits: []edit{
		{"room.full(), room.left(), room.most\n", "room.full(), room.most, room.most\n"}}},
	{rule: "exact-room", name: "a memory above the cgroup is taken", file: "internal/process/daemon/memory.go", in: []string{"internal/process/daemon"}, edits: []edit{
		{"case cgroup > 0 && flag > cgroup:", "case false:"}}},
	{rule: "exact-room", name: "uid-memory is no share", file: "cmd/allocsvr/flags.go", in: []string{"cmd/allocsvr"}, edits: []edit{
		{"case !flag.Changed && (", "case false && ("}}},
	{rule: "exact-room", name: "a store tells of no limit", file: "storesvr/room.go", in: []string{"storesvr"}, edits: []edit{
		{"return r.most > 0 && r.used >= r.most }", "return false }"}}},
	{rule: "exact-room", name: "ids do not count", file: "exact/state.go", in: []string{"exact", "storesvr"}, edits: []edit{
		{"int64(s.last.Bytes() + s.ids.bytes)", "int64(s.last.Bytes())"}}},
	{rule: "exact-room", name: "what a bucket took counts after it was dropped", file: "exact/ids.go", in: []string{"exact"}, edits: []edit{
		{"		s.bytes -= s.buckets[n].bytes()\n	}\n", "	}\n"}}},
	{rule: "exact-room", name: "a store counts what its copies had before", file: "storesvr/acceptor/log.go", in: []string{"storesvr/acceptor"}, edits: []edit{
		{"	s.weigh(c.Borrow(), -1)\n", ""}}},
	{rule: "exact-room", name: "a store that has started counts nothing", file: "storesvr/acceptor/log.go", in: []string{"storesvr/acceptor"}, edits: []edit{
		{"		s.weigh(c.Borrow(), 1)\n	}\n	return nil\n", "	}\n	return nil\n"}}},
	{rule: "exact-room", name: "the limit of a cgroup above is not seen", file: "internal/process/daemon/memory.go", in: []string{"internal/process/daemon"}, edits: []edit{
		{"			if at == \"/\" {\n", "			if at != \"\" {\n"}}},
	{rule: "loads-in-sight", name: "a daemon that loads is ready", file: "internal/process/daemon/common.go", in: []string{"internal/process/daemon"}, edits: []edit{
		{"	case service == nil:\n		return errStarting\n", "	case service == nil:\n		return nil\n"}}},
	{rule: "loads-in-sight", name: "nobody sees how far a store has loaded", file: "storesvr/journal/load.go", in: []string{"storesvr"}, edits: []edit{
		{"		j.cfg.Progress.add(0, h.size())\n", ""}}},
	{rule: "loads-in-sight", name: "a node is ready without the copies of its exact sections", file: "allocsvr/alloc.go", in: []string{"allocsvr"}, edits: []edit{
		{"	case reading > 0 && !a.begun.Load():\n", "	case false:\n"}}},
	{rule: "loads-in-sight", name: "exact sections that come later make a node less ready", file: "allocsvr/alloc.go", in: []string{"allocsvr"}, edits: []edit{
		{"reading > 0 && !a.begun.Load()", "reading > 0"}}},
	{rule: "many-sections-one-line", name: "a line does not say how many sections ended", file: "allocsvr/logs/logs.go", in: []string{"allocsvr/logs"}, edits: []edit{
		{"\"sections\", len(ended), \"first\"", "\"sections\", 1, \"first\""}}},
	{rule: "sections-that-were-run", name: "a new cluster has more sections than one was run with", file: "seq/mapping.go", in: []string{"seq"}, edits: []edit{
		{"n > MaxNewSections {", "n > MaxSections {"}}},
	{rule: "sections-that-were-run", name: "spaces are added without end", file: "seq/extend.go", in: []string{"seq"}, edits: []edit{
		{"	return next, true, next.checkNew()\n", "	return next, true, nil\n"}}},
	{rule: "exact-rehash", name: "an exact space is rehashed", file: "allocsvr/documents/keys.go", in: []string{"allocsvr/documents"}, edits: []edit{
		{"	if s.Mode != seq.Exact {\n", "	if s.Mode != seq.Exact || s.Name != \"\" {\n"}}},
	{rule: "exact-again", name: "an id is not used twice in a batch, however far apart", file: "exact/batch.go", in: []string{"exact"}, edits: []edit{
		{"			return b.records[n-1].until(b.window), true\n", "			return math.MaxInt64, true\n"}, {"	\"math/bits\"\n", "	\"math\"\n	\"math/bits\"\n"}}},
	{rule: "exact-again", name: "an id that a copy drops only with the batch is not used again", file: "exact/batch.go", in: []string{"exact"}, edits: []edit{
		{"again && until > r.Time {\n", "again && until > 0 {\n"}}},
	{rule: "exact-again", name: "an owner gathers what copies refuse", file: "exact/owner.go", in: []string{"exact"}, edits: []edit{
		{"	again, err := next.admits(&r)\n	if err != nil {\n", "	again, err := next.admits(&r)\n	if err != nil && false {\n"}}},
	{rule: "exact-overtaken", name: "a batch has nothing of the one before", file: "exact/owner.go", in: []string{"exact"}, edits: []edit{
		{"	if n := len(o.latest); n > 0 {\n", "	if n := len(o.latest); n > 0 && false {\n"}}},
	{rule: "exact-overtaken", name: "after a question, a batch has nothing of the one before", file: "exact/owner.go", in: []string{"exact"}, edits: []edit{
		{"	if len(o.pending) > 0 {\n		o.latest = o.pending\n	}\n", "	o.latest = o.pending\n"}}},
	{rule: "exact-expiries", name: "a bucket is dropped when its first id expires", file: "exact/ids.go", in: []string{"exact"}, edits: []edit{
		{"s.buckets[n].end <= time; n++ {\n", "s.buckets[n].got(0).until <= time; n++ {\n"}}},
	{rule: "exact-expiries", name: "a bucket is dropped when it begins", file: "exact/ids.go", in: []string{"exact"}, edits: []edit{
		{"	return (until + width - 1) / width * width\n", "	return until / width * width\n"}}},
	{rule: "exact-expiries", name: "ids go into the bucket that is there", file: "exact/ids.go", in: []string{"exact"}, edits: []edit{
		{"	if i == 0 || s.buckets[i-1].end != end || ", "	if i == 0 || "}}},
	{rule: "exact-expiries", name: "an id that comes late is put last", file: "exact/ids.go", in: []string{"exact"}, edits: []edit{
		{"	for i > 0 && s.buckets[i-1].end > end {\n", "	for false {\n"}}},
	{rule: "exact-expiries", name: "an id is kept until its bucket is dropped", file: "exact/owner.go", in: []string{"exact"}, edits: []edit{
		{"Replayed: true}, got.until > time\n", "Replayed: true}, true\n"}}},
	{rule: "exact-expiries", name: "an id that is used again stands twice", file: "exact/state.go", in: []string{"exact"}, edits: []edit{
		{"		if again {\n", "		if false {\n"}}},
	{rule: "exact-expiries", name: "the marks stay where they were when an id is forgotten", file: "exact/ids.go", in: []string{"exact"}, edits: []edit{
		{"	if at < b.held {\n", "	if false {\n"}}},
	{rule: "exact-clones", name: "a clone shares its ids", file: "exact/ids.go", in: []string{"exact"}, edits: []edit{
		{"= slices.Clone(b.texts), slices.Clone(b.index)\n", "= b.texts, b.index\n"}}},
	{rule: "exact-reads", name: "that nothing was taken is told from memory", file: "exact/owner.go", in: []string{"exact"}, edits: []edit{
		{"	return Answer{Round: o.ask()}\n", "	return Answer{}\n"}}},
	{rule: "exact-reads", name: "a current number is told from memory", file: "exact/owner.go", in: []string{"exact", "allocsvr/logs"}, edits: []edit{
		{"	return Answer{Round: o.ask(), First: o.state.Last(uid)}\n", "	return Answer{First: o.state.Last(uid)}\n"}}},
	{rule: "exact-reads", name: "a replay does not wait for W stores", file: "exact/owner.go", in: []string{"exact", "allocsvr/logs"}, edits: []edit{
		{"	return Answer{Round: o.has(in, at), ", "	return Answer{Round: 0, "}}},
	{rule: "exact-time", name: "an id is kept by its caller's clock", file: "exact/record.go", in: []string{"exact"}, edits: []edit{
		{"from := max(r.Time, r.Sent)", "from := r.Sent"}}},
	{rule: "exact-time", name: "an id is kept by its owner's clock", file: "exact/record.go", in: []string{"exact"}, edits: []edit{
		{"from := max(r.Time, r.Sent)", "from := r.Time"}}},
	{rule: "exact-time", name: "a request expires by the clock of whoever owns the section", file: "exact/owner.go", in: []string{"exact"}, edits: []edit{
		{"		case first+o.cfg.Window <= time:\n", "		case first+o.cfg.Window <= now && time > 0:\n"}}},
	{rule: "exact-time", name: "a request from beyond the bound of clocks is taken", file: "exact/owner.go", in: []string{"exact"}, edits: []edit{
		{"		case first > time+o.cfg.Bound:\n", "		case first > time+o.cfg.Bound && false:\n"}}},
	{rule: "exact-time", name: "a store takes records of any time", file: "exact/copy.go", in: []string{"exact"}, edits: []edit{
		{"	if t := b.time(); t > max(latest, c.state.time) {\n", "	if t := b.time(); t > max(latest, c.state.time) && false {\n"}}},
	{rule: "exact-time", name: "a store whose clock went back takes nothing of what is not later", file: "exact/copy.go", in: []string{"exact"}, edits: []edit{
		{"	if t := b.time(); t > max(latest, c.state.time) {\n", "	if t := b.time(); t > latest {\n"}}},
	{rule: "exact-time", name: "a store whose clock is behind asks for a whole copy", file: "exact/copy.go", in: []string{"exact"}, edits: []edit{
		{"	if t := b.time(); t > max(latest, c.state.time) {\n", "	if t := b.time(); t > max(latest, c.state.time) && b.Records[0].follows(at) {\n"}}},
	{rule: "exact-follows", name: "the time is what the last of W stores has reached", file: "quorum/clocks.go", in: []string{"quorum"}, edits: []edit{
		{"all[known-c.w]+int64", "all[0]+int64"}}},
	{rule: "exact-follows", name: "the time is what any store has reached", file: "quorum/clocks.go", in: []string{"quorum"}, edits: []edit{
		{"all[known-c.w]+int64", "all[known-1]+int64"}}},
	{rule: "exact-follows", name: "the time is known by fewer than W stores", file: "quorum/clocks.go", in: []string{"quorum"}, edits: []edit{
		{"	if known < c.w {\n", "	if known < 1 {\n"}}},
	{rule: "exact-follows", name: "a reply that waited puts the time back", file: "quorum/clocks.go", in: []string{"quorum"}, edits: []edit{
		{"	if place.Load() != unheard && off > ", "	if off < 0 && off > "}}},
	{rule: "exact-follows", name: "a clock is heard once", file: "quorum/clocks.go", in: []string{"quorum"}, edits: []edit{
		{"	place.Store(time.UnixMilli(ms).UnixNano() - int64(now))\n", "	place.CompareAndSwap(unheard, time.UnixMilli(ms).UnixNano()-int64(now))\n"}}},
	{rule: "exact-follows", name: "the clock of a store that was removed counts for the next in its place", file: "quorum/voters.go", in: []string{"quorum"}, edits: []edit{
		{"		l.clocks[slot].Store(unheard)\n", "		l.clocks[slot].Store(0)\n"}}},
	{rule: "exact-follows", name: "a section goes by the time when its copy was read", file: "allocsvr/logs/logs.go", in: []string{"allocsvr/logs"}, edits: []edit{
		{"	if l.cfg.StoreTime != nil {\n", "	if l.cfg.StoreTime != nil && false {\n"}}},
	{rule: "exact-time", name: "a store takes a whole copy of any time", file: "exact/copy.go", in: []string{"exact"}, edits: []edit{
		{"	case s.time > max(latest, c.state.time):\n", "	case s.time > max(latest, c.state.time) && false:\n"}}},
	{rule: "exact-ids", name: "an id counts for all UIDs", file: "exact/ids.go", in: []string{"exact"}, edits: []edit{
		{"uid == q.uid && string(id) == q.id {\n", "uid|q.uid == q.uid|uid && string(id) == q.id {\n"}, {"bits.RotateLeft64(mix(uid), 1) ^ id }", "id }"}}},
	{rule: "exact-ids", name: "an id is given another count than it was used for", file: "exact/owner.go", in: []string{"exact", "allocsvr/logs"}, edits: []edit{
		{"ok && a.Count != count {\n", "ok && a.Count != count && false {\n"}}},
	{rule: "exact-ids", name: "ids are forgotten early where there is no room", file: "exact/owner.go", in: []string{"allocsvr/logs"}, edits: []edit{
		{"	if id != \"\" || !o.state.knows(uid) {\n		if err := o.full(); err != nil {\n			return Answer{}, err\n", "	if id != \"\" || !o.state.knows(uid) {\n		if err := o.full(); err != nil {\n			o.state.ids = ids{}\n"}}},
	{rule: "exact-copies", name: "a section takes more than a copy may have", file: "exact/owner.go", in: []string{"exact"}, edits: []edit{
		{"	case o.CopyShare() >= 1:\n", "	case o.CopyShare() < 0:\n"}}},
	{rule: "exact-copies", name: "raises bring more UIDs than a copy may have", file: "exact/owner.go", in: []string{"exact"}, edits: []edit{
		{"	if !o.state.knows(uid) {\n", "	if !o.state.knows(uid) && to == 0 {\n"}}},
	{rule: "exact-clones", name: "a clone shares its counters", file: "internal/base/counters/table.go", in: []string{"internal/base/counters"}, edits: []edit{
		{"			one := *p\n			c.pages[i] = &one\n", "			c.pages[i] = p\n"}}},
	{rule: "exact-copies", name: "the longest ids count as short ones", file: "exact/state.go", in: []string{"exact"}, edits: []edit{
		{"10 + 1 + MaxID + 8 + 10 + 10 + 5", "10 + 1 + 16 + 8 + 10 + 10 + 5"}}},
	{rule: "exact-repairs", name: "a backup has what one store alone has", file: "internal/ops/storeadmin/snapshot.go", in: []string{"internal/ops/storeadmin"}, edits: []edit{
		{"	if err := c.confirm(ctx, voters, all); err != nil {\n", "	if err := error(nil); err != nil {\n"}}},
	{rule: "exact-repairs", name: "repair ends though fewer than W stores have all", file: "internal/ops/storeadmin/repair.go", in: []string{"internal/ops/storeadmin"}, edits: []edit{
		{"		if have < c.list.W {\n", "		if have == 0 {\n"}}},
	{rule: "exact-batches", name: "an answer does not wait for W stores", file: "allocsvr/logs/log.go", in: []string{"allocsvr/logs"}, edits: []edit{
		{"	case out.State == quorum.Won:\n		g.owner", "	case out.State == quorum.Won, out.State == quorum.Unknown:\n		g.owner"}}},
	{rule: "exact-batches", name: "two batches are under way at a time", file: "allocsvr/logs/log.go", in: []string{"allocsvr/logs"}, edits: []edit{
		{"	f.why = out.Err\n	return retry\n", "	g.owner.Committed()\n	g.flight = nil\n	return retry\n"}}},
	{rule: "exact-batches", name: "a closed log begins another batch", file: "allocsvr/logs/log.go", in: []string{"allocsvr/logs"}, edits: []edit{
		{"		if g.closed {\n			return nil, false\n		}\n", ""}}},
	{rule: "exact-batches", name: "a store that stands elsewhere never gets a whole copy", file: "allocsvr/logs/log.go", in: []string{"allocsvr/logs"}, edits: []edit{
		{"		f.body, g.spilled = (&exact.Change{Whole: g.owner.State()}).AppendTo(nil), f.number+1\n		return more\n", "		return retry\n"}}},
	{rule: "exact-batches", name: "a store that is behind stays so while two others serve", file: "allocsvr/logs/log.go", in: []string{"allocsvr/logs"}, edits: []edit{
		{"g.behind || out.Elsewhere\n", "false\n"}}},
	{rule: "exact-batches", name: "requests in a whole copy count as not sent", file: "allocsvr/logs/log.go", in: []string{"allocsvr/logs"}, edits: []edit{
		{"f.body, g.spilled = (&exact.Change{Whole: g.owner.State()}).AppendTo(nil), f.number+1", "f.body = (&exact.Change{Whole: g.owner.State()}).AppendTo(nil)"}}},
	{rule: "exact-batches", name: "an idle section keeps its ids for ever", file: "allocsvr/logs/log.go", in: []string{"allocsvr/logs"}, edits: []edit{
		{"	passed := g.owner.Pass(g.now(&Instant{}))\n", "	passed := false && g.owner.Pass(g.now(&Instant{}))\n"}}},
	{rule: "exact-batches", name: "copies that do not fit a message are read together again", file: "allocsvr/logs/logs.go", in: []string{"allocsvr/logs"}, edits: []edit{
		{"				g.alone = true\n", ""}}},
	{rule: "exact-asks", name: "what a closed log never sent is not asked of the next", file: "allocsvr/logs/finder.go", in: []string{"allocsvr/logs"}, edits: []edit{
		{"errors.Is(err, ErrClosed) || err == errLater {\n", "err == errLater {\n"}}},
	{rule: "exact-asks", name: "each key of a call waits for a commit of its own", file: "allocsvr/logs/finder.go", in: []string{"allocsvr/logs"}, edits: []edit{
		{"			return ask(k, g)\n		})\n	}\n", "			return ask(k, g)\n		})\n		if errs[k] == nil {\n			_ = tickets[k].Wait(ctx)\n		}\n	}\n"}}},
	{rule: "exact-seals", name: "the log of a sealed section goes on", file: "allocsvr/section/section.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"	c.endLog()\n	c.state, c.target = Sealed, 0\n", "	c.state, c.target = Sealed, 0\n"}}},
}
