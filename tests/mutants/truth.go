package main

// truthMutants break two groups of rules: the clocks that bound worker ids, and the changes that are
// answered once they are true.
var truthMutants = []mutant{
	{rule: "one-bound-of-clocks", name: "on etcd any mark is taken", file: "internal/etcd/etcdstore/walls.go", in: []string{"internal/etcd/etcdstore"}, edits: []edit{
		{"	if beyond*2 < len(votes) ||", "	if beyond >= 0 ||"}}},
	{rule: "status-names-clocks", name: "stores are compared with the node that answers", file: "internal/ops/survey/clocks.go", in: []string{"internal/ops/survey"}, edits: []edit{
		{"	middle := known[len(known)/2].GetClockAheadMs()\n", "	middle := int64(0)\n"}}},
	{rule: "status-names-clocks", name: "two stores have a median", file: "internal/ops/survey/clocks.go", in: []string{"internal/ops/survey"}, edits: []edit{
		{"	if len(known) < 3 {\n", "	if len(known) < 2 {\n"}}},
	{rule: "one-bound-of-clocks", name: "a clock that jumped vouches for itself", file: "internal/etcd/etcdstore/walls.go", in: []string{"internal/etcd/etcdstore"}, edits: []edit{
		{"	own.wall = w.steady().UnixMilli()\n", "	own.wall = w.wall().UnixMilli()\n"}}},
	{rule: "one-bound-of-clocks", name: "of two clocks the younger decides", file: "internal/etcd/etcdstore/walls.go", in: []string{"internal/etcd/etcdstore"}, edits: []edit{
		{"v.life < oldest.life)", "v.life > oldest.life)"}}},
	{rule: "one-bound-of-clocks", name: "half of the clocks outvote the node's", file: "quorum/wall.go", in: []string{"quorum"}, edits: []edit{
		{"	case low > 0:\n		return low\n", "	case low > 0:\n		return high\n"}}},
	{rule: "one-bound-of-clocks", name: "a store that did not answer for long still tells the time", file: "quorum/wall.go", in: []string{"quorum"}, edits: []edit{
		{"s.timed && now < l.sent[s.index].Load()+int64(l.term)", "s.timed && now > 0"}}},
	{rule: "one-bound-of-clocks", name: "a node far behind takes worker ids", file: "allocsvr/globalid/workers/mark.go", in: []string{"allocsvr/globalid"}, edits: []edit{
		{"known && -ahead > maxBehind", "known && -ahead > 1000*maxBehind"}}},
	{rule: "an-id-of-no-use-is-drawn-anew", name: "a node waits for the clock to be where it was", file: "allocsvr/globalid/workers/lease.go", in: []string{"allocsvr/globalid"}, edits: []edit{
		{"	if far <= reachOf(", "	if far > 0 || far <= reachOf("}}},
	{rule: "an-id-of-no-use-is-drawn-anew", name: "a clock that is wrong now has another id drawn", file: "allocsvr/globalid/workers/lease.go", in: []string{"allocsvr/globalid"}, edits: []edit{
		{"!known || ahead.Abs() > maxOff {\n		return false // it", "ahead < -1<<60 && known {\n		return false // it"}}},
	{rule: "an-id-of-no-use-is-drawn-anew", name: "a clock that goes to and fro takes the whole pool", file: "allocsvr/globalid/workers/lease.go", in: []string{"allocsvr/globalid"}, edits: []edit{
		{"Held: p.Held + 2, Size: p.Size", "Held: 0, Size: p.Size"}}},
	{rule: "a-layout-has-begun", name: "an epoch of the future is recorded", file: "allocsvr/globalid/namespaces/namespace.go", in: []string{"allocsvr/globalid"}, edits: []edit{
		{"begins.After(now.Add(EpochTolerance))", "begins.IsZero()"}}},
	{rule: "a-change-is-true-when-answered", name: "the owner of a tag hears of it later", file: "allocsvr/segment/told.go", in: []string{"allocsvr/segment"}, edits: []edit{
		{"			if !done[h] {", "			if len(done) == 0 {"}}},
	{rule: "a-change-is-true-when-answered", name: "a new owner goes by what it knew", file: "allocsvr/segment/acquire.go", in: []string{"allocsvr/segment"}, edits: []edit{
		{"	if _, err := reread(ctx); err != nil {", "	if err := ctx.Err(); err != nil {"}}},
	{rule: "a-change-is-true-when-answered", name: "a lease that was broken is taken for whole", file: "allocsvr/segment/take.go", in: []string{"allocsvr/segment"}, edits: []edit{
		{"	if !c.isFresh(now) {", "	if c.hold == nil {"}}},
	{rule: "a-change-is-true-when-answered", name: "a tag stays retired for a node that has heard no better", file: "allocsvr/segment/take.go", in: []string{"allocsvr/segment"}, edits: []edit{
		{"if errors.Is(err, errStale) || errors.Is(err, seq.ErrRetired) {", "if errors.Is(err, errStale) {"}}},
	{rule: "a-change-is-true-when-answered", name: "a number is of the template of before", file: "allocsvr/segment/numbers.go", in: []string{"allocsvr/segment"}, edits: []edit{
		{"		if entry.Format == was {\n", "		if entry.Format == was || true {\n"},
		{"		if entry, form, err = s.form(ctx, name); err != nil {", "		if entry, _, err = s.form(ctx, name); err != nil {"}}},
	{rule: "a-change-is-true-when-answered", name: "nodes hear of a retired namespace later", file: "allocsvr/globalid/workers/workers.go", in: []string{"allocsvr/globalid"}, edits: []edit{
		{"			if who == 0 || done[who] || !living[who] {", "			if who == 0 || done[who] || living[who] {"}}},
	{rule: "a-change-is-true-when-answered", name: "windows of clients are passed over", file: "allocsvr/globalid/workers/workers.go", in: []string{"allocsvr/globalid"}, edits: []edit{
		{"				e.Lent = max(e.Lent, m)\n", ""}}},
	{rule: "a-change-is-true-when-answered", name: "a window that ran out is extended under an older document", file: "allocsvr/globalid/workers/lease.go", in: []string{"allocsvr/globalid"}, edits: []edit{
		{"	if lapsed { // what", "	if lapsed && len(open) == 0 { // what"}}},
	{rule: "a-change-is-true-when-answered", name: "a namespace stays retired for a node that has heard no better", file: "allocsvr/globalid/workers/issuer.go", in: []string{"allocsvr/globalid"}, edits: []edit{
		{"	v, err := i.w.names.Read(ctx)\n", "	v := i.w.names.Known()\n"}}},
	{rule: "sets-ask-ahead", name: "a Set asks once a caller comes", file: "allocsvr/globalid/namespaces/catalog.go", in: []string{"allocsvr/globalid"}, edits: []edit{
		{"		if !c.askAhead(ctx, v) {", "		if ctx.Err() != nil && !c.askAhead(ctx, v) {"}}},
}
