package storesvr

import "github.com/seqsvr/seqsvr/exact"

// exactShare is how many percent of the memory limit the UIDs and ids of exact spaces may take by
// exact.Bytes. The rest is for garbage, for whole copies on their way, for what comes until owners
// have heard, and for the journal at a start: at 45 the start took all of the limit.
const exactShare = 35

// room is what the UIDs and ids of exact spaces take at a store, and may take.
type room struct {
	used, most uint64 // bytes; most zero: nothing is known of a limit
}

// exactRoom is for callers that hold c.mu.
func (c *core) exactRoom() room {
	uids, ids := c.acceptor.Kept()
	return room{used: uint64(exact.Bytes(uids, ids)), most: c.memory / 100 * exactShare}
}

// full reports whether owners are to let no new UIDs and ids in.
func (r room) full() bool { return r.most > 0 && r.used >= r.most }
