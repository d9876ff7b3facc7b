package seq

import (
	"fmt"
	"slices"
)

// MaxAdded is the largest number of sections of a space that is added: stores make their
// registers while leases wait.
const MaxAdded = 1 << 16

// Add returns the mapping with one more space at its end. Zero fields get defaults; the default hash of
// string keys is SecretKeys. If s.First is not 0, the space must begin there. If the mapping already has
// the space with these settings, added is false. If it has the space with other settings, Add returns
// ErrBadMapping, as for every bad space.
func (m Mapping) Add(s Space) (next Mapping, added bool, err error) {
	s = s.withDefaults()
	must := s.First
	s.First, s.Added = SectionID(m.Sections()), true
	if s.KeyHash == "" {
		s.KeyHash = SecretKeys
	}
	if i := slices.IndexFunc(m.Spaces, func(o Space) bool { return o.Name == s.Name }); i >= 0 {
		have := m.Spaces[i]
		s.First, s.Added = have.First, have.Added
		switch {
		case s != have:
			return m, false, fmt.Errorf("%w: space %q is there, with %s", ErrBadMapping, s.Name, have.settings())
		case must != 0 && must != have.First:
			return m, false, fmt.Errorf("%w: space %q begins at section %d, expected %d", ErrBadMapping, s.Name, have.First, must)
		}
		return m, false, nil
	}
	if must != 0 && must != s.First {
		return m, false, fmt.Errorf("%w: space %q would begin at section %d, expected %d", ErrBadMapping, s.Name, s.First, must)
	}
	next = Mapping{Spaces: append(slices.Clone(m.Spaces), s)}
	if err := next.Validate(); err != nil {
		return m, false, err
	}
	return next, true, next.checkNew()
}

func (s *Space) settings() string {
	text := fmt.Sprintf("sections=%d,step=%d,max-step=%d,max-jump=%d,mode=%s,key-hash=%s", s.Sections, s.Step, s.MaxStep, s.Jump(), s.Mode, s.KeyHash)
	if s.Window > 0 {
		text += ",window=" + s.Window.String()
	}
	if s.Tickets > 0 {
		text += ",tickets=" + s.Tickets.String()
	}
	return text
}

// Extends reports whether m is o, perhaps with spaces added. Of two mappings that a cluster had, one
// extends the other.
func (m Mapping) Extends(o Mapping) bool {
	return len(m.Spaces) >= len(o.Spaces) && slices.Equal(m.Spaces[:len(o.Spaces)], o.Spaces)
}

// initial is the number of sections that the cluster was initialised with.
func (m Mapping) initial() int {
	n := 0
	for i := range m.Spaces {
		if !m.Spaces[i].Added {
			n += int(m.Spaces[i].Sections)
		}
	}
	return n
}
