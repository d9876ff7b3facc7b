package main

// transportMutants break the rules of connections and of what is told about them.
var transportMutants = []mutant{
	{rule: "tls-by-the-files-of-now", name: "a client goes by the files of its start", file: "internal/wire/rpc/tls.go", in: []string{"internal/wire/rpc"}, edits: []edit{
		{"	m := c.tls.current()\n", "	m := c.tls.loaded\n"}}},
	{rule: "tls-by-the-files-of-now", name: "a listener goes by the files of its start", file: "internal/wire/rpc/tls.go", in: []string{"internal/wire/rpc"}, edits: []edit{
		{"			m := t.current()\n", "			m := t.loaded\n"}}},
	{rule: "tls-by-the-files-of-now", name: "a broken file is told with every connection", file: "internal/wire/rpc/tls.go", in: []string{"internal/wire/rpc"}, edits: []edit{
		{"			t.told = err.Error()\n", ""}}},
	{rule: "unread-replies-are-bounded", name: "a peer that reads nothing is served on", file: "internal/wire/gate/conns.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"	if t.unread.Load() <= limit {\n", "	if true {\n"}}},
	{rule: "unread-replies-are-bounded", name: "much that is unread elsewhere changes nothing", file: "internal/wire/gate/conns.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"		limit = fewUnread\n", "		limit = maxUnread\n"}}},
	{rule: "unread-replies-are-bounded", name: "what a closed connection has not read counts for ever", file: "internal/wire/gate/conns.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"func (t *traffic) forget() { t.all.Add(-t.unread.Swap(0)) }", "func (t *traffic) forget() {}"}}},
	{rule: "unread-replies-are-bounded", name: "a reply that was dropped counts for ever", file: "internal/wire/gate/codec.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"		c.traffic.gone(c.bytes)\n", ""}}},
	{rule: "unread-replies-are-bounded", name: "a reply that is never given back counts for ever", file: "internal/wire/gate/codec.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"	runtime.AddCleanup(h, (*count).end, h.count)\n", "	_ = runtime.NumCPU\n"}}},
	{rule: "unread-replies-are-bounded", name: "one large reply has the calls beside it refused", file: "internal/wire/gate/codec.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"min(int64(cap(*buf)), maxUnread/2)", "int64(cap(*buf))"}}},
	{rule: "unfinished-messages-are-bounded", name: "a connection may begin any number of messages", file: "internal/wire/gate/conns.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"	if t.unfinished.Add(n) > limit {\n", "	if t.unfinished.Add(n) > limit && false {\n"}}},
	{rule: "cancelled-calls-are-bounded", name: "calls are cancelled without end", file: "internal/wire/gate/resets.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"		return 0, errCancels\n	}\n	return n, err\n", "		return n, err\n	}\n	return n, err\n"}, {"	_ = w.Close() // its reader ends\n", ""}}},
	{rule: "cancelled-calls-are-bounded", name: "calls that the server resets cost nothing", file: "internal/wire/gate/resets.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"f.kind == http2.FrameRSTStream && f.code != http2.ErrCodeNo && !w.long", "false && !w.long"}}},
	{rule: "cancelled-calls-are-bounded", name: "the next connection does not wait", file: "internal/wire/gate/cancels.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"	time.Sleep(pause)\n", ""}}},
	{rule: "cancelled-calls-are-bounded", name: "what was served is saved up without end", file: "internal/wire/gate/resets.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"w != nil && w.served.Load() < w.by.burst", "w != nil"}}},
	{rule: "cancelled-calls-are-bounded", name: "strangers call without end", file: "internal/wire/gate/cancels.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"		t.wire.cancelled(1)\n", ""}}},
	{rule: "cancelled-calls-are-bounded", name: "who cancels is remembered for ever", file: "internal/wire/gate/cancels.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"	if len(c.peers) < maxPeers {\n", "	if true {\n"}}},
	{rule: "callers-may-give-up", name: "an outage closes connections", file: "internal/wire/gate/resets.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"			if !w.long(f.stream, now) {\n", "			if true {\n"}}},
	{rule: "callers-may-give-up", name: "an attempt that another one overtook counts", file: "internal/wire/gate/resets.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"	calls -= lower(&w.served, calls)\n", ""}}},
	{rule: "callers-may-give-up", name: "a node is closed for what its callers cancel", file: "internal/wire/gate/cancels.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"		case auth.Store, auth.Alloc, auth.Router:\n			return nil\n", "		case auth.Store, auth.Alloc, auth.Router:\n			return id\n"}}},
	{rule: "open-calls-are-bounded", name: "a server has any number of calls open", file: "internal/wire/gate/streams.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"	return all > limit || own > 1", "	return false && own > 1"}}},
	{rule: "open-calls-are-bounded", name: "what a closed connection had open counts for ever", file: "internal/wire/gate/streams.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"	for stream := range w.open {\n		w.ends(stream)\n	}\n", ""}}},
	{rule: "open-calls-are-bounded", name: "a call that was answered stays open", file: "internal/wire/gate/resets.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"f.kind == http2.FrameRSTStream || f.kind == http2.FrameHeaders && f.flags&http2.FlagHeadersEndStream != 0", "f.kind == http2.FrameRSTStream && f.flags == http2.FlagHeadersEndStream"}}},
	{rule: "open-calls-are-bounded", name: "strangers take the places of callers with certificates", file: "internal/wire/gate/streams.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"		return c.proven\n", "		return c.strange\n"}}},
	{rule: "places-aside", name: "renewals find no place among open calls", file: "internal/wire/gate/streams.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"		limit += maxAside\n", "		limit += 0\n"}}},
	{rule: "everybody-has-a-share", name: "one caller may have it all", file: "internal/wire/gate/admission.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"	return sum <= limit/2 || sum <= limit-limit/8 && own <= limit/sharers\n", "	return sum <= limit\n"}}},
	{rule: "everybody-has-a-share", name: "no room for who comes late", file: "internal/wire/gate/admission.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"sum <= limit-limit/8 && ", "sum <= limit && "}}},
	{rule: "callers-take-turns", name: "the call that waits first is served first", file: "internal/wire/gate/turns.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"	p.due = max(a.clock, a.paid[who]) + p.cost\n", "	p.due = now.UnixNano()\n"}}},
	{rule: "callers-take-turns", name: "a large call waits for ever behind new callers", file: "internal/wire/gate/turns.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"	a.clock += max(1, p.cost/int64(len(a.callers)))\n", ""}}},
	{rule: "callers-take-turns", name: "messages are unpacked at once", file: "internal/wire/gate/calls.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"	if c.turns == nil || c.stream", "	if true || c.stream"}}},
	{rule: "callers-take-turns", name: "calls that are in for long hold up others", file: "internal/wire/gate/turns.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"		if p.begun && p.since.After(before) {\n", "		if p.begun {\n"}}},
	{rule: "callers-take-turns", name: "who leaves the line stays in it", file: "internal/wire/gate/admission.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"		a.unwait(p)\n", ""}}},
	{rule: "places-aside", name: "renewals wait behind callers", file: "internal/wire/gate/aside.go", in: []string{"internal/wire/gate"}, edits: []edit{
		{"	if method == pb.Store_Renew_FullMethodName {\n", "	if false {\n"}}},
	{rule: "large-batches-wait-at-the-caller", name: "all large batches are sent at once", file: "internal/sdk/call/nextbatch.go", in: []string{"client"}, edits: []edit{
		{"	if keys > maxQueued {\n		if err", "	if false {\n		if err"}}},
	{rule: "spans-are-counted", name: "a span that finds no room is not counted",
		file: "internal/process/tracing/otlp/queue.go", in: []string{"internal/process/tracing/otlp"}, edits: []edit{
			{"		q.to.waiting.Add(-1)\n		q.to.dropped.Add(1)\n", "		q.to.waiting.Add(-1)\n"}}},
	{rule: "spans-cost-no-time", name: "the end waits for a batch that hangs",
		file: "internal/process/tracing/otlp/queue.go", in: []string{"internal/process/tracing/otlp"}, edits: []edit{
			{"	defer context.AfterFunc(s.life, cancel)()\n", ""}}},
}
