package stream

import "time"

const (
	// lowLoad is the number of keys, waiting and in flight together, up to which a batch
	// never waits for a reply: so few callers gain nothing from each other.
	lowLoad = 24
	// beside is the number of waiting keys that lets one more batch go beside a full round trip. For each
	// batch already in flight beyond the room of the round trip, as many more keys must wait.
	beside = 128
	// spacing is about how far apart batches are sent while they wait for replies: as many
	// are in flight as fit into the shortest round trip, and one. So a far server is sent as
	// much as a near one, and no key waits for much longer than this, however long a reply
	// takes.
	spacing = 150 * time.Microsecond
	// holdLimit is the time without a reply after which the batches in flight count as stuck and hold back
	// no others. So a section that steps or moves delays its own callers only. A smaller limit has no
	// effect, because Go wakes an idle process to the millisecond.
	holdLimit = time.Millisecond
	// floorWindow is the least time for which the shortest round trip is remembered.
	floorWindow = time.Second
)

// pace decides whether a batch is sent immediately, or is held until the next reply so that
// more keys join it. To wake a process and to cross its layers costs as much for one key as
// for a hundred, so that a few large batches need far less of the processors than many small
// ones with the same keys.
//
// It has no lock: its stream guards it.
type pace struct {
	out  int    // batches in flight that may hold others
	keys int    // keys in these
	old  uint64 // ids up to here hold no others

	floor, former time.Duration // shortest round trip of this window and of the one before; zero before the first
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

// stuck makes the batches in flight, up to the id last, hold no others: no reply came for
// holdLimit.
func (p *pace) stuck(last uint64) {
	p.out, p.keys, p.old = 0, 0, last
}
