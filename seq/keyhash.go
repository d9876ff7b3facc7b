package seq

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"unsafe"
)

// KeyHash says how the string keys of a space become UIDs.
type KeyHash string

const (
	// SHA256Keys is HashKey: anyone can search for two keys that collide. In older mappings the empty
	// KeyHash means it.
	SHA256Keys KeyHash = "sha256-64"
	// SecretKeys is the first 8 bytes of an HMAC-SHA-256 under a KeySecret of the space. Without the
	// secret, no caller can search for keys that collide.
	SecretKeys KeyHash = "hmac-sha256-64"
)

// Validate returns ErrBadMapping for an unknown hash.
func (h KeyHash) Validate() error {
	if h != "" && h != SHA256Keys && h != SecretKeys {
		return fmt.Errorf("%w: key hash %q, expected %s or %s", ErrBadMapping, string(h), SHA256Keys, SecretKeys)
	}
	return nil
}

// HashKey returns the public hash of a string key: the first 8 bytes, big-endian, of its SHA-256. That is
// simple to repeat in any language. It decides the key's section in every space, so that callers find the
// owner without a secret. With SHA256Keys it is the key's UID as well.
func HashKey(key string) UID {
	sum := sha256.Sum256([]byte(key))
	return UID(binary.BigEndian.Uint64(sum[:8]))
}

// KeySecret is the secret under which the string keys of a space are hashed: 32 random bytes that the
// stores keep and the AllocSvr know, and no caller. Two keys that collide share a counter, and a holder of
// the secret can search for such keys.
type KeySecret [32]byte

// NewKeySecret draws a secret from the system's random source.
func NewKeySecret() (s KeySecret) {
	_, _ = rand.Read(s[:]) // documented never to return an error
	return s
}

// IsZero reports whether there is no secret.
func (s KeySecret) IsZero() bool { return s == KeySecret{} }

// String hides the secret, because its result may end up in a log.
func (KeySecret) String() string { return "secret of string keys" }

// GoString is String, for %#v.
func (s KeySecret) GoString() string { return s.String() }

// Format is String whatever the verb, so that not even %x tells it.
func (s KeySecret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// MarshalText gives the secret itself as 64 hex digits, for the stores.
func (s KeySecret) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(s[:])), nil }

// UnmarshalText reads what MarshalText wrote. The error does not repeat the text.
func (s *KeySecret) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err != nil || len(b) != len(s) {
		return fmt.Errorf("%w: a secret of string keys of %d characters, expected %d hex digits", ErrBadArgument, len(text), 2*len(s))
	}
	copy(s[:], b)
	return nil
}

// KeyHasher turns the string keys of one space into UIDs: HashKey, or under a secret if it
// has one.
type KeyHasher struct{ Secret KeySecret }

// UID returns the UID of the key's counter.
func (h KeyHasher) UID(key string) UID {
	if h.Secret.IsZero() {
		return HashKey(key)
	}
	mac := hmac.New(sha256.New, h.Secret[:])
	mac.Write([]byte(key))
	var sum [sha256.Size]byte
	return UID(binary.BigEndian.Uint64(mac.Sum(sum[:0])))
}

// Mark identifies the way to hash without revealing the secret. Counters that were counted under another
// mark belong to other keys. Mark is 0 for HashKey alone.
func (h KeyHasher) Mark() uint64 {
	if h.Secret.IsZero() {
		return 0
	}
	sum := sha256.Sum256(append([]byte("seqsvr mark of string keys "), h.Secret[:]...))
	return max(1, binary.BigEndian.Uint64(sum[:]))
}

// KeyHashers has the hasher of each space of a cluster, by the name of the space. A space that it lacks has
// the zero KeyHasher.
type KeyHashers map[string]KeyHasher

// Counter is one sequence of a request.
type Counter struct {
	UID   UID  // whose counter it is
	Place UID  // that decides its section: the UID, or the public hash of a string key
	Named bool // by a string key, whose UID is not told
}

// Plain returns the sequence of a UID.
func Plain(uid UID) Counter { return Counter{UID: uid, Place: uid} }

// Counter returns the sequence of a string key.
func (h KeyHasher) Counter(key string) Counter {
	c := Counter{UID: h.UID(key), Named: true}
	if c.Place = c.UID; !h.Secret.IsZero() {
		c.Place = HashKey(key)
	}
	return c
}

// Alone returns a batch of the one sequence.
func (c Counter) Alone() Counters {
	k := PlainAll(c.UID)
	if c.Named {
		k.Places, k.Named = []UID{c.Place}, 1
	}
	return k
}

// String is what errors and events call it.
func (c Counter) String() string {
	if c.Named {
		return "the string key"
	}
	return "uid " + strconv.FormatUint(uint64(c.UID), 10)
}

// Counters are the sequences of a batch, UIDs before string keys.
type Counters struct {
	UIDs   []UID
	Places []UID // one a UID; the same memory unless there are string keys under a secret
	Named  int   // how many at the end are of string keys
}

// PlainAll returns the sequences of UIDs. The result shares their memory.
func PlainAll(uids ...UID) Counters { return Counters{UIDs: uids, Places: uids} }

// At is one of them.
func (c Counters) At(i int) Counter {
	return Counter{c.UIDs[i], c.Places[i], i >= len(c.UIDs)-c.Named}
}

// Counters returns the sequences of a batch that Check accepted. Without string keys the result shares the
// memory of b.UIDs.
func (h KeyHasher) Counters(b Batch) Counters {
	uids := unsafe.Slice((*UID)(unsafe.SliceData(b.UIDs)), len(b.UIDs))
	if len(b.Keys) == 0 {
		return Counters{UIDs: uids, Places: uids}
	}
	places := append(make([]UID, 0, len(b.UIDs)+len(b.Keys)), uids...)
	for _, key := range b.Keys {
		places = append(places, HashKey(key))
	}
	c := Counters{UIDs: places, Places: places, Named: len(b.Keys)}
	if h.Secret.IsZero() {
		return c
	}
	c.UIDs = append(make([]UID, 0, len(places)), uids...)
	for _, key := range b.Keys {
		c.UIDs = append(c.UIDs, h.UID(key))
	}
	return c
}
