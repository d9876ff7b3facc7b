package seq

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Mode says what a space promises when leases or clocks cannot be trusted.
type Mode string

const (
	// Ordered is the default: unique always, monotonic by leases.
	Ordered Mode = "ordered"
	// Strict asks a quorum before each answer; monotonic without any clock.
	Strict Mode = "strict"
	// UniqueOnly goes on after the lease has ended with what is confirmed,
	// each answer flagged as unordered.
	UniqueOnly Mode = "unique-only"
	// Exact keeps each number at a quorum before it answers: no hole over a crash, and one
	// number a request id (package exact).
	Exact Mode = "exact"
)

// Leaseless reports whether no answer of a space of the mode rests on a lease: each is given after W stores
// were asked, or have written. A store lets such a section be preempted.
func (m Mode) Leaseless() bool { return m == Strict || m == Exact }

// ModeNames lists the modes, for people.
const ModeNames = "ordered, strict, unique-only or exact"

// How long an exact space keeps the ids of requests.
const (
	DefaultWindow = 10 * time.Minute
	MaxWindow     = 24 * time.Hour
)

// The life of a ticket, of a space with tickets.
const (
	MinTickets = 100 * time.Millisecond
	MaxTickets = 5 * time.Minute
)

// DefaultSpace is the space of a key that names none.
const DefaultSpace = "user"

// Defaults of a space.
const (
	DefaultSections = 4096
	DefaultStep     = 10_000
	DefaultMaxStep  = 10_000_000 // of a space with DefaultStep; of any other it is its step
	DefaultMaxJump  = 1 << 32
)

// NearEnd: a section with fewer numbers left below MaxSeq is near its end. They last 12
// days at a million a second.
const NearEnd = 1 << 40

// Limits of a mapping.
const (
	MaxSections = 1 << 20
	// MaxNewSections bounds the sections of a new cluster, and of a cluster that gets a space: a cluster of so
	// many was run. A cluster of MaxSections starts, and then serves nothing.
	MaxNewSections = 1 << 18
	MaxStep        = 1 << 32
	MaxSpaces      = 256
)

// BlockBits: 2^BlockBits consecutive UIDs are one block and share a section, so
// that counters of neighbours are dense in memory.
const BlockBits = 6

// Space is a kind of counters with its own sections, step and mode, which never change.
type Space struct {
	Name     string    `json:"name"`
	First    SectionID `json:"first"`    // its sections are [First, First+Sections)
	Sections uint32    `json:"sections"` // 1 to MaxSections
	Step     uint64    `json:"step"`     // 1 to MaxStep, numbers
	// MaxStep bounds how far the step of a busy section grows. The step never grows if MaxStep is Step or
	// zero. MaxStep bounds the numbers of a section that a crash may skip.
	MaxStep uint64 `json:"max_step,omitempty"`
	Mode    Mode   `json:"mode"`
	// MaxJump bounds how far one Raise without force may move a section's ceiling, 1 to MaxSeq. Zero means
	// DefaultMaxJump. After a crash, all UIDs of the section continue at its ceiling.
	MaxJump uint64 `json:"max_jump,omitempty"`
	// KeyHash names the hash of string keys at the initialisation of the cluster. If empty, it is
	// SHA256Keys. After a rehash, the hash that the stores keep takes precedence.
	KeyHash KeyHash `json:"key_hash,omitempty"`
	// Window is the least time for which an exact space keeps the ids of requests, a second to MaxWindow.
	// It is zero in other modes.
	Window time.Duration `json:"window,omitempty"`
	// Tickets is the longest life of a ticket, MinTickets to MaxTickets. If zero, the space gives no tickets
	// and has no marks.
	Tickets time.Duration `json:"tickets,omitempty"`
	// Added says that the space was added to a cluster that had been initialised without it.
	Added bool `json:"added,omitempty"`
}

// Steps returns the least and the largest step of the space's sections.
func (s *Space) Steps() (least, most uint64) { return s.Step, max(s.Step, s.MaxStep) }

// Jump returns how far one Raise without force may move a section's ceiling.
func (s *Space) Jump() uint64 {
	if s.MaxJump == 0 {
		return DefaultMaxJump
	}
	return s.MaxJump
}

// Ending reports whether a section with that ceiling has fewer than NearEnd numbers left, and whether it is
// spent, with less than one step left. After its owner's crash, a section continues at its ceiling. At
// 2^53-1 it hands out nothing more.
func (s *Space) Ending(ceiling uint64) (near, spent bool) {
	left := uint64(MaxSeq) - min(ceiling, uint64(MaxSeq))
	return left < NearEnd, left < s.Step
}

// Mapping is the assignment of keys to sections: part of the cluster's metadata. Spaces are
// added at its end; nothing of what is in it ever changes.
type Mapping struct {
	Spaces []Space `json:"spaces"`
}

var spaceName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)

// NewMapping lays the spaces of a new cluster out one after the other. Zero fields get defaults.
func NewMapping(spaces ...Space) (Mapping, error) {
	if len(spaces) == 0 {
		spaces = []Space{{Name: DefaultSpace}}
	}
	m := Mapping{Spaces: make([]Space, 0, len(spaces))}
	var next SectionID
	for _, s := range spaces {
		s = s.withDefaults()
		s.First = next
		next += SectionID(s.Sections)
		m.Spaces = append(m.Spaces, s)
	}
	if err := m.Validate(); err != nil {
		return m, err
	}
	return m, m.checkNew()
}

// checkNew is ErrBadMapping for more sections than MaxNewSections.
func (m Mapping) checkNew() error {
	if n := m.Sections(); n > MaxNewSections {
		return fmt.Errorf("%w: %d sections over all spaces, expected at most %d, which is the most that a cluster was run with", ErrBadMapping, n, MaxNewSections)
	}
	return nil
}

func (s Space) withDefaults() Space {
	if s.Sections == 0 {
		s.Sections = DefaultSections
	}
	if s.Step == 0 {
		s.Step = DefaultStep
	}
	// A step that is set was chosen for a reason, and does not grow.
	if s.MaxStep == 0 && s.Step == DefaultStep {
		s.MaxStep = DefaultMaxStep
	}
	if s.MaxStep == 0 {
		s.MaxStep = s.Step
	}
	if s.Mode == "" {
		s.Mode = Ordered
	}
	if s.Mode == Exact && s.Window == 0 {
		s.Window = DefaultWindow
	}
	return s
}

// Validate checks names, limits and that the spaces lie back to back.
func (m Mapping) Validate() error {
	if len(m.Spaces) == 0 || len(m.Spaces) > MaxSpaces {
		return fmt.Errorf("%w: %d spaces, expected 1 to %d", ErrBadMapping, len(m.Spaces), MaxSpaces)
	}
	seen := map[string]bool{}
	var next uint64
	added := false
	for _, s := range m.Spaces {
		switch {
		case !spaceName.MatchString(s.Name):
			return fmt.Errorf("%w: space name %q, expected %s", ErrBadMapping, s.Name, spaceName)
		case seen[s.Name]:
			return fmt.Errorf("%w: space %q twice", ErrBadMapping, s.Name)
		case uint64(s.First) != next:
			return fmt.Errorf("%w: space %q starts at section %d, expected %d", ErrBadMapping, s.Name, s.First, next)
		case s.Added && next == 0:
			return fmt.Errorf("%w: the first space, %q, was added: expected one that the cluster was initialised with", ErrBadMapping, s.Name)
		case added && !s.Added:
			return fmt.Errorf("%w: space %q of the initialised ones stands after one that was added", ErrBadMapping, s.Name)
		case s.Sections == 0 || s.Sections > MaxSections:
			return fmt.Errorf("%w: space %q has %d sections, expected 1 to %d", ErrBadMapping, s.Name, s.Sections, MaxSections)
		case s.Added && s.Sections > MaxAdded:
			return fmt.Errorf("%w: space %q has %d sections, expected at most %d of one that is added", ErrBadMapping, s.Name, s.Sections, MaxAdded)
		case s.Step == 0 || s.Step > MaxStep:
			return fmt.Errorf("%w: space %q has step %d, expected 1 to %d", ErrBadMapping, s.Name, s.Step, uint64(MaxStep))
		case s.MaxStep != 0 && s.MaxStep < s.Step || s.MaxStep > MaxStep:
			return fmt.Errorf("%w: space %q has a largest step of %d, expected %d, its step, to %d", ErrBadMapping, s.Name, s.MaxStep, s.Step, uint64(MaxStep))
		case s.MaxJump > uint64(MaxSeq):
			return fmt.Errorf("%w: space %q has a largest jump of %d, expected 1 to %d", ErrBadMapping, s.Name, s.MaxJump, uint64(MaxSeq))
		case s.KeyHash.Validate() != nil:
			return fmt.Errorf("space %q: %w", s.Name, s.KeyHash.Validate())
		case s.Mode != Ordered && s.Mode != Strict && s.Mode != UniqueOnly && s.Mode != Exact:
			return fmt.Errorf("%w: space %q has mode %q, expected %s", ErrBadMapping, s.Name, s.Mode, ModeNames)
		case s.Mode == Exact && (s.Window < time.Second || s.Window > MaxWindow):
			return fmt.Errorf("%w: exact space %q keeps ids for %v, expected %v to %v", ErrBadMapping, s.Name, s.Window, time.Second, MaxWindow)
		case s.Window%time.Millisecond != 0: // they travel
			return fmt.Errorf("%w: exact space %q keeps ids for %v, expected whole milliseconds", ErrBadMapping, s.Name, s.Window)
		case s.Mode != Exact && s.Window != 0:
			return fmt.Errorf("%w: space %q of mode %s has a window of %v: ids of requests are kept by spaces of mode=%s only", ErrBadMapping, s.Name, s.Mode, s.Window, Exact)
		case s.Tickets != 0 && (s.Tickets < MinTickets || s.Tickets > MaxTickets || s.Tickets%time.Millisecond != 0):
			return fmt.Errorf("%w: space %q has tickets of %v, expected %v to %v in whole milliseconds, or none", ErrBadMapping, s.Name, s.Tickets, MinTickets, MaxTickets)
		case s.Tickets != 0 && s.Mode == UniqueOnly:
			return fmt.Errorf("%w: space %q of mode %s has tickets of %v: its numbers may come out below marks", ErrBadMapping, s.Name, s.Mode, s.Tickets)
		}
		seen[s.Name] = true
		added = s.Added
		next += uint64(s.Sections)
	}
	if next > MaxSections {
		return fmt.Errorf("%w: %d sections over all spaces, expected at most %d", ErrBadMapping, next, MaxSections)
	}
	return nil
}

// Sections returns the number of sections over all spaces.
func (m Mapping) Sections() int {
	n := 0
	for i := range m.Spaces {
		n += int(m.Spaces[i].Sections)
	}
	return n
}

// Space returns the space of the name, or ErrUnknownSpace. The empty name means DefaultSpace.
func (m Mapping) Space(name string) (*Space, error) {
	if name == "" {
		name = DefaultSpace
	}
	for i := range m.Spaces {
		if m.Spaces[i].Name == name {
			return &m.Spaces[i], nil
		}
	}
	names := make([]string, len(m.Spaces))
	for i := range m.Spaces {
		names[i] = m.Spaces[i].Name
	}
	return nil, fmt.Errorf("%w: %q, expected one of %s", ErrUnknownSpace, name, strings.Join(names, ", "))
}

// SpaceOf returns the space that a section belongs to, or ErrUnknownSection.
func (m Mapping) SpaceOf(id SectionID) (*Space, error) {
	for i := range m.Spaces {
		s := &m.Spaces[i]
		if id >= s.First && uint64(id) < uint64(s.First)+uint64(s.Sections) {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%w: %d, expected 0 to %d", ErrUnknownSection, id, m.Sections()-1)
}

// IsExact reports whether a section belongs to an exact space.
func (m Mapping) IsExact(id SectionID) bool {
	s, err := m.SpaceOf(id)
	return err == nil && s.Mode == Exact
}

// WindowOf returns for how long a section of an exact space keeps the ids of requests, in milliseconds, and
// zero for any other section.
func (m Mapping) WindowOf(id SectionID) int64 {
	s, err := m.SpaceOf(id)
	if err != nil {
		return 0
	}
	return s.Window.Milliseconds()
}

// HasExact reports whether a space is exact.
func (m Mapping) HasExact() bool {
	return slices.ContainsFunc(m.Spaces, func(s Space) bool { return s.Mode == Exact })
}

// HasTickets reports whether a space gives tickets.
func (m Mapping) HasTickets() bool {
	return slices.ContainsFunc(m.Spaces, func(s Space) bool { return s.Tickets > 0 })
}

// SectionOf returns the section of a UID in the space: the block of 64 neighbours, hashed.
// docs/decisions.md, 001 has the reason.
func (s *Space) SectionOf(uid UID) SectionID {
	return s.First + SectionID(mix(uint64(uid)>>BlockBits)%uint64(s.Sections))
}

// SectionOfName places a segment tag or another name among the sections that the cluster was initialised
// with, so that the section's owner serves it. Sections of later spaces do not count. With them tags would
// move, and nodes that do not know a new space yet would disagree.
func (m Mapping) SectionOfName(name string) SectionID {
	return SectionID(mix(uint64(HashKey(name))) % uint64(m.initial()))
}

// mix is the finalizer of splitmix64 (Steele, Lea, Flood, OOPSLA 2014): every bit
// of the input moves every bit of the output.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
