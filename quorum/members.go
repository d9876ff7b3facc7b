package quorum

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// MembersHash tells member lists apart by the uuids alone: the first 8 bytes,
// big-endian, of the SHA-256 over the sorted uuids, each after its length. The order
// of the list and the names do not matter. The empty list, which a store has before
// it is bound, gives 0.
func MembersHash(members []Member) uint64 {
	if len(members) == 0 {
		return 0
	}
	uuids := make([]string, len(members))
	for i, m := range members {
		uuids[i] = m.UUID
	}
	slices.Sort(uuids)
	h := sha256.New()
	var size [8]byte
	for _, uuid := range uuids {
		binary.BigEndian.PutUint64(size[:], uint64(len(uuid)))
		h.Write(size[:])
		h.Write([]byte(uuid))
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}
