package globalid

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"

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
}

// The names of Unix path elements without surprises: they stand in register names and
// in URLs. The first is a letter, so that none looks like an alias.
var namespaceName = regexp.MustCompile(`^[a-z][a-z0-9._-]{0,63}$`)

func (ns Namespace) validate() error {
	if !namespaceName.MatchString(ns.Name) {
		return fmt.Errorf("%w: namespace name %q, expected %s", seq.ErrBadArgument, ns.Name, namespaceName)
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
// returns it as it is then. seq.ErrConflict, seq.ErrUnsafeChange, seq.ErrBadArgument.
func (d directory) put(ns Namespace, version uint64) (directory, Namespace, error) {
	if err := ns.validate(); err != nil {
		return d, ns, err
	}
	old, known := d.find(ns.Name)
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
	rest := slices.DeleteFunc(slices.Clone(d.Namespaces), func(other Namespace) bool { return other.Name == ns.Name })
	if i := slices.IndexFunc(rest, ns.meets); i >= 0 {
		return d, old, fmt.Errorf("%w: namespace %q: alias %d belongs to %q", seq.ErrUnsafeChange, ns.Name, ns.Alias, rest[i].Name)
	}
	ns.Version = version + 1
	d.Namespaces = append(rest, ns)
	slices.SortFunc(d.Namespaces, func(a, b Namespace) int { return cmp.Compare(a.Name, b.Name) })
	return d, ns, nil
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
