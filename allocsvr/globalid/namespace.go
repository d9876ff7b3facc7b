package globalid

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// DefaultNamespace is the namespace of a request that names none.
const DefaultNamespace = "default"

// MaxNamespaces is how many may be recorded.
const MaxNamespaces = 1024

// Namespace is a set of IDs of one layout: within it no ID is handed out twice.
type Namespace struct {
	Name string `json:"name"` // a-z, then up to 63 of a-z 0-9 . _ -
	// Alias is its number for callers that know namespaces by number; 0: none. Two
	// namespaces never have the same, and it never changes.
	Alias   uint32           `json:"alias,omitempty"`
	Layout  snowflake.Layout `json:"layout"`  // with the policies
	Version uint64           `json:"version"` // counts its changes; 0: not recorded
	// Retired is when it was retired, Unix milliseconds; 0: it is in use. A retired one hands
	// out nothing; its worker registers stay, so that no ID repeats should it go on.
	Retired int64 `json:"retired_ms,omitempty"`
}

func (ns Namespace) validate() error {
	if err := seq.CheckNamespace(ns.Name); err != nil {
		return err
	}
	if _, err := ns.Layout.MarshalText(); err != nil {
		return reading.name(fmt.Errorf("namespace %q: %w", ns.Name, err))
	}
	return nil
}

// meets says whether a request for one could also mean the other.
func (ns Namespace) meets(other Namespace) bool {
	return ns.Name == other.Name || ns.Alias != 0 && ns.Alias == other.Alias
}

// inUse is nil, or a seq.ErrRetired that says since when.
func (ns Namespace) inUse() error {
	if ns.Retired == 0 {
		return nil
	}
	return fmt.Errorf("namespace %q: %w on %s", ns.Name, seq.ErrRetired, time.UnixMilli(ns.Retired).UTC().Format(time.RFC3339))
}

// lasts is nil, or a seq.ErrTimeExhausted for a layout that has no tick left: a namespace
// of such a one could hand out nothing, ever. A namespace that is not sound has an error of
// its own.
func (ns Namespace) lasts(now time.Time) error {
	if err := ns.validate(); err != nil {
		return err
	}
	if ns.Layout.Remaining(now) > 0 {
		return nil
	}
	return fmt.Errorf("namespace %q: %w: layout %s ended on %s, expected one with a later epoch or more bits of time",
		ns.Name, seq.ErrTimeExhausted, ns.Layout, ns.Layout.Exhausted().UTC().Format(time.DateOnly))
}

// Ref is how a caller names a namespace: by name, by alias, or by neither for
// DefaultNamespace. If both are given, both must be right.
type Ref struct {
	Name  string
	Alias uint32
}

// normal reads a name of digits as an alias.
func (r Ref) normal() Ref {
	if r.Name == "" && r.Alias == 0 {
		r.Name = DefaultNamespace
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

// Datacenter is an id and the name that it was first used under.
type Datacenter struct {
	ID   snowflake.Datacenter `json:"id"`
	Name string               `json:"name,omitempty"` // "": of nodes without a name
}

// directory is the document of namespaces. It is a value: changes return another.
//
//	names are unique; aliases other than 0 are unique; datacenter ids are unique;
//	datacenter names other than "" are unique
type directory struct {
	Format      int          `json:"format"`
	Namespaces  []Namespace  `json:"namespaces,omitempty"`  // by name
	Datacenters []Datacenter `json:"datacenters,omitempty"` // by id
}

// format is the only one so far. A node refuses what a newer version wrote, since
// leaving out what it does not know could take a rule back.
const format = 1

func parseDirectory(body []byte) (directory, error) {
	if len(body) == 0 {
		return directory{Format: format}, nil
	}
	var d directory
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		return directory{}, fmt.Errorf("%w: %w", ErrBadDirectory, err)
	}
	if d.Format != format {
		return directory{}, fmt.Errorf("%w: format %d, expected %d", ErrBadDirectory, d.Format, format)
	}
	return d, nil
}

func (d directory) encode() ([]byte, error) {
	body, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encode namespaces: %w", err)
	}
	return body, nil
}

// defaultOffers are what every node offers where nothing else is said.
func defaultOffers() []Namespace {
	preset := func(name string, alias uint32, layout string) Namespace {
		l, err := snowflake.Preset(layout)
		if err != nil {
			panic("globalid: " + err.Error()) // a preset that is not there is a mistake in this file
		}
		return Namespace{Name: name, Alias: alias, Layout: l}
	}
	return []Namespace{
		preset(DefaultNamespace, 0, "twitter"),
		preset("regional-1", 1, "regional"),
		preset("regional-2", 2, "regional"),
	}
}

// all are the recorded namespaces and those offers that none of them meets, by name.
// Offers that come first go before.
func (d directory) all(offers []Namespace) []Namespace {
	out := slices.Clone(d.Namespaces)
	for _, ns := range offers {
		if !slices.ContainsFunc(out, ns.meets) {
			ns.Version = 0
			out = append(out, ns)
		}
	}
	slices.SortFunc(out, func(a, b Namespace) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func (d directory) find(name string) (Namespace, bool) {
	for _, ns := range d.Namespaces {
		if ns.Name == name {
			return ns, true
		}
	}
	return Namespace{}, false
}

// put records a namespace at the version, 0 if it must not be recorded yet, and
// returns it as it is then. seq.ErrConflict, seq.ErrUnsafeChange, seq.ErrBadArgument,
// seq.ErrRetired.
func (d directory) put(ns Namespace, version uint64) (directory, Namespace, error) {
	if err := ns.validate(); err != nil {
		return d, ns, err
	}
	old, known := d.find(ns.Name)
	if err := old.inUse(); err != nil {
		return d, old, err
	}
	if old.Version != version {
		return d, old, fmt.Errorf("namespace %q: %w: version is %d", ns.Name, seq.ErrConflict, old.Version)
	}
	if known {
		if err := ns.follows(old); err != nil {
			return d, old, err
		}
	} else if len(d.Namespaces) >= MaxNamespaces {
		return d, ns, fmt.Errorf("%w: namespace %q: %d are recorded, which is the most", seq.ErrBadArgument, ns.Name, MaxNamespaces)
	}
	for _, other := range d.Namespaces {
		if other.Name != ns.Name && ns.meets(other) {
			return d, old, fmt.Errorf("%w: namespace %q: alias %d belongs to %q", seq.ErrUnsafeChange, ns.Name, ns.Alias, other.Name)
		}
	}
	ns.Version = version + 1
	return d.with(ns), ns, nil
}

// with is the directory with the namespace in place of the one of its name.
func (d directory) with(ns Namespace) directory {
	rest := slices.DeleteFunc(slices.Clone(d.Namespaces), func(other Namespace) bool { return other.Name == ns.Name })
	d.Namespaces = append(rest, ns)
	slices.SortFunc(d.Namespaces, func(a, b Namespace) int { return cmp.Compare(a.Name, b.Name) })
	return d
}

// retire has the namespace that is meant hand out nothing from now on, or undoes that, and
// returns it as it is then; changed is false if it was so before. One that is only offered
// is recorded with it. seq.ErrUnknownNamespace, seq.ErrTimeExhausted: an undone one has a
// layout that has ended; seq.ErrBadArgument: no room to record it.
func (d directory) retire(offers []Namespace, ref Ref, now time.Time, undo bool) (next directory, ns Namespace, changed bool, err error) {
	all := d.all(offers)
	i := slices.IndexFunc(all, ref.normal().matches)
	if i < 0 {
		return d, ns, false, ref.normal().unknown()
	}
	if ns = all[i]; undo == (ns.Retired == 0) {
		return d, ns, false, nil
	}
	if ns.Retired = now.UnixMilli(); undo {
		ns.Retired = 0
		if err := ns.lasts(now); err != nil {
			return d, ns, false, err
		}
	}
	if ns.Version == 0 && len(d.Namespaces) >= MaxNamespaces {
		return d, ns, false, fmt.Errorf("%w: namespace %q: %d are recorded, which is the most", seq.ErrBadArgument, ns.Name, MaxNamespaces)
	}
	ns.Version++
	return d.with(ns), ns, true, nil
}

// follows says whether the namespace may replace what it was. An alias that named
// other IDs would give its callers the same ID twice.
func (ns Namespace) follows(old Namespace) error {
	if old.Alias != 0 && ns.Alias != old.Alias {
		return fmt.Errorf("%w: namespace %q: alias %d cannot become %d", seq.ErrUnsafeChange, ns.Name, old.Alias, ns.Alias)
	}
	if err := ns.Layout.Follows(old.Layout); err != nil {
		return reading.name(fmt.Errorf("namespace %q: %w", ns.Name, err))
	}
	return nil
}

// bind checks a node's datacenter against what is recorded, and records it where
// nothing is. An id that was used without a name may get one.
func (d directory) bind(dc Datacenter) (next directory, changed bool, err error) {
	at := -1
	for i, known := range d.Datacenters {
		switch {
		case known.ID == dc.ID:
			at = i
			if known.Name != dc.Name && known.Name != "" {
				return d, false, fmt.Errorf("%w: id %d is %q, this node is configured for %q", seq.ErrDatacenterTaken, dc.ID, known.Name, dc.Name)
			}
		case dc.Name != "" && known.Name == dc.Name:
			return d, false, fmt.Errorf("%w: %q has id %d, this node is configured for %d", seq.ErrDatacenterTaken, dc.Name, known.ID, dc.ID)
		}
	}
	if at >= 0 && d.Datacenters[at].Name == dc.Name {
		return d, false, nil
	}
	d.Datacenters = slices.Clone(d.Datacenters)
	if at >= 0 {
		d.Datacenters[at] = dc
		return d, true, nil
	}
	d.Datacenters = append(d.Datacenters, dc)
	slices.SortFunc(d.Datacenters, func(a, b Datacenter) int { return cmp.Compare(a.ID, b.ID) })
	return d, true, nil
}

// nameOf is the name of a datacenter id, "" if none is known.
func (d directory) nameOf(id snowflake.Datacenter) string {
	for _, dc := range d.Datacenters {
		if dc.ID == id {
			return dc.Name
		}
	}
	return ""
}
