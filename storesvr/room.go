package storesvr

import "github.com/seqsvr/seqsvr/exact"

// exactShare is the share of the memory limit, in percent, that UIDs and ids of exact spaces may
// take by exact.Bytes. The rest is for garbage, whole copies in transit, requests that come before
// owners have heard, and the journal at startup. At 45 percent the startup took all of the limit.
const exactShare = 35

// room is what the UIDs and ids of exact spaces take at a store, and may take.
type room struct {
	used, most uint64 // bytes; a zero most means that no limit is known
}

// exactRoom returns the room of the exact spaces. The caller holds c.mu.
func (c *core) exactRoom() room {
	uids, ids := c.acceptor.Kept()
	return room{used: uint64(exact.Bytes(uids, ids)), most: c.memory / 100 * exactShare}
}

// full reports whether owners are to let no new UIDs and ids in.
func (r room) full() bool { return r.most > 0 && r.used >= r.most }
