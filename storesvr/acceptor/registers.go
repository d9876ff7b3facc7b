package acceptor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seqsvr/seqsvr/seq"
)

// register is one register in memory. A takeover asks for thousands at once, so
// everything on one of them lies together and is looked up once.
type register struct {
	name seq.Register
	now  State // what the requests of the group see
	// disk is what the disk has, if dirty; the disk has nothing of it, if fresh.
	disk  State
	dirty bool // changed since Committed
	fresh bool // dirty, and not on disk at all
}

// state is the register's in memory; the zero state of one that there is not.
func (r *register) state() State {
	if r == nil {
		return State{}
	}
	return r.now
}

// registers is the table of them.
//
//	byName[r.name] == r for every r; sections[id] is the register of that section, or nil
//	names are the keys of byName, sorted; dirty are those that are dirty
type registers struct {
	byName   map[seq.Register]*register
	sections []*register
	names    []seq.Register
	dirty    []*register // in the order of their first change
}

// newRegisters takes the states over. ErrInvariant for one that breaks I3.
func newRegisters(states map[seq.Register]State) (*registers, error) {
	t := &registers{byName: make(map[seq.Register]*register, len(states)), names: make([]seq.Register, 0, len(states))}
	for name := range states {
		t.names = append(t.names, name)
	}
	slices.Sort(t.names)
	all := make([]register, len(t.names)) // neighbours by name are neighbours in memory
	for i, name := range t.names {
		st := states[name]
		if st.Promised.Less(st.Accepted) {
			return nil, fmt.Errorf("%w: %s: accepted %s above promised %s", ErrInvariant, name, st.Accepted, st.Promised)
		}
		all[i] = register{name: name, now: st}
		t.index(&all[i])
	}
	return t, nil
}

// index makes the register be found.
func (t *registers) index(r *register) {
	t.byName[r.name] = r
	if id, ok := r.name.Section(); ok && id < seq.MaxSections {
		if int(id) >= len(t.sections) {
			t.sections = append(t.sections, make([]*register, int(id)+1-len(t.sections))...)
		}
		t.sections[id] = r
	}
}

// find is the register of that name, nil if there is none.
func (t *registers) find(name seq.Register) *register {
	if id, ok := name.Section(); ok && int64(id) < int64(len(t.sections)) {
		return t.sections[id]
	}
	return t.byName[name]
}

// add makes a register that there is not, not on disk.
func (t *registers) add(name seq.Register) *register {
	r := &register{name: name, dirty: true, fresh: true}
	t.index(r)
	at, _ := slices.BinarySearch(t.names, name)
	t.names = slices.Insert(t.names, at, name)
	t.dirty = append(t.dirty, r)
	return r
}

// addSections makes the registers of the sections in [from, to), of which there are none.
func (t *registers) addSections(from, to seq.SectionID) {
	fresh := make([]register, 0, to-from)
	t.sections = slices.Grow(t.sections, max(0, int(to)-len(t.sections)))
	for id := from; id < to; id++ {
		fresh = append(fresh, register{name: seq.SectionRegister(id), dirty: true, fresh: true})
		r := &fresh[len(fresh)-1]
		t.index(r)
		t.names, t.dirty = append(t.names, r.name), append(t.dirty, r)
	}
	slices.Sort(t.names)
}

// changes is the final state of every dirty register, by name.
func (t *registers) changes() []Change {
	if len(t.dirty) == 0 {
		return nil
	}
	changes := make([]Change, len(t.dirty))
	for i, r := range t.dirty {
		changes[i] = Change{Register: r.name, State: r.now}
	}
	slices.SortFunc(changes, func(x, y Change) int { return strings.Compare(string(x.Register), string(y.Register)) })
	return changes
}

// committed says that the disk has all of changes.
func (t *registers) committed() {
	for _, r := range t.dirty {
		r.disk, r.dirty, r.fresh = State{}, false, false
	}
	clear(t.dirty)
	t.dirty = t.dirty[:0]
}

// withPrefix is the names that start so, in order.
func (t *registers) withPrefix(prefix string) []seq.Register {
	from, _ := slices.BinarySearch(t.names, seq.Register(prefix))
	to := from
	for to < len(t.names) && strings.HasPrefix(string(t.names[to]), prefix) {
		to++
	}
	return t.names[from:to]
}
