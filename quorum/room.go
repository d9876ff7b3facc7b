package quorum

import "math"

// Room is the memory for UIDs and ids of exact spaces at a store.
type Room struct {
	Store string // its name
	Left  uint64 // bytes; math.MaxUint64 means that no limit is known
	Limit uint64 // bytes in all; zero if not known
	Heard uint64 // rises with each reply of that store
}

// heardRoom keeps what a store said of its memory for exact spaces. Callers hold l.mu.
func (l *Leases) heardRoom(s *storeLease, reply RenewReply) {
	room := &Room{Store: s.store.Name, Left: math.MaxUint64, Limit: reply.Limit, Heard: 1}
	if before := l.rooms[s.index].Load(); before != nil {
		room.Heard += before.Heard
	}
	switch {
	case reply.Full:
		room.Left = 0
	case reply.Limit > 0:
		room.Left = reply.Left
	}
	l.rooms[s.index].Store(room)
}

// Room returns the memory that W stores have for more UIDs and ids of exact spaces, by what they said
// last: the W-th most of all stores. One store with less is not waited for, because the others go on
// without it. A store that said nothing yet has room.
func (l *Leases) Room() Room {
	c := l.now.Load()
	var most [maxSlots]Room // in falling order
	n := 0
	for _, s := range c.stores {
		room := Room{Left: math.MaxUint64}
		if heard := l.rooms[s.index].Load(); heard != nil {
			room = *heard
		}
		at := n
		for ; at > 0 && most[at-1].Left < room.Left; at-- {
			most[at] = most[at-1]
		}
		most[at], n = room, n+1
	}
	return most[max(min(c.w, n)-1, 0)]
}
