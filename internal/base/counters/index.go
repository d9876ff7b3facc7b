package counters

import (
	"cmp"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// index finds the slot of a block. It is a hash table with open addressing and Robin Hood probing, of which
// at most four fifths are in use.
type index []slot

// seed is the seed of every table's hash, so that callers cannot choose UIDs that collide. It affects only
// speed.
var seed = rand.Uint64()

// mix is a bijection that spreads its input over all bits. It must differ from the hash that spreads blocks
// over sections, whose results lie close together within a section.
func mix(x uint64) uint64 {
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	x ^= x >> 32
	return x
}

// home returns the index at which the search for block begins, for len(x) > 0.
func (x index) home(block uint64) int {
	hi, _ := bits.Mul64(mix(block^seed), uint64(len(x)))
	return int(hi)
}

// distance returns the distance of the block in slot i from its home.
func (x index) distance(i int) int {
	d := i - x.home(x[i].block)
	if d < 0 {
		d += len(x)
	}
	return d
}

// find returns the slot of block, or nil. It ends because at least a fifth of the slots are empty. It
// mostly ends sooner, because place never leaves a block behind a block that is nearer to its home. If find
// meets a block that is nearer to its home, the searched block is absent. Absent UIDs are common after a
// takeover.
func (x index) find(block uint64) *slot {
	if len(x) == 0 {
		return nil
	}
	for i, d := x.home(block), 0; ; d++ {
		s := &x[i]
		if s.where == 0 {
			return nil
		}
		if s.block == block {
			return s
		}
		if d%4 == 3 && x.distance(i) < d { // a hash each; most searches end before
			return nil
		}
		if i++; i == len(x) {
			i = 0
		}
	}
}

// place puts a block that is not in the table into it and returns its slot. A
// block on the way that is nearer to its home gives up its slot and moves on.
func (x index) place(b slot) *slot {
	var placed *slot
	for i, d := x.home(b.block), 0; ; d++ {
		s := &x[i]
		if s.where == 0 {
			*s = b
			return cmp.Or(placed, s)
		}
		if sd := x.distance(i); sd < d {
			*s, b, d = b, *s, sd
			placed = cmp.Or(placed, s)
		}
		if i++; i == len(x) {
			i = 0
		}
	}
}

// resized returns the blocks in an index of n slots, or of all slots that fit into the same allocation.
func (x index) resized(n int) index {
	fresh := slices.Grow(index(nil), n)
	fresh = fresh[:cap(fresh)]
	clear(fresh)
	for i := range x {
		if x[i].where != 0 {
			fresh.place(x[i])
		}
	}
	return fresh
}

// order returns the indices of the used slots, by rising block. Their number is blocks.
func (x index) order(blocks int) []int {
	idx := make([]int, 0, blocks)
	for i := range x {
		if x[i].where != 0 {
			idx = append(idx, i)
		}
	}
	slices.SortFunc(idx, func(a, b int) int {
		return cmp.Compare(x[a].block, x[b].block)
	})
	return idx
}

// drop empties slot i. The blocks behind it move up, until the first that is at home, so that none is
// farther from its home than necessary.
func (x index) drop(i int) {
	for {
		next := i + 1
		if next == len(x) {
			next = 0
		}
		if x[next].where == 0 || x.distance(next) == 0 {
			break
		}
		x[i] = x[next]
		i = next
	}
	x[i] = slot{}
}
