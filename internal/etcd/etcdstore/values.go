package etcdstore

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/version"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Every value ends in the CRC-32C of its key and of what is before it, so that neither a
// flipped bit nor a value under another key is taken for what was written.

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const sumSize = 4

func sum(key string, body []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte(key), castagnoli), castagnoli, body)
}

func seal(key string, body []byte) []byte {
	out := make([]byte, 0, len(body)+sumSize)
	return binary.LittleEndian.AppendUint32(append(out, body...), sum(key, body))
}

// open gives what seal was given. ErrDamaged.
func open(kv KeyValue) ([]byte, error) {
	n := len(kv.Value) - sumSize
	if n < 0 || binary.LittleEndian.Uint32(kv.Value[n:]) != sum(kv.Key, kv.Value[:n]) {
		return nil, fmt.Errorf("%w: %q, %d bytes with a wrong checksum", ErrDamaged, kv.Key, len(kv.Value))
	}
	return kv.Value[:n], nil
}

// register is the value of r/<register>.
type register struct {
	promised seq.Epoch
	accepted seq.Epoch // <= promised
	max      uint64
	bodyMax  uint64 // the max that came with the body
	// life is the create revision that the key of promised.Session had when it wrote this. Zero means that
	// the register is not kept for the session.
	life     int64
	released seq.Epoch   // the promised epoch, once it was given up
	reserved seq.Session // the session that it was released to; may be zero
	seal     uint64      // LeaseItem.Seal of the release
}

const registerFormat = 1

func (r register) encode(key string) []byte {
	b := []byte{registerFormat}
	for _, v := range []uint64{r.promised.Round, uint64(r.promised.Session), r.accepted.Round, uint64(r.accepted.Session), r.max, r.bodyMax,
		uint64(r.life), r.released.Round, uint64(r.released.Session), uint64(r.reserved), r.seal} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return seal(key, b)
}

func decodeRegister(kv KeyValue) (r register, err error) {
	b, err := open(kv)
	if err != nil {
		return r, err
	}
	var v [11]uint64
	if len(b) != 1+8*len(v) || b[0] != registerFormat {
		return r, fmt.Errorf("%w: %q, %d bytes of an unknown format", ErrDamaged, kv.Key, len(b))
	}
	for i := range v {
		v[i] = binary.LittleEndian.Uint64(b[1+8*i:])
	}
	epoch := func(i int) seq.Epoch { return seq.Epoch{Round: v[i], Session: seq.Session(v[i+1])} }
	return register{promised: epoch(0), accepted: epoch(2), max: v[4], bodyMax: v[5], life: int64(v[6]),
		released: epoch(7), reserved: seq.Session(v[9]), seal: v[10]}, nil
}

// session is the value of s/<session>.
type session struct {
	Name     string
	Addr     string
	Lease    time.Duration // the longest that it ever asked for
	Attached uint32
	Beat     uint64 // counts the writes
	// Wall is the wall clock of the process at the beat, milliseconds since 1970. Zero means a build of
	// before.
	Wall     int64 `json:",omitempty"`
	Protocol int   `json:",omitempty"` // that the node speaks; zero if its build is older than the field
}

// former is the value of n/<name>.
type former struct{ Session seq.Session }

// ending is the value of ended/<session>.
type ending struct{}

// meta is the value of meta.
type meta struct {
	UUID    string
	Cluster string
	Era     seq.Era
	Etcd    uint64 // etcd's id of itself at the making
	Spaces  []seq.Space
	Floors  quorum.Floors
	Making  bool // init or a restore has not finished
	// Before is the era that registers may still be of while they are converted in place. If nil, all are
	// of Era.
	Before *seq.Era `json:",omitempty"`
	// Origin and Binding are what Identity tells of the incarnation, of an era that was restored. If
	// Binding is zero, it is derived from the UUID.
	Origin  seq.ClusterID `json:",omitzero"`
	Binding seq.ClusterID `json:",omitzero"`
	Poison  string        // why nothing may be written any more; empty while writes are allowed
	// Required is the protocol that sessions must speak. Zero means any.
	Required int `json:",omitempty"`
}

// gated is the Poison of a meta that builds of before version.Gate must not use: they do not know
// Required, and drop fields that they do not know. They stop, and show the text.
const gated = "these keys need a build of protocol 3 or newer"

// gate returns the Poison that the meta needs, if it has none.
func (m meta) gate() string {
	if m.Required >= version.Gate || !m.Origin.IsZero() || !m.Binding.IsZero() {
		return gated
	}
	return ""
}

// poison returns why nothing may be written any more, whatever the build.
func (m meta) poison() string {
	if m.Poison == gated {
		return ""
	}
	return m.Poison
}

// encode encodes the values of keys that are no registers.
func encode(key string, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("etcdstore: " + err.Error()) // of the types above none can fail
	}
	return seal(key, b)
}

func decode(kv KeyValue, v any) error {
	b, err := open(kv)
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		return fmt.Errorf("%w: %q: %w", ErrDamaged, kv.Key, err)
	}
	return nil
}
