package namespaces

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// Default is the namespace of a request that names none.
const Default = "default"

// Max bounds the recorded namespaces.
const Max = 1024

// Namespace is a set of IDs of one layout. Within it no ID is handed out twice.
type Namespace struct {
	Name string `json:"name"` // a-z, then up to 63 of a-z 0-9 . _ -
	// Alias is its number for callers that know namespaces by number. Zero means no number. No two
	// namespaces have the same number, and it never changes.
	Alias   uint32           `json:"alias,omitempty"`
	Layout  snowflake.Layout `json:"layout"`  // with the policies
	Version uint64           `json:"version"` // counts its changes; zero if it is not recorded
	// Retired is when the namespace was retired, in Unix milliseconds. Zero means that it is in use. A
	// retired namespace hands out nothing. Its worker registers stay, so that no ID repeats if the
	// namespace goes on.
	Retired int64 `json:"retired_ms,omitempty"`
}

func (ns Namespace) validate() error {
	if err := seq.CheckNamespace(ns.Name); err != nil {
		return err
	}
	if _, err := ns.Layout.MarshalText(); err != nil {
		return Reading.Name(fmt.Errorf("namespace %q: %w", ns.Name, err))
	}
	return nil
}

// Check checks configured namespaces, each and against each other: seq.ErrBadArgument,
// seq.ErrBadLayout.
func Check(all []Namespace) error {
	for i, ns := range all {
		if err := ns.validate(); err != nil {
			return err
		}
		if slices.ContainsFunc(all[:i], ns.meets) {
			return fmt.Errorf("%w: namespace %q: name or alias %d twice", seq.ErrBadArgument, ns.Name, ns.Alias)
		}
	}
	return nil
}

// meets reports whether a request for one namespace could also mean the other.
func (ns Namespace) meets(other Namespace) bool {
	return ns.Name == other.Name || ns.Alias != 0 && ns.Alias == other.Alias
}

// InUse returns nil, or a seq.ErrRetired with the time.
func (ns Namespace) InUse() error {
	if ns.Retired == 0 {
		return nil
	}
	return fmt.Errorf("namespace %q: %w on %s", ns.Name, seq.ErrRetired, time.UnixMilli(ns.Retired).UTC().Format(time.RFC3339))
}

// EpochTolerance bounds how far the epoch of a new namespace may be ahead of a node's clock, because clocks
// differ.
const EpochTolerance = 10 * time.Minute

// lasts returns seq.ErrTimeExhausted for a layout without ticks left, and seq.ErrBadLayout for a layout
// that has not begun. Such a namespace could hand out nothing, and its layout could never be changed. An
// invalid namespace has an error of its own.
func (ns Namespace) lasts(now time.Time) error {
	if err := ns.validate(); err != nil {
		return err
	}
	if begins := ns.Layout.Epoch(); begins.After(now.Add(EpochTolerance)) {
		return fmt.Errorf("namespace %q: %w: its epoch is %s, and it is %s: expected an epoch that has begun",
			ns.Name, seq.ErrBadLayout, begins.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	if ns.Layout.Remaining(now) > 0 {
		return nil
	}
	return fmt.Errorf("namespace %q: %w: layout %s ended on %s, expected one with a later epoch or more bits of time",
		ns.Name, seq.ErrTimeExhausted, ns.Layout, ns.Layout.Exhausted().UTC().Format(time.DateOnly))
}

// follows returns an error if the namespace may not replace the old one. If its alias named other IDs,
// callers could get the same ID twice.
func (ns Namespace) follows(old Namespace) error {
	if old.Alias != 0 && ns.Alias != old.Alias {
		return fmt.Errorf("%w: namespace %q: alias %d cannot become %d", seq.ErrUnsafeChange, ns.Name, old.Alias, ns.Alias)
	}
	if err := ns.Layout.Follows(old.Layout); err != nil {
		return Reading.Name(fmt.Errorf("namespace %q: %w", ns.Name, err))
	}
	return nil
}

// agrees reports whether IDs and numbers mean the same in both, so that one of them may be
// an older or newer version of the other.
func (ns Namespace) agrees(have Namespace) error {
	if ns.Alias != 0 && have.Alias != 0 && ns.Alias != have.Alias {
		return fmt.Errorf("namespace %q: %w: it is recorded with alias %d, not %d", ns.Name, seq.ErrUnsafeChange, have.Alias, ns.Alias)
	}
	if err := ns.Layout.Follows(have.Layout); err != nil && have.Layout.Follows(ns.Layout) != nil {
		return Reading.Name(fmt.Errorf("namespace %q: %w", ns.Name, err))
	}
	return nil
}

// Ref names a namespace by name or by alias. If both are given, both must be right. If neither is given,
// Ref means Default.
type Ref struct {
	Name  string
	Alias uint32
}

// normal reads a name of digits as an alias.
func (r Ref) normal() Ref {
	if r.Name == "" && r.Alias == 0 {
		r.Name = Default
	}
	if n, err := strconv.ParseUint(r.Name, 10, 32); err == nil && n != 0 && (r.Alias == 0 || r.Alias == uint32(n)) {
		return Ref{Alias: uint32(n)}
	}
	return r
}

func (r Ref) matches(ns Namespace) bool {
	return (r.Name == "" || r.Name == ns.Name) && (r.Alias == 0 || r.Alias == ns.Alias)
}

func (r Ref) unknown() error {
	if r.Name == "" {
		return fmt.Errorf("%w: alias %d", seq.ErrUnknownNamespace, r.Alias)
	}
	if r.Alias != 0 {
		return fmt.Errorf("%w: %q with alias %d", seq.ErrUnknownNamespace, r.Name, r.Alias)
	}
	return fmt.Errorf("%w: %q", seq.ErrUnknownNamespace, r.Name)
}
