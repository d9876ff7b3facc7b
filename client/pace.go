package client

import "time"

const (
	// lowLoad is the number of keys, waiting and under way together, up to which a
	// batch never waits for another: so few callers gain nothing from each other.
	lowLoad = 24
	// beside is how many keys must wait, for each batch that is under way beyond that, to
	// be sent beside those.
	beside = 128
	// spacing is how far apart batches are at least, by and large, while they wait for
	// each other: as many are under way as fit into the shortest round trip, and one.
	// So a far peer is sent as much as a near one, and nobody waits for much longer than
	// this, however long a reply takes.
	spacing = 150 * time.Microsecond
	// holdLimit is after how long without a reply the batches under way are taken for
	// stuck and wait-worthy no more: a section that steps or moves holds up its own
	// callers only. Go wakes an idle process to the millisecond, so less is pointless.
	holdLimit = time.Millisecond
	// floorWindow is for how long the shortest round trip is remembered, at least.
	floorWindow = time.Second
)

// pace decides whether a batch leaves at once or rides with those who come until the
// next reply. To wake a process and to cross its layers costs as much for a key as for
// a hundred, so that of the same callers few large batches need far less of the
// processors than many small ones.
//
// It has no lock: its lane guards it.
type pace struct {
	out  int    // batches under way that may hold others
	keys int    // keys in these
	old  uint64 // ids up to here hold nobody

	floor, former time.Duration // shortest round trip of this window and of the one before; 0: none
	window        time.Time     // when this one began
}

// hold says whether waiting keys, one or more, are to wait for a reply.
func (p *pace) hold(waiting int) bool {
	if waiting+p.keys <= lowLoad {
		return false
	}
	floor := p.floor
	if floor == 0 || p.former != 0 && p.former < floor {
		floor = p.former
	}
	beyond := p.out - int(floor/spacing)
	return floor != 0 && beyond > 0 && waiting < beyond*beside
}

// sent notes a batch; ids rise.
func (p *pace) sent(n int) {
	p.out++
	p.keys += n
}

// ended notes the end of a batch of n keys.
func (p *pace) ended(id uint64, n int) {
	if id > p.old {
		p.out--
		p.keys -= n
	}
}

// replied notes a round trip.
func (p *pace) replied(trip time.Duration, now time.Time) {
	if now.Sub(p.window) >= floorWindow {
		p.former, p.floor, p.window = p.floor, 0, now
	}
	if p.floor == 0 || trip < p.floor {
		p.floor = max(trip, 1)
	}
}

// stuck lets what waits go: no reply came for holdLimit. last is the newest id.
func (p *pace) stuck(last uint64) {
	p.out, p.keys, p.old = 0, 0, last
}
