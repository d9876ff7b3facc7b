package main

// allotMutants break the rules by which Sets divide the worker ids of global IDs. In
// allocsvr/globalid whole Sets make IDs, and every one is compared with all others.
var allotMutants = []mutant{
	{
		rule: "allot-after-promise", name: "a node of the root does not look again once it was promised the worker id",
		file: "allocsvr/globalid/workers/acquire.go", in: []string{"allocsvr/globalid"},
		edits: []edit{{old: "	err = w.names.Mine(ctx, b.pool.Namespace, b.pool.dc, b.worker)\n", new: "	err = ctx.Err()\n"}},
	},
	{
		rule: "allot-gains-registers", name: "worker ids are allotted that a node of the root has taken meanwhile",
		file: "allocsvr/globalid/workers/allot.go", in: []string{"allocsvr/globalid"},
		edits: []edit{{old: "		if !f.won || f.mark > w.now() {", new: "		if false {"}},
	},
	{
		rule: "allot-above", name: "a Set begins below what the root made under its worker ids",
		file: "allocsvr/globalid/workers/acquire.go", in: []string{"allocsvr/globalid"},
		edits: []edit{{old: "return max(Mark(found.Max), Mark(span.Above))", new: "_ = span; return Mark(found.Max)"}},
	},
	{
		rule: "allot-root-less", name: "the root uses the worker ids of other Sets",
		file: "allocsvr/globalid/namespaces/allot.go", in: []string{"allocsvr/globalid"},
		edits: []edit{{old: "if a.Above > 0 || !d.Member {", new: "if a.Above > 0 && d.Member {"}},
	},
	{
		rule: "allot-member", name: "a Set uses worker ids that it was not given",
		file: "allocsvr/globalid/namespaces/allot.go", in: []string{"allocsvr/globalid"},
		edits: []edit{{old: "	if d.Member {\n		return out\n	}\n	return Own", new: "	return Own"}},
	},
	{
		rule: "allot-twice", name: "a worker id is given to two Sets",
		file: "allocsvr/globalid/namespaces/allot.go", in: []string{"allocsvr/globalid/namespaces"},
		edits: []edit{{old: "slices.IndexFunc(d.Allotments, a.meets); at >= 0 {", new: "slices.IndexFunc(d.Allotments, a.meets); at >= 0 && false {"}},
	},
	{
		rule: "allot-confirmed-alone", name: "a Set hears of worker ids that the root still gains",
		file: "allocsvr/globalid/namespaces/allot.go", in: []string{"allocsvr/globalid/namespaces"},
		edits: []edit{{old: "return a.Cluster != cluster || a.Above == 0 })", new: "return a.Cluster != cluster })"}},
	},
	{
		rule: "allot-settled", name: "a restored root makes IDs before the other Sets told what they have",
		file: "allocsvr/globalid/namespaces/allot.go", in: []string{"allocsvr/globalid"},
		edits: []edit{{old: "	if c.Member() {\n		return nil\n	}\n	return c.cfg.Root.Settled(ctx)", new: "	return nil"}},
	},
	{
		rule: "allot-settled-after-windows", name: "a settled root makes IDs though a restored Set may have forgotten worker ids in use",
		file: "allocsvr/globalid/service.go", in: []string{"allocsvr/globalid"},
		edits: []edit{{old: "	} else if s.cfg.Root.Elsewhere() != nil {\n", new: "	} else if false {\n"}},
	},
	{
		rule: "allot-settle-takes-over", name: "a restored root does not take over what the other Sets have",
		file: "allocsvr/globalid/namespaces/allot.go", in: []string{"allocsvr/globalid"},
		edits: []edit{{old: "	for _, a := range other.Allotments {\n		if slices", new: "	for _, a := range other.Allotments[:0] {\n		if slices"}},
	},
	{
		rule: "allot-join", name: "a cluster that has made IDs joins",
		file: "allocsvr/globalid/namespaces/allot.go", in: []string{"allocsvr/globalid"},
		edits: []edit{{old: "	if len(d.Datacenters) > 0 {\n", new: "	if false {\n"}},
	},
	{
		rule: "allot-datacenter", name: "a datacenter id has one name in each Set",
		file: "allocsvr/globalid/namespaces/view.go", in: []string{"allocsvr/globalid"},
		edits: []edit{{old: "return !recorded || binds ||", new: "return !recorded ||"}, {old: "_, binds, err := v.bind", new: "_, _, err := v.bind"}},
	},
	{
		rule: "allot-root-keeps", name: "the root gives its last worker id away",
		file: "allocsvr/globalid/workers/allot.go", in: []string{"allocsvr/globalid"},
		edits: []edit{{old: "max(1, free.Size()/2), p.Own.Size()-keep, run.Size())", new: "free.Size(), run.Size())"}, {old: "	if free.Size() < least || p.Own.Size() <= keep {", new: "	if free.Size() < min(1, least) {"}},
	},
	{
		rule: "allot-settled-first", name: "a restored root records what it is asked for before the other Sets told what they know",
		file: "allocsvr/globalid/namespaces/catalog.go", in: []string{"allocsvr/globalid"},
		edits: []edit{{old: "	if err := c.writes(ctx); err != nil {\n		return ns, nil, err\n	}\n", new: ""}},
	},
	{
		rule: "allot-settled-first", name: "a restored root records what is configured before the other Sets told what they know",
		file: "allocsvr/globalid/namespaces/catalog.go", in: []string{"allocsvr/globalid"},
		edits: []edit{{old: "	if err := c.writes(ctx); err != nil {\n		return err\n	}\n", new: ""}},
	},
	{
		rule: "allot-one-content", name: "a version of a namespace is another one in a Set than at the root",
		file: "allocsvr/globalid/namespaces/allot.go", in: []string{"allocsvr/globalid/namespaces"},
		edits: []edit{{old: "if have.Version == ns.Version && have != ns {", new: "if false {"}},
	},
	{
		rule: "allot-half-done", name: "a reservation from a backup stands against what became of it",
		file: "allocsvr/globalid/namespaces/allot.go", in: []string{"allocsvr/globalid"},
		edits: []edit{{old: "return b.Above == 0 && b.meets(a) })", new: "return false })"}},
	},
	{
		rule: "allot-half-done", name: "what a dead node began to allot is another's for ever",
		file: "allocsvr/globalid/workers/allot.go", in: []string{"allocsvr/globalid"},
		edits: []edit{{old: "			reserved = &a\n			continue\n", new: "			continue\n"}},
	},
	{
		rule: "allot-asked-once", name: "each call that the root cannot help asks it again",
		file: "allocsvr/globalid/namespaces/ask.go", in: []string{"allocsvr/globalid"},
		edits: []edit{{old: "	if time.Since(h.vain) < hearPause {", new: "	if false {"}},
	},
	{
		rule: "allot-asked-once", name: "calls at the same moment ask the root for the same, one after the other",
		file: "allocsvr/globalid/namespaces/ask.go", in: []string{"allocsvr/globalid"},
		edits: []edit{{old: "	if got() {\n		return nil\n	}\n", new: ""}},
	},
	{
		rule: "allot-root-away", name: "what a Set knows itself waits for a root that does not answer",
		file: "allocsvr/globalid/namespaces/ask.go", in: []string{"allocsvr/globalid"},
		edits: []edit{{old: "min(time.Until(end)/2, newestPatience)", new: "time.Until(end)"}},
	},
	{
		rule: "allot-root-away", name: "a node of the root that takes no packets uses up the time for the others",
		file: "allocsvr/node.go", in: []string{"allocsvr"},
		edits: []edit{{old: "min(patience, time.Until(end)/time.Duration(left))", new: "min(patience, time.Until(end)); _ = left"}},
	},
	{
		rule: "allot-for-each", name: "one Set is given what those that have none need",
		file: "allocsvr/globalid/workers/allot.go", in: []string{"allocsvr/globalid"},
		edits: []edit{{old: "			keep += part\n", new: ""}},
	},
	{
		rule: "allot-for-each", name: "what is kept for a Set is not given to it either",
		file: "allocsvr/globalid/workers/allot.go", in: []string{"allocsvr/globalid"},
		edits: []edit{{old: "	if !has(cluster) {\n", new: "	if false {\n"}},
	},
	{
		rule: "allot-numbered", name: "a slow call confirms what another one has begun",
		file: "allocsvr/globalid/namespaces/allot.go", in: []string{"allocsvr/globalid"},
		edits: []edit{{old: "a.Above, a.Number = 0, max(1, rand.Uint64())", new: "a.Above, a.Number = 0, rand.Uint64N(1)"}},
	},
}
