package seq

import "fmt"

// Rules are the rules of a kind of register: one row of the table of kinds. The zero value of a column
// means that the rule is undecided, and a test fails for it.
type Rules struct {
	Kind Kind
	// Name is the noun that people read, as in "section 17".
	Name string
	// Owned says how two writers are kept apart.
	Owned Ownership
	// Made says when a register of the kind is made.
	Made Making
	// Holds is what the value means, and so how large it may become.
	Holds Value
	// Restored is what a new era does to the value that a backup has.
	Restored Restoring
	// Floor is what a register counts for at least that the backup of an era does not know.
	Floor Floor
}

// Ownership keeps two writers of a register apart.
type Ownership uint8

// The kinds of ownership.
const (
	ByLease   Ownership = iota + 1 // one session at a time, under a lease
	ByVersion                      // anybody: compare-and-swap by the version of the payload
)

// Making says when a register is made.
type Making uint8

// The moments at which registers are made.
const (
	ByInit    Making = iota + 1 // with the store, by its fixed name
	ByMapping                   // with the space that it is of, by init or when the space is added
	OnPrepare                   // by the first PREPARE
)

// Value is what the value of a register means.
type Value uint8

// The meanings of values.
const (
	Numbers  Value = iota + 1 // the end of what was handed out, at most MaxSeq
	Reserved                  // the end of what was reserved: nothing beyond MaxSeq is handed out of it
	Mark                      // a time in milliseconds since 1970, near the clock of the store
	Version                   // of the payload
	NoValue                   // it stays zero
)

// Restoring is what a new era does to a value.
type Restoring uint8

// The changes of values at the start of a new era.
const (
	Raise Restoring = iota + 1 // by the numbers that may have been handed out since the backup
	Bump                       // the version, so that it is newer than each that was seen
	Keep                       // the floor of the era is above all that was used
)

// Floor is which floor of an era a kind has; see quorum.Floors.
type Floor uint8

// The floors of an era.
const (
	SectionFloor Floor = iota + 1
	TagFloor
	WorkerFloor
	// NoFloor stands for kinds of which each backup has all registers, and for kinds that hold nothing.
	NoFloor
)

// kinds is the table of kinds.
var kinds = []Rules{
	{KindSection, "section", ByLease, ByMapping, Numbers, Raise, SectionFloor},
	{KindTag, "tag", ByLease, OnPrepare, Reserved, Raise, TagFloor},
	{KindWorker, "worker", ByLease, OnPrepare, Mark, Keep, WorkerFloor},
	{KindDocument, "document", ByVersion, ByInit, Version, Bump, NoFloor},
	{KindLease, "lease", ByLease, ByInit, NoValue, Keep, NoFloor},
}

// byKind finds the row of a kind.
var byKind = func() (rows [256]*Rules) {
	for i := range kinds {
		rows[kinds[i].Kind] = &kinds[i]
	}
	return rows
}()

var noRules Rules

// Kinds returns the table of kinds, a row for each.
func Kinds() []Rules { return append([]Rules(nil), kinds...) }

// Rules returns the row of the kind. If this build does not know the kind, the row is zero.
func (k Kind) Rules() *Rules {
	if row := byKind[k]; row != nil {
		return row
	}
	return &noRules
}

// Known reports whether this build knows the kind.
func (k Kind) Known() bool { return byKind[k] != nil }

// Rules returns the rules of the register's kind.
func (r Register) Rules() *Rules { return r.Kind().Rules() }

// Carrying is what a new era does to the payload of a fixed document.
type Carrying uint8

// The changes of documents' payloads at the start of a new era.
const (
	CarryOver Carrying = iota + 1 // it is kept
	StartOver                     // the era begins with a document of its own
	Unsettle                      // sections may have moved since the backup: it is to be settled
)

// Fixed is a register with a fixed name.
type Fixed struct {
	Register Register
	// Carried is what a new era does to the payload.
	Carried Carrying
	// Later says that databases and backups of v0.1.0 lack the register. A store makes it at its
	// first start with a newer build.
	Later bool
}

// fixed is the table of them. The later ones are in the order in which they came to be.
var fixed = []Fixed{
	{ArbiterRegister, CarryOver, false},
	{RoutesRegister, CarryOver, false},
	{EventsRegister, CarryOver, false},
	{NamespacesRegister, CarryOver, false},
	{TagsRegister, CarryOver, false},
	{MembersRegister, StartOver, false},
	{KeysRegister, CarryOver, true},
	{SpacesRegister, CarryOver, true},
	{RecordRegister, Unsettle, true},
	{SetsRegister, Unsettle, true},
}

// FixedRules returns the row of a register with a fixed name; known is false for any other.
func (r Register) FixedRules() (row Fixed, known bool) {
	for _, f := range fixed {
		if f.Register == r {
			return f, true
		}
	}
	return Fixed{}, false
}

// Known returns nil if this build has rules for the register. Otherwise it returns an ErrBadRegister that
// names the missing part. It does not check the length of the name; see Validate.
func (r Register) Known() error {
	kind := r.Kind()
	if !kind.Known() {
		return fmt.Errorf("%w: unknown kind %q of register %q", ErrBadRegister, byte(kind), string(r))
	}
	if kind.Rules().Made == ByInit {
		if _, known := r.FixedRules(); !known {
			return fmt.Errorf("%w: unknown %s", ErrBadRegister, r)
		}
	}
	return nil
}

// FixedRegisters returns the registers that init makes beside the sections.
func FixedRegisters() []Register { return fixedOf(func(Fixed) bool { return true }) }

// LaterRegisters returns the fixed registers that databases and backups of v0.1.0 lack, oldest first. A
// store makes them at its first start with a newer build.
func LaterRegisters() []Register { return fixedOf(func(f Fixed) bool { return f.Later }) }

func fixedOf(some func(Fixed) bool) []Register {
	out := make([]Register, 0, len(fixed))
	for _, f := range fixed {
		if some(f) {
			out = append(out, f.Register)
		}
	}
	return out
}
