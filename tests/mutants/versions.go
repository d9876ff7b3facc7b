package main

// versionMutants break the rules of the protocol that a cluster requires of sessions.
var versionMutants = []mutant{
	{
		rule: "required-protocol", name: "an older session gets a lease",
		file: "storesvr/replica.go", in: []string{"storesvr"},
		edits: []edit{{old: "	if err := c.fits(ctx, req.Session, req.Name); err != nil {\n", new: "	if err := c.fits(ctx, req.Session, req.Name); false {\n"}},
	},
	{
		rule: "required-protocol", name: "an older session gets a promise",
		file: "storesvr/replica.go", in: []string{"storesvr"},
		edits: []edit{{old: "		if err := r.core.fits(ctx, by.session, by.node); err != nil {\n", new: "		if err := r.core.fits(ctx, by.session, by.node); false {\n"}},
	},
	{
		rule: "required-protocol", name: "sessions are held to a raise after its commit only",
		file: "storesvr/gate.go", in: []string{"storesvr"},
		edits: []edit{{old: "	need := max(c.gate.required, c.gate.coming)\n", new: "	need := c.gate.required\n"}},
	},
	{
		rule: "required-protocol", name: "a raise passes over an older session",
		file: "storesvr/gate.go", in: []string{"storesvr", "internal/wire/storeclient"},
		edits: []edit{{old: "said && own < protocol {", new: "said && own < 0 {"}},
	},
	{
		rule: "required-protocol", name: "a raise passes in the grace",
		file: "storesvr/gate.go", in: []string{"storesvr"},
		edits: []edit{{old: "	if left := c.acceptor.Grace(now); left > 0 {\n", new: "	if left := c.acceptor.Grace(now); left < 0 {\n"}},
	},
	{
		rule: "required-protocol", name: "the requirement falls",
		file: "storesvr/gate.go", in: []string{"storesvr"},
		edits: []edit{{old: "			if protocol <= max(c.gate.required, c.gate.coming) {\n", new: "			if protocol == max(c.gate.required, c.gate.coming) {\n"},
			{old: "	if used > max(g.required, g.coming) {\n", new: "	if used > 0 {\n"}},
	},
	{
		rule: "required-protocol", name: "a store does not look at what its cluster uses already",
		file: "storesvr/gate.go", in: []string{"storesvr"},
		edits: []edit{{old: "	if registers[seq.RecordRegister].Max > 0 {\n", new: "	if false {\n"}},
	},
	{
		rule: "required-protocol", name: "a node of before makes a Set and nothing is required",
		file: "storesvr/gate.go", in: []string{"storesvr"},
		edits: []edit{{old: "ch.Register == seq.RecordRegister && ch.State.Max > 0", new: "false"}},
	},
	{
		rule: "required-protocol", name: "a raise is not on disk",
		file: "storesvr/disk/disk.go", in: []string{"storesvr/disk", "storesvr"},
		edits: []edit{{old: "	if u.Required > 0 {\n", new: "	if false {\n"}},
	},
	{
		rule: "required-protocol", name: "fewer than W stores are enough",
		file: "internal/wire/storeclient/require.go", in: []string{"internal/wire/storeclient"},
		edits: []edit{{old: "		if len(answered(asked)) < need {\n", new: "		if len(answered(asked)) < 1 {\n"}},
	},
	{
		rule: "required-protocol", name: "stores are changed before all were asked",
		file: "internal/wire/storeclient/require.go", in: []string{"internal/wire/storeclient"},
		edits: []edit{{old: "[]bool{true, false} {", new: "[]bool{false} {"}},
	},
	{
		rule: "required-protocol", name: "a store that was away hears nothing",
		file: "internal/wire/storeclient/require.go", in: []string{"internal/wire/storeclient"},
		edits: []edit{{old: "		if s.id.Required < want && want <= s.id.Protocol {\n", new: "		if false {\n"}},
	},
	{
		rule: "required-protocol", name: "a learner begins without",
		file: "storesvr/init.go", in: []string{"storesvr"},
		edits: []edit{{old: ", Required: cfg.Required})", new: "})"}},
	},
	{
		rule: "required-protocol", name: "a learner that was made without is filled without",
		file: "internal/ops/storeadmin/repair.go", in: []string{"internal/ops/storeadmin"},
		edits: []edit{{old: "		if want := s.id.Required; want > learner.id.Required {\n", new: "		if want := s.id.Required; want < 0 {\n"}},
	},
	{
		rule: "required-protocol", name: "a backup forgets the protocol",
		file: "internal/ops/storeadmin/snapshot.go", in: []string{"internal/ops/storeadmin"},
		edits: []edit{{old: "max(snap.Required, s.id.Required)", new: "snap.Required"}},
	},
	{
		rule: "required-protocol-on-etcd", name: "an older session is passed over",
		file: "internal/etcd/etcdstore/require.go", in: []string{"internal/etcd/etcdstore"},
		edits: []edit{{old: "		if _, err := c.older(a.Results[1].KVs, protocol); err != nil {\n", new: "		if _, err := c.older(a.Results[1].KVs, protocol); false {\n"}},
	},
	{
		rule: "required-protocol-on-etcd", name: "builds of before read nothing that stops them",
		file: "internal/etcd/etcdstore/values.go", in: []string{"internal/etcd/etcdstore"},
		edits: []edit{{old: "	if m.Required >= version.Gate || ", new: "	if m.Required > version.Gate || "}},
	},
	{
		rule: "required-protocol-on-etcd", name: "a cluster of a later build is written to",
		file: "internal/etcd/etcdstore/cluster.go", in: []string{"internal/etcd/etcdstore"},
		edits: []edit{{old: "	case now.Required > version.Protocol:\n		c.gone = now.tooNew()\n", new: ""}},
	},
	{
		rule: "older-builds-drop-nothing", name: "a database that requires a protocol keeps its format",
		file: "storesvr/disk/types.go", in: []string{"storesvr/disk"},
		edits: []edit{{old: "	if required >= version.Gate || ", new: "	if required > version.Gate || "}},
	},
	{
		rule: "older-builds-drop-nothing", name: "a floor of sections is left to them",
		file: "storesvr/disk/types.go", in: []string{"storesvr/disk"},
		edits: []edit{{old: " || floors.Section > 0", new: ""}},
	},
	{
		rule: "older-builds-drop-nothing", name: "they restore what requires a protocol",
		file: "storesvr/backup/file.go", in: []string{"storesvr/backup"},
		edits: []edit{{old: "	if m.Required >= version.Gate || m.Floors.Section > 0 {\n", new: "	if m.Required > version.Gate || m.Floors.Section > 0 {\n"}},
	},
	{
		rule: "older-builds-drop-nothing", name: "a restore forgets the protocol",
		file: "storesvr/backup/restore.go", in: []string{"storesvr/backup"},
		edits: []edit{{old: "Required: required, ", new: "Required: 0 * required, "}},
	},
}
