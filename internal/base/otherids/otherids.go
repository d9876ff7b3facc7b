// Package otherids makes and reads IDs of other systems that contain their time and are wider than 64 bits:
// UUIDs (version 7, and 1 and 6 for reading), ULIDs and the ObjectIds of MongoDB.
//
// Read parses every ID that Make returns. Is tells these IDs from snowflake IDs by the length of the text.
//
// What belongs here: the kinds of IDs, and what they say of their origin. What does not: layouts of up to
// 64 bits, which are package snowflake's.
package otherids

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/oklog/ulid/v2"
)

// Errors of Read and Make.
var (
	// ErrText: the text is no ID of the kind.
	ErrText = errors.New("not an id of its kind")
	// ErrNoTime: the ID does not say when it was made.
	ErrNoTime = errors.New("no time in it")
	// ErrKind: no kind has that name.
	ErrKind = errors.New("no such kind of id")
)

// The kinds.
const (
	UUID     = "uuid"
	ULID     = "ulid"
	ObjectID = "objectid"
)

// Kinds are the names of all kinds.
func Kinds() []string { return []string{UUID, ULID, ObjectID} }

// longestSnowflake is the longest text of an ID of up to 64 bits: 20 decimal digits.
const longestSnowflake = 20

// objectIDLength is an ObjectId's, in bytes.
const objectIDLength = 12

// Parts are what an ID says of itself.
type Parts struct {
	Kind     string // with the version, for UUIDs: "uuid-v7"
	Text     string // in the form that is usual
	Time     time.Time
	Origin   string // its maker, in hex: the node of UUIDs 1 and 6, the process of ObjectIds; empty if the ID has none
	Sequence uint64 // the clock sequence of the former, the counter of the latter; else 0
}

// Is tells whether a layout's name, or for none ("") the text alone, means an ID of these
// kinds.
func Is(kind, text string) bool {
	if kind == "" {
		return len(text) > longestSnowflake
	}
	return slices.Contains(Kinds(), kind)
}

// Read takes an ID apart. A kind of "" goes by the text. Errors: ErrText, ErrNoTime, ErrKind.
func Read(kind, text string) (Parts, error) {
	if kind == "" {
		kind = kindOf(text)
	}
	switch kind {
	case UUID:
		return readUUID(text)
	case ULID:
		return readULID(text)
	case ObjectID:
		return readObjectID(text)
	}
	return Parts{}, fmt.Errorf("id %.40q of %d characters: %w: expected 36 or 32 (uuid), 26 (ulid) or 24 (objectid)", text, len(text), ErrKind)
}

func kindOf(text string) string {
	switch len(text) {
	case 36, 32:
		return UUID
	case ulid.EncodedSize:
		return ULID
	case 2 * objectIDLength:
		return ObjectID
	}
	return ""
}

func refused(kind, text string, why error) error {
	return fmt.Errorf("%s %.40q: %w: %w", kind, text, ErrText, why)
}

func readUUID(text string) (Parts, error) {
	if kindOf(text) != UUID { // the library also reads URNs, and anything for braces
		return Parts{}, fmt.Errorf("uuid %.40q: %w: %d characters, expected 36 or 32", text, ErrText, len(text))
	}
	id, err := uuid.Parse(text)
	if err != nil {
		return Parts{}, refused(UUID, text, err)
	}
	p := Parts{Kind: fmt.Sprintf("uuid-v%d", id.Version()), Text: id.String()}
	switch {
	case id.Variant() != uuid.RFC4122:
		return Parts{}, fmt.Errorf("uuid %s: %w: variant %s, expected that of RFC 9562", id, ErrText, id.Variant())
	case id.Version() == 1, id.Version() == 6:
		p.Origin, p.Sequence = hex.EncodeToString(id.NodeID()), uint64(id.ClockSequence())
	case id.Version() != 7:
		return Parts{}, fmt.Errorf("uuid %s of version %d: %w: versions 1, 6 and 7 have one", id, id.Version(), ErrNoTime)
	}
	at := id.Time()
	if id.Version() == 6 {
		at = timeOf6(id)
	}
	p.Time = time.Unix(at.UnixTime()).UTC()
	return p, nil
}

// timeOf6 is the time of a UUID of version 6, of which the library reads the version's four
// bits as bits of the time.
func timeOf6(id uuid.UUID) uuid.Time {
	high, low := binary.BigEndian.Uint64(id[:8])>>16, binary.BigEndian.Uint16(id[6:8])&0xfff
	return uuid.Time(high<<12 | uint64(low))
}

func readULID(text string) (Parts, error) {
	id, err := ulid.ParseStrict(text)
	if err != nil {
		return Parts{}, refused(ULID, text, err)
	}
	return Parts{Kind: ULID, Text: id.String(), Time: ulid.Time(id.Time()).UTC()}, nil
}

func readObjectID(text string) (Parts, error) {
	b, err := hex.DecodeString(text)
	if err == nil && len(b) != objectIDLength {
		err = fmt.Errorf("%d characters, expected %d", len(text), 2*objectIDLength)
	}
	if err != nil {
		return Parts{}, refused(ObjectID, text, err)
	}
	return Parts{
		Kind: ObjectID, Text: strings.ToLower(text), Time: time.Unix(int64(binary.BigEndian.Uint32(b)), 0).UTC(),
		Origin: hex.EncodeToString(b[4:9]), Sequence: uint64(b[9])<<16 | uint64(b[10])<<8 | uint64(b[11]),
	}, nil
}

// Make makes n IDs of a kind at the moment, UUIDs of version 7, in ascending order. UUIDs take
// the clock's own moment. ErrKind; or why there is no randomness.
func Make(kind string, n int, now time.Time) ([]string, error) {
	var next func() (string, error)
	switch kind {
	case UUID:
		next = func() (string, error) {
			id, err := uuid.NewV7()
			return id.String(), err
		}
	case ULID:
		entropy := ulid.Monotonic(rand.Reader, 0)
		next = func() (string, error) {
			id, err := ulid.New(ulid.Timestamp(now), entropy)
			return id.String(), err
		}
	case ObjectID:
		next = objectIDs(now)
	default:
		return nil, fmt.Errorf("%q: %w: expected %s", kind, ErrKind, strings.Join(Kinds(), ", "))
	}
	out := make([]string, n)
	for i := range out {
		var err error
		if out[i], err = next(); err != nil {
			return nil, fmt.Errorf("make %s: %w", kind, err)
		}
	}
	return out, nil
}

// objectIDs returns a function that makes the ObjectIds of one process: seconds, five random bytes, and a
// counter of three bytes. The counter begins at random with its highest bit 0, so that it does not wrap.
func objectIDs(now time.Time) func() (string, error) {
	var b [16]byte
	_, _ = rand.Read(b[4:]) // it never fails
	binary.BigEndian.PutUint32(b[:], uint32(now.Unix()))
	counter := binary.BigEndian.Uint32(b[12:]) >> 9
	return func() (string, error) {
		b[9], b[10], b[11] = byte(counter>>16), byte(counter>>8), byte(counter)
		counter++
		return hex.EncodeToString(b[:objectIDLength]), nil
	}
}
