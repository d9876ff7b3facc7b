package main

// onceMutants break the rules of request ids between callers and sections.
var onceMutants = []mutant{
	{rule: "request-ids-are-bounded", name: "an empty id is taken", file: "seq/check.go", in: []string{"allocsvr/api"}, edits: []edit{
		{"	if len(id) == 0 || len(id) > MaxRequestID {\n", "	if len(id) > MaxRequestID {\n"}}},
	{rule: "request-ids-are-bounded", name: "an id of any length is taken", file: "seq/check.go", in: []string{"allocsvr/api"}, edits: []edit{
		{"	if len(id) == 0 || len(id) > MaxRequestID {\n", "	if len(id) == 0 {\n"}}},
	{rule: "request-ids-are-bounded", name: "the ids of a batch are not checked", file: "seq/check.go", in: []string{"allocsvr/api"}, edits: []edit{
		{"		if CheckRequestID(\"\", id) != nil {\n", "		if false {\n"}}},
	{rule: "request-ids-are-bounded", name: "a batch has fewer ids than keys", file: "seq/check.go", in: []string{"allocsvr/api"}, edits: []edit{
		{"len(b.IDs) != 0 && len(b.IDs) != n {", "len(b.IDs) > n {"}}},
	{rule: "request-ids-are-bounded", name: "a batch has more ids than keys", file: "seq/check.go", in: []string{"allocsvr/api"}, edits: []edit{
		{"len(b.IDs) != 0 && len(b.IDs) != n {", "len(b.IDs) != 0 && len(b.IDs) < n {"}}},
	{rule: "request-ids-are-bounded", name: "a transaction of Redis keeps an id of any length", file: "router/line/resp/idempotent.go", in: []string{"router/line/resp"}, edits: []edit{
		{"	if err := seq.CheckRequestID(\"ID\", id); err != nil {", "	if err := error(nil); err != nil {"}}},
	{rule: "request-ids-are-bounded", name: "the bytes of ids are not counted among what is in work", file: "internal/wire/rpc/requests.go", in: []string{"internal/wire/rpc"}, edits: []edit{
		{"			ids += len(id)\n", "			_ = id\n"}}},
	{rule: "ordinary-spaces-refuse-ids", name: "an AllocSvr takes by an id that it does not keep", file: "allocsvr/api/idempotent.go", in: []string{"allocsvr/api"}, edits: []edit{
		{"	if err := space.KeepsIDs(); err != nil {\n		return nil, err\n	}\n	out :=", "	out :="}}},
	{rule: "ordinary-spaces-refuse-ids", name: "the SDK sends an id that is not kept", file: "seq/take.go", in: []string{"client"}, edits: []edit{
		{"	return space.KeepsIDs()\n", "	return nil\n"}}},
	{rule: "ordinary-spaces-refuse-ids", name: "a pipeline is refused with the ids in it", file: "router/line/pipeline.go", in: []string{"router/line/resp"}, edits: []edit{
		{"	case TakeTag, TakeID:\n", "	case TakeTag, TakeID, TakeOnce:\n"},
		{"	for _, g := range groups(ops, TakeOnce, sequence) {\n		p.calls = append(p.calls, func(ctx context.Context) { p.sequences(ctx, g) })\n	}\n", ""}}},
	{rule: "retry-repeats-its-id", name: "the retry of a single take has an id of its own", file: "internal/sdk/call/next.go", in: []string{"client"}, edits: []edit{
		{"		keys.Requests = []stream.Request{*t.request}\n", "		again, _ := stream.RequestIn(space, nil)\n		keys.Requests = []stream.Request{*again}\n"}}},
	{rule: "retry-repeats-its-id", name: "a batch on a stream has no ids", file: "internal/sdk/stream/batch.go", in: []string{"client"}, edits: []edit{
		{"	if keys.Requests != nil {\n", "	if false {\n"}}},
	{rule: "retry-repeats-its-id", name: "a call of its own has no ids", file: "internal/sdk/stream/takes.go", in: []string{"client"}, edits: []edit{
		{"	if t.Requests != nil {\n", "	if false {\n"}}},
	{rule: "retry-repeats-its-id", name: "what an order asks for again has other ids", file: "internal/sdk/stream/order.go", in: []string{"client"}, edits: []edit{
		{"namedAt(o.once, at))", "nil)"}}},
	{rule: "retry-repeats-its-id", name: "a router makes an id of its own", file: "router/server.go", in: []string{"router"}, edits: []edit{
		{"	if r.RequestId != nil {\n", "	if false {\n"}}},
	{rule: "retry-repeats-its-id", name: "a router drops the ids of a batch", file: "router/idempotent.go", in: []string{"router"}, edits: []edit{
		{"	if len(b.IDs) == 0 {\n", "	if len(b.IDs) >= 0 {\n"}}},
	{rule: "retry-repeats-its-id", name: "an ID of Redis is read and dropped", file: "router/line/resp/idempotent.go", in: []string{"router/line/resp"}, edits: []edit{
		{"	o.Once.Request.ID = id\n", "	_ = id\n"}}},
	{rule: "retry-repeats-its-id", name: "numbers that were taken near have no id", file: "internal/sdk/call/local.go", in: []string{"client"}, edits: []edit{
		{"o.Where() == nil || o.Named() {", "o.Where() == nil {"}}},
	{rule: "conflict-carries-the-original", name: "a call's conflict says nothing", file: "internal/wire/rpc/errors.go", in: []string{"allocsvr/api"}, edits: []edit{
		{"			detail.First, detail.Count = uint64(conflict.First), conflict.Count\n", "			_ = conflict\n"}}},
	{rule: "conflict-carries-the-original", name: "a key's conflict says nothing", file: "internal/wire/rpc/errors.go", in: []string{"allocsvr/api"}, edits: []edit{
		{"		k.First, k.Count = &first, &conflict.Count\n", "		_ = first\n"}}},
	{rule: "conflict-carries-the-original", name: "HTTP does not tell what the id has got", file: "router/json.go", in: []string{"router"}, edits: []edit{
		{"		what.First, what.Count = uint64(conflict.First), conflict.Count\n", "		_ = conflict\n"}}},
	{rule: "one-id-a-request", name: "the header goes before a body with another id", file: "router/idempotent.go", in: []string{"router"}, edits: []edit{
		{"!bytes.Equal(*body, id) {", "false {"}}},
	{rule: "one-id-a-request", name: "a batch with the header is taken without it", file: "router/idempotent.go", in: []string{"router"}, edits: []edit{
		{"	if r.URL.Path == batchPath {\n", "	if false {\n"}}},
	{rule: "one-id-a-request", name: "the same log gets other ids", file: "cmd/seqctl/replay/run.go", in: []string{"cmd/seqctl/replay"}, edits: []edit{
		{"j.line, j.message.Sender, j.message.Seconds)", "j.line, j.message.Sender, time.Now().UnixNano())"}}},
	{rule: "unknown-outcomes-have-a-name", name: "an unknown outcome is an internal error", file: "allocsvr/logs/log.go", in: []string{"allocsvr/api"}, edits: []edit{
		{"fmt.Errorf(\"%w, repeat the request with its id\", seq.ErrOutcomeUnknown)", "errors.New(\"outcome unknown, repeat the request with its id\")"}}},
	{rule: "refusals-of-exact-have-names", name: "an expired id is an internal error", file: "allocsvr/api/idempotent.go", in: []string{"allocsvr/api"}, edits: []edit{
		{"	{exact.ErrExpired, seq.ErrIDExpired},\n", ""}}},
}
