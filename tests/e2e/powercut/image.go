package powercut

import (
	"math/rand/v2"
	"slices"
)

// Sector is what a disk writes as a whole: a cut tears between sectors, never inside.
const Sector = 512

// image is one file. Pure: the caller serialises.
type image struct {
	id      uint64
	now     []byte       // what is read
	durable []byte       // what a cut leaves
	dirty   map[int]bool // sectors in which the two may differ; of lengths, see pending
}

func newImage(id uint64, content []byte) *image {
	return &image{id: id, now: content, durable: slices.Clone(content), dirty: map[int]bool{}}
}

// write puts data at off, and zeroes between the end and off.
func (m *image) write(data []byte, off int64) {
	if end := off + int64(len(data)); end > int64(len(m.now)) {
		m.resize(end)
	}
	copy(m.now[off:], data)
	m.touch(off, off+int64(len(data)))
}

// resize cuts the file short or adds zeroes.
func (m *image) resize(size int64) {
	old := int64(len(m.now))
	if size <= old {
		m.now = m.now[:size]
		m.touch(size, old)
		return
	}
	m.now = slices.Grow(m.now, int(size-old))[:size]
	clear(m.now[old:])
	m.touch(old, size)
}

func (m *image) touch(from, to int64) {
	for s := from / Sector; s*Sector < to; s++ {
		m.dirty[int(s)] = true
	}
}

// pending returns the number of sectors that no fsync has confirmed yet.
func (m *image) pending() int { return len(m.dirty) }

// sync makes durable what is read.
func (m *image) sync() {
	if len(m.durable) != len(m.now) {
		m.durable = slices.Clone(m.now)
	} else {
		for s := range m.dirty {
			copySector(m.durable, m.now, s)
		}
	}
	clear(m.dirty)
}

// forget goes back to what is durable.
func (m *image) forget() {
	m.now = slices.Clone(m.durable)
	clear(m.dirty)
}

// tear leaves each sector, and the length, as it was written or as it was durable, by
// chance. That becomes durable: it is what is on the disk.
func (m *image) tear(random *rand.Rand) {
	after := slices.Clone(m.durable)
	if random.IntN(2) == 0 { // the length reached the disk
		after = slices.Grow(after, max(0, len(m.now)-len(after)))[:len(m.now)]
		if len(m.durable) < len(after) {
			clear(after[len(m.durable):])
		}
	}
	for _, s := range sorted(m.dirty) {
		if random.IntN(2) == 0 {
			copySector(after, m.now, s)
		}
	}
	m.now, m.durable = after, slices.Clone(after)
	clear(m.dirty)
}

// sorted makes the choice depend on the seed alone.
func sorted(set map[int]bool) []int {
	list := make([]int, 0, len(set))
	for s := range set {
		list = append(list, s)
	}
	slices.Sort(list)
	return list
}

// copySector copies as much of a sector as both have.
func copySector(to, from []byte, s int) {
	at := s * Sector
	if at >= len(to) || at >= len(from) {
		return
	}
	copy(to[at:min(at+Sector, len(to))], from[at:])
}
