package section

import (
	"fmt"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

const (
	// raisesAnHour bounds the sum of a section's raises in an hour without force, in largest jumps of its
	// space. At 2^32 a jump, a section then lasts for 14 years of raises.
	raisesAnHour = 16
	// raiseSlot is the grain of the hour. A sum covers the current slot and the raiseSlots slots before it.
	raiseSlot  = 5 * time.Minute
	raiseSlots = int64(time.Hour / raiseSlot)
)

// raiseBudget bounds what the raises of each section add up to in an hour. A node that acquires
// a section begins with an empty sum.
type raiseBudget struct {
	mu    sync.Mutex // guards all below
	of    map[seq.SectionID]*raised
	swept int64 // the slot in which sections without a sum were last forgotten
}

// raised is the sum of one section.
type raised struct {
	upTo   uint64 // the highest floor that is in the sum
	sums   [raiseSlots + 1]uint64
	latest int64 // slot
}

// lift adds the move of the section's ceiling to floor to the sum. It does not add again what an earlier
// raise has added. If the sum would exceed raisesAnHour jumps, lift leaves it and returns how long the
// caller must wait.
func (b *raiseBudget) lift(id seq.SectionID, jump, ceiling, floor uint64, now time.Duration) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	of := b.at(id, now)
	from := max(ceiling, of.upTo)
	if floor <= from {
		return 0
	}
	if wait = of.add(floor-from, raisesAnHour*jump, now); wait == 0 {
		of.upTo = floor
	}
	return wait
}

// take is lift of a key of an exact space, by n numbers.
func (b *raiseBudget) take(id seq.SectionID, jump, n uint64, now time.Duration) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.at(id, now).add(n, raisesAnHour*jump, now)
}

// at returns the sum of a section. The caller holds mu.
func (b *raiseBudget) at(id seq.SectionID, now time.Duration) *raised {
	slot := int64(now / raiseSlot)
	if slot > b.swept {
		b.swept = slot
		for other, r := range b.of {
			if slot-r.latest > raiseSlots {
				delete(b.of, other)
			}
		}
	}
	of, ok := b.of[id]
	if !ok {
		if b.of == nil {
			b.of = map[seq.SectionID]*raised{}
		}
		of = &raised{latest: slot}
		b.of[id] = of
	}
	for ; of.latest < slot; of.latest++ {
		of.sums[(of.latest+1)%int64(len(of.sums))] = 0
	}
	return of
}

// add adds n to the sum, or says how long it takes until enough of the sum is over.
func (r *raised) add(n, limit uint64, now time.Duration) (wait time.Duration) {
	var sum uint64
	for _, one := range r.sums {
		sum += one
	}
	if n <= limit && sum <= limit-n {
		r.sums[r.latest%int64(len(r.sums))] += n
		return 0
	}
	for slot := max(0, r.latest-raiseSlots); slot <= r.latest; slot++ {
		sum -= r.sums[slot%int64(len(r.sums))]
		if wait = time.Duration(slot+raiseSlots+1)*raiseSlot - now; n <= limit && sum <= limit-n {
			break
		}
	}
	return wait
}

// tooMuch says why a raise within the largest jump is refused, and when it is not.
func tooMuch(id seq.SectionID, space *seq.Space, wait time.Duration) string {
	return fmt.Sprintf("the raises of section %d would add up to more than %d largest jumps of space %q in an hour (%d each): come again in %v; more takes force",
		id, raisesAnHour, space.Name, space.Jump(), wait.Truncate(time.Second)+time.Second)
}
