package section

import (
	"fmt"
	"iter"
	"slices"

	"github.com/seqsvr/seqsvr/seq"
)

// layout is the mapping of a Table, and the cells of spaces that were added since the table
// was made. It is replaced as a whole; neither cells nor spaces ever move.
type layout struct {
	mapping seq.Mapping
	later   [][]Cell // one a space, in the mapping's order
}

// Mapping is that of the cluster; its spaces are to be passed to Take and the like. Spaces may
// be added to the next one that it returns.
func (t *Table) Mapping() *seq.Mapping { return &t.layout.Load().mapping }

// Len is the number of sections, which only grows; ids are 0 to Len()-1. Methods that take an
// id panic on others.
func (t *Table) Len() int { return t.Mapping().Sections() }

// Cell is the section of that id.
func (t *Table) Cell(id seq.SectionID) *Cell {
	if int(id) < len(t.array) {
		return &t.array[id]
	}
	return t.laterCell(id)
}

// laterCell is a section that was added since the table was made.
func (t *Table) laterCell(id seq.SectionID) *Cell {
	for _, cells := range t.layout.Load().later {
		if at := int(id) - int(cells[0].id); at < len(cells) {
			return &cells[at]
		}
	}
	panic(fmt.Sprintf("section %d of %d", id, t.Len()))
}

// cells are all sections in order.
func (t *Table) cells() iter.Seq[*Cell] {
	return func(yield func(*Cell) bool) {
		for _, cells := range slices.Concat([][]Cell{t.array}, t.layout.Load().later) {
			for i := range cells {
				if !yield(&cells[i]) {
					return
				}
			}
		}
	}
}

// Extend goes over to a mapping that is the table's own with spaces added: their sections are
// absent. Requests are served meanwhile. An older mapping changes nothing; seq.ErrBadMapping
// for another.
func (t *Table) Extend(m seq.Mapping) error {
	t.growing.Lock()
	defer t.growing.Unlock()
	now := t.layout.Load()
	have := len(t.room)
	switch {
	case now.mapping.Extends(m):
		return nil
	case !m.Extends(now.mapping) || len(m.Spaces) > cap(t.room):
		return fmt.Errorf("%w: it is not that of this node with spaces added", seq.ErrBadMapping)
	}
	t.room = append(t.room, m.Spaces[have:]...)
	next := &layout{mapping: t.spaces(), later: slices.Clone(now.later)}
	for i := have; i < len(t.room); i++ {
		cells := make([]Cell, t.room[i].Sections)
		t.cellsOf(&t.room[i], cells)
		next.later = append(next.later, cells)
	}
	t.layout.Store(next)
	return nil
}

// cellsOf makes the first of the cells those of the space.
func (t *Table) cellsOf(s *seq.Space, cells []Cell) {
	for i := range cells[:s.Sections] {
		cells[i].init(s.First+seq.SectionID(i), s, &t.memory)
	}
}

// spaces is the mapping of all in room, which nobody can append to.
func (t *Table) spaces() seq.Mapping {
	return seq.Mapping{Spaces: t.room[:len(t.room):len(t.room)]}
}
