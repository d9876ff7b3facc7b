package namespaces

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// ErrBadDirectory: the document of namespaces cannot be read: damaged, or written by
// a newer version. Nothing is generated until it can; an operator must act.
var ErrBadDirectory = errors.New("document of namespaces not readable")

// Datacenter is an id and the name that it was first used under.
type Datacenter struct {
	ID   snowflake.Datacenter `json:"id"`
	Name string               `json:"name,omitempty"` // "" for nodes without a name
}

// directory is the document of namespaces. It is a value: changes return another.
//
//	names are unique; aliases other than 0 are unique; datacenter ids are unique;
//	datacenter names other than "" are unique; no worker id is in two allotments
type directory struct {
	Format      int          `json:"format"`
	Namespaces  []Namespace  `json:"namespaces,omitempty"`  // by name
	Datacenters []Datacenter `json:"datacenters,omitempty"` // by id
	// Member is true in a Set that is not the root. Its worker ids are in Allotments. The root, or a
	// cluster without other Sets, has all other worker ids.
	Member     bool        `json:"member,omitempty"`
	Allotments []Allotment `json:"allotments,omitempty"` // by namespace, datacenter and first worker id
	// Kept is the time, in Unix milliseconds, until which the root makes no IDs and allots no worker ids.
	// Another restored Set may have forgotten worker ids whose windows are in use until then.
	Kept uint64 `json:"kept_until_ms,omitempty"`
}

// kept returns seq.ErrWorkersKept before the time Kept.
func (d directory) kept(now time.Time) error {
	if d.Kept <= uint64(max(0, now.UnixMilli())) {
		return nil
	}
	return fmt.Errorf("%w: until %s: another Set was restored as well, and windows of worker ids that it has forgotten may be in use", seq.ErrWorkersKept,
		time.UnixMilli(int64(d.Kept)).UTC().Format(time.RFC3339))
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

// defaults returns the namespaces that every node offers by default.
func defaults() []Namespace {
	preset := func(name string, alias uint32, layout string) Namespace {
		l, err := snowflake.Preset(layout)
		if err != nil {
			panic("namespaces: " + err.Error()) // a preset that is not there is a mistake in this file
		}
		return Namespace{Name: name, Alias: alias, Layout: l}
	}
	return []Namespace{
		preset(Default, 0, "twitter"),
		preset("regional-1", 1, "regional"),
		preset("regional-2", 2, "regional"),
	}
}

// all returns the recorded namespaces and those offers that none of them meets, by name.
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
	if err := old.InUse(); err != nil {
		return d, old, err
	}
	if old.Version != version {
		return d, old, fmt.Errorf("namespace %q: %w: version is %d", ns.Name, seq.ErrConflict, old.Version)
	}
	if known {
		if err := ns.follows(old); err != nil {
			return d, old, err
		}
	}
	for _, other := range d.Namespaces {
		if other.Name != ns.Name && ns.meets(other) {
			return d, old, fmt.Errorf("%w: namespace %q: alias %d belongs to %q", seq.ErrUnsafeChange, ns.Name, ns.Alias, other.Name)
		}
	}
	ns.Version = version + 1
	d, err := d.with(ns)
	return d, ns, err
}

// with returns the directory with the namespace added, or replaced if its name is there. It returns
// seq.ErrBadArgument if there is no room.
func (d directory) with(ns Namespace) (directory, error) {
	rest := slices.DeleteFunc(slices.Clone(d.Namespaces), func(other Namespace) bool { return other.Name == ns.Name })
	if len(rest) >= Max {
		return d, fmt.Errorf("%w: namespace %q: %d are recorded, which is the most", seq.ErrBadArgument, ns.Name, Max)
	}
	d.Namespaces = append(rest, ns)
	slices.SortFunc(d.Namespaces, func(a, b Namespace) int { return cmp.Compare(a.Name, b.Name) })
	return d, nil
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

// NameOf returns the name of a datacenter id, "" if none is known.
func (d directory) NameOf(id snowflake.Datacenter) string {
	for _, dc := range d.Datacenters {
		if dc.ID == id {
			return dc.Name
		}
	}
	return ""
}
