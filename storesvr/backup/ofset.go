package backup

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seqsvr/seqsvr/internal/base/version"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// ErrWasSet: the backup tells that the cluster is a Set, and needs no word of an operator that it became one.
var ErrWasSet = errors.New("backup is of a Set already")

// OfSet tells what a backup says of the Sets. The registers say it, in backups of older builds too.
type OfSet struct {
	Alone bool     `json:"alone,omitempty"` // the cluster was no Set when the backup was made
	Name  string   `json:"name,omitempty"`  // of the Set
	Root  []string `json:"root,omitempty"`  // addresses of the root Set; empty if the cluster is the root itself or alone
	Sets  int      `json:"sets,omitempty"`  // in the map; a Set that is not the root has heard of so many

	founded bool // its map is a root's, and its record was read before the record said so
}

// String returns it for people: "Set main, the root of 3 Sets".
func (o OfSet) String() string {
	switch {
	case o.Alone:
		return "a cluster that is alone (no Set)"
	case len(o.Root) == 0:
		return fmt.Sprintf("Set %s, the root of %d Sets", o.Name, o.Sets)
	}
	return fmt.Sprintf("Set %s of the root at %s, which has heard of %d Sets", o.Name, strings.Join(o.Root, ", "), o.Sets)
}

// SetOf reads which Set the registers are of. Errors: seq.ErrBadTable.
func SetOf(states []quorum.RegisterState) (OfSet, error) {
	record, err := sets.ParseRecord(bodyOf(states, seq.RecordRegister))
	if err != nil {
		return OfSet{}, err
	}
	m, err := sets.ParseMap(bodyOf(states, seq.SetsRegister))
	if err != nil {
		return OfSet{}, err
	}
	if record.Alone() && (m.Heard || len(m.Sets) == 0) {
		return OfSet{Alone: true}, nil
	}
	return OfSet{Name: record.SetName(), Root: record.Root, Sets: len(m.Sets), founded: record.Alone()}, nil
}

// bodyOf returns the body of a document; nil if it was never written.
func bodyOf(states []quorum.RegisterState, r seq.Register) []byte {
	for _, st := range states {
		if st.Register == r && len(st.Payload) > versionLen {
			return st.Payload[versionLen:]
		}
	}
	return nil
}

// ofSets returns the registers, and the protocol that they require. Those of a cluster that was alone, and became
// the root of Sets, say so. Where the order tells it, the map is one that names none of them yet.
func (o Restore) ofSets(m Manifest, states []quorum.RegisterState) ([]quorum.RegisterState, int, error) {
	of, err := SetOf(states)
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("%w: %w", ErrUnsound, err)
	case o.WasSet && !of.Alone:
		return nil, 0, fmt.Errorf("%w: it is of %v, expected one of a cluster that is alone", ErrWasSet, of)
	case !o.WasSet && !of.founded:
		return states, m.Required, nil
	}
	record, err := sets.Record{Name: sets.RootName}.Encode()
	if err != nil {
		return nil, 0, err
	}
	if states = withBody(states, seq.RecordRegister, record); o.WasSet {
		body, err := sets.Map{Restored: true}.Encode()
		if err != nil {
			return nil, 0, err
		}
		states = withBody(states, seq.SetsRegister, body)
	}
	return states, max(m.Required, version.Sets), nil
}

// withBody returns the states with another body of a document, under the version that it has.
func withBody(states []quorum.RegisterState, r seq.Register, body []byte) []quorum.RegisterState {
	states = slices.Clone(states)
	i := slices.IndexFunc(states, func(st quorum.RegisterState) bool { return st.Register == r })
	if i < 0 {
		i, states = len(states), append(states, quorum.RegisterState{Register: r})
	}
	version := states[i].Max
	if payload := states[i].Payload; len(payload) >= versionLen {
		version = max(version, binary.BigEndian.Uint64(payload))
	}
	states[i].Payload = append(binary.BigEndian.AppendUint64(nil, version), body...)
	return states
}
