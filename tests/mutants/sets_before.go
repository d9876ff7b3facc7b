package main

// beforeSetsMutants break the rules of backups from before a cluster was a Set, or had all of its Sets.
var beforeSetsMutants = []mutant{
	{
		rule: "backup-before-sets", name: "what an operator says of a backup changes nothing",
		file: "storesvr/backup/ofset.go", in: []string{"storesvr/backup"},
		edits: []edit{{old: "	case !o.WasSet && !of.founded:\n", new: "	case !of.founded:\n"}},
	},
	{
		rule: "backup-before-sets", name: "a root whose record was read before its map has everything",
		file: "storesvr/backup/ofset.go", in: []string{"storesvr/backup"},
		edits: []edit{{old: "	case !o.WasSet && !of.founded:\n", new: "	case !o.WasSet:\n"}},
	},
	{
		rule: "backup-before-sets", name: "a backup of a Set forgets its map",
		file: "storesvr/backup/ofset.go", in: []string{"storesvr/backup", "cmd/seqctl/storectl"},
		edits: []edit{{old: "	case o.WasSet && !of.Alone:\n", new: "	case false:\n"}},
	},
	{
		rule: "backup-before-sets", name: "nodes that know no limbo serve a root that is to be settled",
		file: "storesvr/backup/ofset.go", in: []string{"storesvr/backup"},
		edits: []edit{{old: "return states, max(m.Required, version.Sets), nil", new: "return states, max(m.Required, version.Sets-version.Sets), nil"}},
	},
	{
		rule: "backup-before-sets", name: "a map without Sets is not that of a backup",
		file: "sets/map.go", in: []string{"storesvr/backup"},
		edits: []edit{{old: "len(m.Sets) == 0 && !m.Restored || m.Heard {", new: "len(m.Sets) == 0 || m.Heard {"}},
	},
	{
		rule: "backup-before-sets", name: "a restore of a cluster that is alone does not ask",
		file: "cmd/seqctl/storectl/inspect.go", in: []string{"cmd/seqctl/storectl"},
		edits: []edit{{old: "	case restored == nil || !of.Alone:\n", new: "	case restored == nil || !restored.WasSet:\n"}},
	},
	{
		rule: "settle-knows-all-sets", name: "a root whose map names no other Set keeps everything",
		file: "internal/ops/setadmin/settle.go", in: []string{"allocsvr"},
		edits: []edit{{old: "len(s.m.Sets) < 2 {", new: "false {"}},
	},
	{
		rule: "settle-knows-all-sets", name: "a Set that another has heard of is not missed",
		file: "internal/ops/setadmin/missing.go", in: []string{"allocsvr"},
		edits: []edit{{old: "			if !known {\n", new: "			if false && !known {\n"}},
	},
	{
		rule: "settle-knows-all-sets", name: "a Set that has got sections of another is not missed",
		file: "internal/ops/setadmin/missing.go", in: []string{"allocsvr"},
		edits: []edit{{old: "p.To != \"\" && err != nil {", new: "p.To != \"\" && err != nil && false {"}},
	},
	{
		rule: "settle-knows-all-sets", name: "a Set forgets others by the map of a backup",
		file: "allocsvr/documents/sets.go", in: []string{"allocsvr/documents"},
		edits: []edit{{old: "m.Version > held && (!m.Restored || held == 0) {", new: "m.Version > held {"}},
	},
}
