package seq

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"strconv"
)

// UID names one user, conversation or other owner of a sequence. Any value is valid.
type UID uint64

// Seq is one number of a sequence: 1 is the first ever handed out, MaxSeq the last.
// 0 means that nothing was handed out yet; it is never the answer to a Next.
type Seq uint64

// MaxSeq is the largest sequence: 2^53-1, the largest integer that a double, and
// so JSON in JavaScript, holds exactly.
const MaxSeq Seq = 1<<53 - 1

// MaxCount is the largest count of one key in one call.
const MaxCount = 1 << 20

// MaxBatch is the largest number of keys in one call.
const MaxBatch = 10_000

// SectionID is the index of a section, the set of UIDs that share one persisted
// max_seq: 0 to Mapping.Sections()-1 over all spaces of a cluster.
type SectionID uint32

// Session is one incarnation of an AllocSvr process: random, never 0, new at
// every start, so that a restart is never taken for the process before it.
type Session uint64

// NewSession draws a session from the system's random source. Its secret is forgotten, so it can name
// something but can ask nothing of a store.
func NewSession() Session { return NewSecret("").Session() }

// String gives the session as 16 hex digits.
func (s Session) String() string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(s))
	return hex.EncodeToString(b[:])
}

// Era counts the restores from backup that a cluster went through. Every request
// between tiers carries it; a store of another era refuses.
type Era uint64

// Epoch is the ballot of the fenced register: compared by round, then by session.
// Exactly one session can ever use an epoch. The zero Epoch is below all others.
type Epoch struct {
	Round   uint64
	Session Session
}

// Compare returns -1, 0 or +1 if e is below, equal to or above o.
func (e Epoch) Compare(o Epoch) int {
	if c := cmp.Compare(e.Round, o.Round); c != 0 {
		return c
	}
	return cmp.Compare(e.Session, o.Session)
}

// Less reports whether e is below o.
func (e Epoch) Less(o Epoch) bool { return e.Compare(o) < 0 }

// IsZero reports whether e is the zero epoch: nothing was ever promised.
func (e Epoch) IsZero() bool { return e == Epoch{} }

// String gives round and session as "12@89abcdef01234567".
func (e Epoch) String() string {
	if e.IsZero() {
		return "none"
	}
	return strconv.FormatUint(e.Round, 10) + "@" + e.Session.String()
}
