package seq

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ClusterID identifies one binding of stores to each other. The zero ClusterID is not known.
type ClusterID [16]byte

// IsZero reports whether the id is not known.
func (id ClusterID) IsZero() bool { return id == ClusterID{} }

// String returns the id as 32 hex digits.
func (id ClusterID) String() string { return hex.EncodeToString(id[:]) }

// MarshalText implements encoding.TextMarshaler.
func (id ClusterID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. ErrBadArgument.
func (id *ClusterID) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err != nil || len(b) != len(id) {
		return fmt.Errorf("%w: cluster id %q, expected 32 hex digits", ErrBadArgument, text)
	}
	copy(id[:], b)
	return nil
}

// ClusterIDOf returns the id in bytes. Bytes of another length are an id that is not known.
func ClusterIDOf(b []byte) (id ClusterID) {
	if len(b) == len(id) {
		copy(id[:], b)
	}
	return id
}

// Incarnation says which life of which cluster a process belongs to. The name of a cluster is
// chosen by people, and two clusters may share it. An incarnation is never shared.
type Incarnation struct {
	// Cluster is the binding of the cluster's first stores. A restore keeps it. If it is zero, a
	// build of the version before did not say.
	Cluster ClusterID
	Era     Era
	// Binding identifies the binding of the stores of this era. A backup that is restored twice gives two
	// bindings. It is zero before the stores are bound.
	Binding ClusterID
}

// bindingLabel keeps the hash of a binding apart from every other hash.
const bindingLabel = "seqsvr binding 1\n"

// NewIncarnation derives the incarnation of stores that are bound to each other, from the name of
// the cluster, the era and the uuids of the first member list, in any order. Each uuid is drawn, so
// processes that bind the same stores agree without a message. If origin is zero, the cluster
// begins with this binding.
func NewIncarnation(origin ClusterID, cluster string, era Era, uuids []string) Incarnation {
	text := []byte(bindingLabel)
	add := func(s string) {
		text = append(binary.BigEndian.AppendUint64(text, uint64(len(s))), s...)
	}
	add(cluster)
	text = binary.BigEndian.AppendUint64(text, uint64(era))
	for _, uuid := range slices.Sorted(slices.Values(uuids)) {
		add(uuid)
	}
	sum := sha256.Sum256(text)
	in := Incarnation{Cluster: origin, Era: era, Binding: ClusterIDOf(sum[:len(ClusterID{})])}
	if in.Cluster.IsZero() {
		in.Cluster = in.Binding
	}
	return in
}

// Known reports whether the incarnation says which cluster it is of.
func (own Incarnation) Known() bool { return !own.Cluster.IsZero() }

// IsZero reports whether the incarnation is the zero value, which JSON leaves out.
func (own Incarnation) IsZero() bool { return own == Incarnation{} }

// String returns cluster, era and binding as "32 hex digits/7/32 hex digits".
func (own Incarnation) String() string {
	return own.Cluster.String() + "/" + strconv.FormatUint(uint64(own.Era), 10) + "/" + own.Binding.String()
}

// ParseIncarnation parses the result of String. ErrBadArgument.
func ParseIncarnation(text string) (Incarnation, error) {
	parts := strings.Split(text, "/")
	if len(parts) == 3 {
		var in Incarnation
		era, bad := strconv.ParseUint(parts[1], 10, 64)
		in.Era = Era(era)
		if err := errors.Join(bad, in.Cluster.UnmarshalText([]byte(parts[0])), in.Binding.UnmarshalText([]byte(parts[2]))); err == nil {
			return in, nil
		}
	}
	return Incarnation{}, fmt.Errorf("%w: incarnation %q, expected 32 hex digits/era/32 hex digits", ErrBadArgument, text)
}

// MarshalText implements encoding.TextMarshaler.
func (own Incarnation) MarshalText() ([]byte, error) { return []byte(own.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (own *Incarnation) UnmarshalText(text []byte) (err error) {
	*own, err = ParseIncarnation(string(text))
	return err
}

// Check returns nil if both may be of one life of one cluster, or if either is not known. It
// returns ErrForeignCluster if the clusters differ, or the bindings of one era. It returns
// ErrStaleEra if the eras differ.
func (own Incarnation) Check(other Incarnation) error {
	switch {
	case !own.Known() || !other.Known():
		return nil
	case own.Cluster != other.Cluster:
		return fmt.Errorf("%w: cluster id %s, expected %s", ErrForeignCluster, other.Cluster, own.Cluster)
	case other.Era < own.Era:
		return fmt.Errorf("%w: era %d of cluster id %s, which is older than era %d", ErrStaleEra, other.Era, own.Cluster, own.Era)
	case other.Era > own.Era:
		return fmt.Errorf("%w: era %d of cluster id %s, which is newer than era %d", ErrStaleEra, other.Era, own.Cluster, own.Era)
	case own.Binding != other.Binding && !own.Binding.IsZero() && !other.Binding.IsZero():
		return fmt.Errorf("%w: binding %s of cluster id %s in era %d, expected binding %s", ErrForeignCluster, other.Binding, own.Cluster, own.Era, own.Binding)
	}
	return nil
}

// Newer reports whether other is a later era of the same cluster.
func (own Incarnation) Newer(other Incarnation) bool {
	return own.Known() && own.Cluster == other.Cluster && other.Era > own.Era
}
