package section

import (
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/seqsvr/seqsvr/seq"
)

// cells are the sections of a mapping. Neither they nor their spaces ever move. Safe for
// concurrent use.
type cells struct {
	array   []Section              // one a section, side by side: a take finds its own without a pointer
	layout  atomic.Pointer[layout] // with the sections of spaces that were added since
	growing sync.Mutex             // guards room
	room    []seq.Space            // all spaces, with room for those still to be added: none ever moves
	memory  *memory                // of the node
}

// layout holds the mapping of the cells, and the cells of spaces that were added since the cells were made.
// It is replaced as a whole.
type layout struct {
	mapping seq.Mapping
	later   [][]Section // by space, in the mapping's order
}

// start makes the sections of the mapping, all absent.
func (s *cells) start(m seq.Mapping, memory *memory) {
	s.memory, s.array = memory, make([]Section, m.Sections())
	s.room = append(make([]seq.Space, 0, seq.MaxSpaces), m.Spaces...)
	for i := range s.room {
		s.put(&s.room[i], s.array[s.room[i].First:])
	}
	s.layout.Store(&layout{mapping: s.spaces()})
}

// Mapping returns the mapping of the cluster, whose spaces Take and other methods accept. The mapping that
// the next call returns may have more spaces.
func (s *cells) Mapping() *seq.Mapping { return &s.layout.Load().mapping }

// Len returns the number of sections, which only grows. Ids are 0 to Len()-1, and methods that take an id
// panic on other values.
func (s *cells) Len() int { return s.Mapping().Sections() }

// Section returns the section with the id.
func (s *cells) Section(id seq.SectionID) *Section {
	if int(id) < len(s.array) {
		return &s.array[id]
	}
	return s.later(id)
}

// later is a section that was added since the cells were made.
func (s *cells) later(id seq.SectionID) *Section {
	for _, cells := range s.layout.Load().later {
		if at := int(id) - int(cells[0].id); at < len(cells) {
			return &cells[at]
		}
	}
	panic(fmt.Sprintf("section %d of %d", id, s.Len()))
}

// all returns the sections in order.
func (s *cells) all() iter.Seq[*Section] {
	return func(yield func(*Section) bool) {
		for _, cells := range slices.Concat([][]Section{s.array}, s.layout.Load().later) {
			for i := range cells {
				if !yield(&cells[i]) {
					return
				}
			}
		}
	}
}

// Extend goes over to a mapping that is this one with spaces added: their sections are
// absent. Requests are served meanwhile. An older mapping changes nothing; seq.ErrBadMapping
// for another.
func (s *cells) Extend(m seq.Mapping) error {
	s.growing.Lock()
	defer s.growing.Unlock()
	now := s.layout.Load()
	have := len(s.room)
	switch {
	case now.mapping.Extends(m):
		return nil
	case !m.Extends(now.mapping) || len(m.Spaces) > cap(s.room):
		return fmt.Errorf("%w: it is not that of this node with spaces added", seq.ErrBadMapping)
	}
	s.room = append(s.room, m.Spaces[have:]...)
	next := &layout{mapping: s.spaces(), later: slices.Clone(now.later)}
	for i := have; i < len(s.room); i++ {
		cells := make([]Section, s.room[i].Sections)
		s.put(&s.room[i], cells)
		next.later = append(next.later, cells)
	}
	s.layout.Store(next)
	return nil
}

// put makes the first cells the sections of the space.
func (s *cells) put(space *seq.Space, cells []Section) {
	for i := range cells[:space.Sections] {
		cells[i].init(space.First+seq.SectionID(i), space, s.memory)
	}
}

// spaces returns the mapping of all in room, to which nothing can be appended.
func (s *cells) spaces() seq.Mapping {
	return seq.Mapping{Spaces: s.room[:len(s.room):len(s.room)]}
}
