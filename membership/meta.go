package membership

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/seqsvr/seqsvr/seq"
)

// Role says which daemon a member is.
type Role string

// The roles of the cluster.
const (
	RoleStore  Role = "store"
	RoleAlloc  Role = "alloc"
	RoleRouter Role = "router"
)

// Valid reports whether the role is one this build knows. Decoding keeps unknown roles as they are, so
// that an older node can list members of a role invented later.
func (r Role) Valid() bool {
	return r == RoleStore || r == RoleAlloc || r == RoleRouter
}

// MaxMetaSize is the largest encoded Meta in bytes: memberlist carries 512, and the encoding stays under it.
const MaxMetaSize = 511

// metaFormat is the first byte of every encoding. It changes only when the bytes after it stop being
// a JSON object; new fields do not need a new format, since a decoder passes over unknown ones.
const metaFormat = 1

// Meta is what a node tells all others about itself. It is not secret and not authenticated beyond
// the gossip key, if one is set.
type Meta struct {
	// Role of the process.
	Role Role
	// Name is the node's name, unique in the cluster. It travels as memberlist's node name, not in the encoding.
	Name string
	// Addr is the gRPC address (host:port) other members and clients dial.
	Addr string
	// HTTP is the address of the HTTP front, empty if there is none.
	HTTP string
	// Admin is the address of the admin and metrics listener, empty if there is none.
	Admin string
	// Session is this incarnation of the process: new at every start, never zero in a running View.
	Session uint64
	// Protocol is the version of the service protocol the process speaks.
	Protocol int
	// TableVersion is the newest route table the process holds, 0 before the first.
	TableVersion uint64
	// Exposed: the process takes plaintext from other machines.
	Exposed bool
	// Zone that the process is in, empty if none is known.
	Zone string
	// Incarnation is the life of the cluster that the process belongs to. It is not known of a build of
	// the version before, and of a process whose addresses leave no room for it.
	Incarnation seq.Incarnation
}

// metaWire is the JSON form; one-letter keys keep two long addresses well inside MaxMetaSize.
type metaWire struct {
	Role         Role   `json:"r,omitempty"`
	Addr         string `json:"a,omitempty"`
	HTTP         string `json:"h,omitempty"`
	Admin        string `json:"m,omitempty"`
	Session      uint64 `json:"s,omitempty"`
	Protocol     int    `json:"p,omitempty"`
	TableVersion uint64 `json:"t,omitempty"`
	Exposed      bool   `json:"x,omitempty"`
	Zone         string `json:"z,omitempty"`

	Incarnation seq.Incarnation `json:"i,omitzero"`
}

// Encode returns the bytes given to memberlist, at most MaxMetaSize, or ErrMetaTooLarge.
func (m Meta) Encode() ([]byte, error) {
	body, err := json.Marshal(metaWire{
		Role: m.Role, Addr: m.Addr, HTTP: m.HTTP, Admin: m.Admin,
		Session: m.Session, Protocol: m.Protocol, TableVersion: m.TableVersion, Exposed: m.Exposed, Zone: m.Zone, Incarnation: m.Incarnation,
	})
	if err != nil {
		return nil, fmt.Errorf("encode metadata of %q: %w", m.Name, err)
	}
	if n := len(body) + 1; n > MaxMetaSize && !m.Incarnation.IsZero() {
		m.Incarnation = seq.Incarnation{}
		return m.Encode()
	} else if n > MaxMetaSize {
		return nil, fmt.Errorf("encode metadata of %q: %d bytes, at most %d: %w", m.Name, n, MaxMetaSize, ErrMetaTooLarge)
	}
	return append([]byte{metaFormat}, body...), nil
}

// DecodeMeta reads what Encode wrote, for the node called name. Fields it does not know are passed
// over. Bytes of an unknown format, or none, give ErrMetaFormat and a Meta with the name alone.
func DecodeMeta(name string, b []byte) (Meta, error) {
	if len(b) == 0 || b[0] != metaFormat {
		return Meta{Name: name}, fmt.Errorf("decode metadata of %q: %d bytes: %w", name, len(b), ErrMetaFormat)
	}
	var w metaWire
	if err := json.Unmarshal(b[1:], &w); err != nil {
		return Meta{Name: name}, fmt.Errorf("decode metadata of %q: %w: %w", name, ErrMetaFormat, err)
	}
	return Meta{
		Role: w.Role, Name: name, Addr: w.Addr, HTTP: w.HTTP, Admin: w.Admin,
		Session: w.Session, Protocol: w.Protocol, TableVersion: w.TableVersion, Exposed: w.Exposed, Zone: w.Zone, Incarnation: w.Incarnation,
	}, nil
}

// fits reports ErrMetaTooLarge if the metadata could outgrow the limit by its table version alone, so
// that raising the version never fails later.
func (m Meta) fits() error {
	m.TableVersion = math.MaxUint64
	_, err := m.Encode()
	return err
}
