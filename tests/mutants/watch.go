package main

// watchMutants break what watchers rely on.
var watchMutants = []mutant{
	{rule: "watch-wait", name: "replies before SEQ.WAIT come after it", file: "router/line/conn.go", in: []string{"router/line/resp"}, edits: []edit{
		{"		if ops[n].waits() {\n", "		if false {\n"}}},
	{rule: "watch-wait", name: "a wait goes on for a caller that left", file: "router/line/looped_linux.go", in: []string{"router/line/resp"}, edits: []edit{
		{"		c.giveUp(errLeft)\n", ""}}},
	{rule: "watch-wait", name: "a wait goes on for a caller that left before it began", file: "router/line/loop_linux.go", in: []string{"router/line/resp"}, edits: []edit{
		{"context.WithCancelCause(l.s.lives)\n		c.hear()\n", "context.WithCancelCause(l.s.lives)\n"}}},
	{rule: "watch-wait", name: "a wait goes on for a caller of TLS that left", file: "router/line/server.go", in: []string{"router/line/resp"}, edits: []edit{
		{"					end(errLeft)\n", ""}}},
	{rule: "watch-wait", name: "a server that leaves waits for waits", file: "router/line/server.go", in: []string{"router/line/resp"}, edits: []edit{
		{"	s.end(seq.ErrShuttingDown)\n", ""}}},
	{rule: "watch-wait", name: "EXEC holds its connection", file: "router/line/resp/transaction.go", in: []string{"router/line/resp"}, edits: []edit{
		{"		o.Once.Within = 0 //", "		o.Once.Within-- //"}}},
	{rule: "watch-subscribe", name: "a watch does not begin with the present", file: "internal/base/watch/watch.go", in: []string{"internal/base/watch"}, edits: []edit{
		{"	k.of[key] = e\n	w.mark(e)\n", "	k.of[key] = e\n"}}},
	{rule: "watch-subscribe", name: "a watch reads before it is subscribed", file: "allocsvr/section/watch.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"	err := c.watch.Add(w.Watcher, uid, id)\n", "	early := c.markOf(uid, w.t.clock.Now())\n	err := c.watch.Add(w.Watcher, uid, id)\n	w.early = append(w.early, News{ID: id, Mark: early})\n	w.Take(nil, 1)\n"},
		{"	taken []*watch.Entry[uint64]\n", "	taken []*watch.Entry[uint64]\n	early []News\n"},
		{"	w.taken = w.Take(w.taken[:0], n)\n", "	if len(w.early) > 0 {\n		news, w.early = w.early, nil\n		return news\n	}\n	w.taken = w.Take(w.taken[:0], n)\n"}}},
	{rule: "watch-newest", name: "changes after the first one are lost", file: "internal/base/watch/watch.go", in: []string{"internal/base/watch"}, edits: []edit{
		{"		e.queue, e.marked = nil, false\n", "		e.queue = nil\n"}}},
	{rule: "watch-newest", name: "keys that are left wake nobody", file: "internal/base/watch/watch.go", in: []string{"internal/base/watch"}, edits: []edit{
		{"	if w.head != nil {\n		w.signal()\n	}\n", ""}}},
	{rule: "watch-newest", name: "a take is not told", file: "allocsvr/section/pass.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"	if c.watched {\n		c.watch.Mark(uid)\n	}\n", ""}}},
	{rule: "watch-newest", name: "a raise is not told", file: "allocsvr/section/raise.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"	c.moved(uint64(r.key.UID))\n", ""}}},
	{rule: "watch-newest", name: "a raise of a section is not told", file: "allocsvr/section/raisemany.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"		c.movedAll()\n", ""}}},
	{rule: "watch-newest", name: "the end of a ticket is not told", file: "allocsvr/section/open.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"			c.moved(uint64(uid))\n", ""}}},
	{rule: "watch-newest", name: "the end of a ticket by time is not told", file: "allocsvr/section/open.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"		c.moved(uid)\n	})\n", "	})\n"}}},
	{rule: "watch-newest", name: "a mark that becomes known is not told", file: "allocsvr/section/watch.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"if known || c.state == Owned && !", "if c.state == Owned && !"}}},
	{rule: "watch-gone", name: "the watchers of a section that goes are not told", file: "allocsvr/section/section.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"	c.movedAll() // its watchers learn that it went\n", ""}}},
	{rule: "watch-gone", name: "the watchers of a section that arrives are not told", file: "allocsvr/section/section.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"	c.wake()\n	c.movedAll()\n	return true, nil", "	c.wake()\n	return true, nil"}}},
	{rule: "watch-gone", name: "the watchers of an owner without a lease are not told", file: "allocsvr/section/watch.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"known || c.state == Owned && !c.leased(now) || ", "known || "}}},
	{rule: "watch-gone", name: "the watchers of a section that does not arrive are not told", file: "allocsvr/section/watch.go", in: []string{"allocsvr/section"}, edits: []edit{
		{" || c.state != Owned && t.guide.FailFast() != nil {", " {"}}},
	{rule: "watch-strict", name: "a watch of a strict space does not look", file: "allocsvr/section/watch.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"				read.note(c)\n", ""}}},
	{rule: "watch-bounded", name: "a watch may have any number of keys", file: "internal/base/watch/watch.go", in: []string{"internal/base/watch"}, edits: []edit{
		{"if w.keys >= MostOfWatcher {", "if false {"}}},
	{rule: "watch-bounded", name: "a node may have any number of watched keys", file: "internal/base/watch/watch.go", in: []string{"internal/base/watch"}, edits: []edit{
		{"n > MostOfNode {", "n > 1<<62 {"}}},
	{rule: "watch-bounded", name: "a key that is removed and added again counts once", file: "internal/base/watch/watch.go", in: []string{"internal/base/watch"}, edits: []edit{
		{"	if !e.marked {\n		w.uncount()\n	}\n", "	w.uncount()\n"}}},
	{rule: "watch-grants", name: "a message that is not allowed ends the watch", file: "internal/wire/gate/authorize.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"		case *pb.WatchRequest:\n			refusal = &pb.WatchReply{Errors: rpc.WatchErrors(call.GetFirstId(), rpc.Keys(call.GetAdd()), err)}\n", ""}}},
	{rule: "watch-again", name: "a client forgets the keys of a section that went", file: "internal/sdk/call/watchstream.go", in: []string{"client"}, edits: []edit{
		{"	w.again(gone)\n	s.idle()\n", "	s.idle()\n"}}},
	{rule: "watch-again", name: "a client forgets the keys of a server that died", file: "internal/sdk/call/watchstream.go", in: []string{"client"}, edits: []edit{
		{"			w.leave(k, cause)\n		}\n	}\n	w.again(gone)\n", "			w.leave(k, cause)\n		}\n	}\n"}}},
	{rule: "watch-again", name: "a client waits for a silent server", file: "internal/sdk/call/watchstream.go", in: []string{"client"}, edits: []edit{
		{"func() { s.cancel(stream.ErrTimedOut) }", "func() {}"}}},
	{rule: "watch-again", name: "a client gives a key up that no server could watch in time", file: "internal/sdk/call/watch.go", in: []string{"client"}, edits: []edit{
		{"	w.later(again, watchPause)\n", ""}}},
	{rule: "watch-newest", name: "a client tells a key once", file: "internal/sdk/call/watch.go", in: []string{"client"}, edits: []edit{
		{"k.next, k.fresh = nil, false", "k.next = nil"}}},
	{rule: "watch-storm", name: "many keys come back at once", file: "internal/sdk/call/watch.go", in: []string{"internal/sdk/call"}, edits: []edit{
		{"	return watchSpread * time.Duration(min(keys, spreadKeys)) / spreadKeys\n", "	return 0\n"}}},
	{rule: "watch-bounded", name: "a client takes any number of keys", file: "internal/sdk/call/watch.go", in: []string{"client"}, edits: []edit{
		{"n > watch.MostOfWatcher {", "n > 1<<62 {"}}},
	{rule: "watch-shared", name: "a router watches keys that no caller watches any more", file: "router/watch.go", in: []string{"router"}, edits: []edit{
		{"		s.up.Remove(gone...)\n", "		_ = gone\n"}}},
	{rule: "watch-shared", name: "a router does not ask again for a key that could not be watched", file: "router/watch.go", in: []string{"router"}, edits: []edit{
		{"asked && (have == nil || !have.Ended) {", "asked && (have == nil || have != nil) {"},
		{"			s.keys.Drop(e)\n", ""}}},
	{rule: "watch-wait", name: "a long poll ends below its mark", file: "router/watch.go", in: []string{"router"}, edits: []edit{
		{"	for err == nil && u.Seq <= after {\n", "	for err == nil && u.Seq < after {\n"}}},
	{rule: "watch-wait", name: "a long poll waits for as long as it is asked to", file: "router/http_watch.go", in: []string{"router"}, edits: []edit{
		{"within := min(q.wait, line.LongestWait)", "within := q.wait"}}},
	{rule: "watch-wait", name: "a long poll waits for numbers after one that does not exist", file: "router/watch.go", in: []string{"router"}, edits: []edit{
		{"err == nil && after > now[0].Seq", "false"}}},
	{rule: "watch-grants", name: "a long poll needs no grant", file: "router/http_watch.go", in: []string{"tests/secure"}, edits: []edit{
		{"	if err := f.mayWatch(r.Context(), &pb.WatchRequest{Add: []*pb.Batch{q.batch}}); err != nil {\n		return nil, err\n	}\n", ""}}},
}
