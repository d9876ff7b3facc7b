package main

// keyMutants break the rules of the hash of string keys and of its change.
var keyMutants = []mutant{
	{
		rule: "counters-of-one-hash", name: "the digest of a release does not tell the hash",
		file: "allocsvr/handover/sealed.go", in: []string{"allocsvr/handover", "allocsvr"},
		edits: []edit{{old: "	if s.Mark != 0 { // without", new: "	if false && s.Mark != 0 { // without"}},
	},
	{
		rule: "counters-of-one-hash", name: "parked counters of another hash are used",
		file: "allocsvr/owner/owner.go", in: []string{"allocsvr"},
		edits: []edit{{old: " || s.Mark != o.mark(s.ID)", new: ""}},
	},
	{
		rule: "counters-of-one-hash", name: "counters are parked without their mark",
		file: "allocsvr/handover/parked.go", in: []string{"allocsvr/handover", "allocsvr"},
		edits: []edit{{old: "		b = binary.LittleEndian.AppendUint64(b, s.Mark)\n", new: "		b = binary.LittleEndian.AppendUint64(b, 0)\n"}},
	},
	{
		rule: "keys-under-a-secret", name: "a secret changes nothing",
		file: "seq/keyhash.go", in: []string{"seq", "allocsvr"},
		edits: []edit{{old: "	mac := hmac.New(sha256.New, h.Secret[:])\n", new: "	mac := sha256.New()\n"}, {old: "	\"crypto/hmac\"\n", new: ""}},
	},
	{
		rule: "keys-under-a-secret", name: "a caller that hashes keys itself is served",
		file: "allocsvr/api/sequence.go", in: []string{"allocsvr/api"},
		edits: []edit{{old: "	if hashes && h.Mark() != 0 {\n", new: "	if false && hashes {\n"}},
	},
	{
		rule: "keys-under-a-secret", name: "a router does not tell of the caller",
		file: "internal/wire/rpc/protocol.go", in: []string{"internal/wire/rpc"},
		edits: []edit{{old: "	return hashesKeys(ctx, ProtocolHeader) || hashesKeys(ctx, relayedHeader)\n", new: "	return hashesKeys(ctx, ProtocolHeader)\n"}},
	},
	{
		rule: "one-secret-for-all", name: "each node draws a secret of its own",
		file: "allocsvr/documents/keys.go", in: []string{"allocsvr/documents"},
		edits: []edit{{old: "	if err != nil || e.lacks(d.mapping) == \"\" {\n		return e, err\n	}\n",
			new: "	if err != nil || e.lacks(d.mapping) == \"\" {\n		return e, err\n	}\n	if true {\n		return KeyEntries{\"user\": {Hash: seq.SecretKeys, Secret: seq.NewKeySecret(), Version: 1}}, nil\n	}\n"}},
	},
	{
		rule: "later-registers", name: "a later register that is gone is taken for zero",
		file: "storesvr/disk/load.go", in: []string{"storesvr/disk"},
		edits: []edit{{old: "!slices.Contains(unmade, r)", new: "!slices.Contains(seq.LaterRegisters(), r)"}},
	},
}
