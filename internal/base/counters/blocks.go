package counters

import (
	"math/bits"
	"slices"
	"unsafe"
)

const (
	blockBits = 6
	blockSize = 1 << blockBits

	// packedMax is the most counters a packed block has. Above it the array of
	// 64 costs at most 16 bytes a counter and saves the moving.
	packedMax = blockSize / 2

	// A slot's where is its form in the top two bits and a position below.
	// 2^30 words are 8 GiB in one section; past that blocks go to pages.
	formShift = 30
	maxPos    = 1<<formShift - 1

	single uint32 = 1 << formShift // position: uid % 64;    word: the counter
	packed uint32 = 2 << formShift // position: into words;  word: bitmap of the UIDs present
	paged  uint32 = 3 << formShift // position: into pages;  word: bitmap of the UIDs present
)

// slot is one block of the hash table. It is empty while where == 0.
type slot struct {
	block uint64 // uid >> blockBits
	word  uint64
	last  uint32 // Unix seconds of the latest take in the block, 0 if unknown
	where uint32
}

type page [blockSize]uint64

func (s *slot) form() uint32 { return s.where &^ maxPos }
func (s *slot) pos() int     { return int(s.where & maxPos) }

// bitmap tells which UIDs of the block are present, in any form.
func (s *slot) bitmap() uint64 {
	if s.form() == single {
		return 1 << s.pos()
	}
	return s.word
}

// len returns the number of UIDs of the block that are present.
func (s *slot) len() int { return bits.OnesCount64(s.bitmap()) }

// room returns the number of words that a packed block of n counters takes up. It
// depends on n alone, so that no capacity has to be stored.
func room(n int) int {
	switch {
	case n <= 8:
		return (n + 1) &^ 1
	case n <= 16:
		return (n + 3) &^ 3
	default:
		return (n + 7) &^ 7
	}
}

// counter returns the counter of uid in the slot of its block, or nil if uid is
// not in the table. It is good until the next add.
func (t *Table) counter(s *slot, uid uint64) *uint64 {
	if s == nil {
		return nil
	}
	off := uid % blockSize
	if s.form() == single {
		if s.pos() != int(off) {
			return nil
		}
		return &s.word
	}
	bit := uint64(1) << off
	if s.word&bit == 0 {
		return nil
	}
	if s.form() == paged {
		// Not &page[off], which would read the start of the page to see that it is there.
		return (*uint64)(unsafe.Add(unsafe.Pointer(t.pages[s.pos()]), 8*off))
	}
	return &t.words[s.pos()+bits.OnesCount64(s.word&(bit-1))]
}

// add brings uid, which must not be in the table, into it. s is the slot of its
// block or nil; the slot it returns is good until the next add.
func (t *Table) add(s *slot, uid, value uint64) *slot {
	t.uids++
	if s != nil {
		t.widen(s, uid%blockSize, value)
		return s
	}
	if 5*(t.blocks+1) > 4*len(t.slots) {
		t.slots = t.slots.resized(len(t.slots) + len(t.slots)/4 + 2)
	}
	t.blocks++
	return t.slots.place(slot{
		block: uid >> blockBits,
		word:  value,
		where: single | uint32(uid%blockSize),
	})
}

// widen adds a counter to a block that has one already, changing the block's
// form where it has to.
func (t *Table) widen(s *slot, off, value uint64) {
	n := bits.OnesCount64(s.bitmap())
	roomy := s.form() == packed && n < room(n)
	switch {
	case s.form() == paged || roomy:
	case n < packedMax && len(t.words) <= maxPos-packedMax:
		t.repack(s, n)
	default:
		t.unpack(s, n)
	}

	bit := uint64(1) << off
	if s.form() == paged {
		t.pages[s.pos()][off] = value
	} else {
		vals := t.words[s.pos() : s.pos()+n+1]
		at := bits.OnesCount64(s.word & (bit - 1))
		copy(vals[at+1:], vals[at:])
		vals[at] = value
	}
	s.word |= bit
}

// repack moves the n counters of a single or packed block to where there is
// room for n+1.
func (t *Table) repack(s *slot, n int) {
	need := room(n + 1)
	if cap(t.words)-len(t.words) < need {
		t.compact(need)
	}
	// Only now: compact may have moved the block.
	to := len(t.words)
	t.words = t.words[:to+need]
	if s.form() == single {
		t.words[to] = s.word
		s.word = s.bitmap()
	} else {
		copy(t.words[to:], t.words[s.pos():s.pos()+n])
		t.holes += room(n)
	}
	s.where = packed | uint32(to)
}

// unpack moves the n counters of a single or packed block to a page.
func (t *Table) unpack(s *slot, n int) {
	p := new(page)
	t.each(s, func(uid, value uint64) bool {
		p[uid%blockSize] = value
		return true
	})
	if len(t.pages) == cap(t.pages) {
		t.pages = append(slices.Grow([]*page(nil), len(t.pages)+len(t.pages)/4+1), t.pages...)
	}
	t.pages = append(t.pages, p)
	if s.form() == packed {
		t.holes += room(n)
	}
	s.word = s.bitmap()
	s.where = paged | uint32(len(t.pages)-1)
	if 2*t.holes > len(t.words) {
		t.compact(0)
	}
}

// compact copies the packed counters to a new slice without holes that has room
// for need more words and for growing by a quarter.
func (t *Table) compact(need int) {
	live := len(t.words) - t.holes
	fresh := slices.Grow([]uint64(nil), live+live/4+need)
	for i := range t.slots {
		s := &t.slots[i]
		if s.form() != packed {
			continue
		}
		to := len(fresh)
		fresh = append(fresh, t.words[s.pos():s.pos()+room(bits.OnesCount64(s.word))]...)
		s.where = packed | uint32(to)
	}
	t.words, t.holes = fresh, 0
}

// each yields the UIDs of one block with their values, by rising UID, until
// yield returns false; it returns what yield returned last.
func (t *Table) each(s *slot, yield func(uid, value uint64) bool) bool {
	for m := s.bitmap(); m != 0; m &= m - 1 {
		uid := s.block<<blockBits | uint64(bits.TrailingZeros64(m))
		if !yield(uid, *t.counter(s, uid)) {
			return false
		}
	}
	return true
}
