package storesvr

// exactShare is the share of the memory limit, in percent, that UIDs and ids of exact spaces may
// take. The rest is for garbage, whole copies in transit, and requests that come before
// owners have heard.
const exactShare = 35

// room is what the UIDs and ids of exact spaces take at a store, and may take.
type room struct {
	used, most uint64 // bytes; a zero most means that no limit is known
}

// exactRoom returns the room of the exact spaces. The caller holds c.mu.
func (c *core) exactRoom() room {
	_, _, bytes := c.acceptor.Kept()
	return room{used: uint64(bytes), most: c.memory / 100 * exactShare}
}

// left returns how many bytes more may be taken.
func (r room) left() uint64 { return r.most - min(r.used, r.most) }

// full reports whether owners are to let no new UIDs and ids in.
func (r room) full() bool { return r.most > 0 && r.used >= r.most }
