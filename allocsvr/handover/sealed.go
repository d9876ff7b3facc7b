package handover

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/seqsvr/seqsvr/internal/base/counters"
	"github.com/seqsvr/seqsvr/seq"
)

// Sealed is a section with its counters at the moment of the seal. A node may use it only if it finds Epoch
// as the highest accepted epoch.
type Sealed struct {
	ID    seq.SectionID
	Epoch seq.Epoch
	// Also holds later epochs of this session whose STEPs have an unknown outcome, and under which nothing
	// was handed out. Mostly there are none.
	Also  []seq.Epoch
	Table *counters.Table // not changed from the seal on
	// Mark identifies the hash of string keys under which they were counted. A node with another hash
	// cannot use the counters, because the same key has another counter there.
	Mark uint64
	// Tickets has the open tickets, with the time that they had left at the seal. If it is empty, they are not
	// known. Parked sections have none.
	Tickets []byte
	// offered is the digest of counters that came from a peer, or 0. The counters are good only if the
	// release left the same digest at the stores. Otherwise any sender could forge counters, because every
	// status shows the epoch.
	offered uint64
	Body    []byte // Table as it travels, while it is handed over
}

// Digest returns the digest of the counters that the release leaves at the stores.
func (s Sealed) Digest() uint64 {
	body := s.Body
	if body == nil {
		body = s.Table.AppendBinary(nil)
	}
	head := binary.BigEndian.AppendUint32([]byte("seqsvr sealed counters "), uint32(s.ID))
	head = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(head, s.Epoch.Round), uint64(s.Epoch.Session))
	if s.Mark != 0 { // without a mark, the digest equals the digest of older builds
		head = binary.BigEndian.AppendUint64(head, s.Mark)
	}
	sum := sha256.New()
	sum.Write(head)
	sum.Write(body)
	if len(s.Tickets) > 0 {
		sum.Write(binary.BigEndian.AppendUint64([]byte("tickets "), uint64(len(body))))
		sum.Write(s.Tickets)
	}
	return max(1, binary.BigEndian.Uint64(sum.Sum(nil)))
}

// Genuine reports whether the counters are the last owner's, given the digest that its release left.
func (s Sealed) Genuine(left uint64) bool { return s.offered == 0 || s.offered == left }

// Follows reports whether no number was handed out since the seal.
func (s Sealed) Follows(accepted seq.Epoch) bool {
	return accepted == s.Epoch || slices.Contains(s.Also, accepted)
}

// mostAlso bounds Also. The last attempts are kept.
const mostAlso = 16

// After returns s with one more attempt of unknown outcome.
func (s Sealed) After(attempt seq.Epoch) Sealed {
	s.Also = append(slices.Clone(s.Also[max(0, len(s.Also)-mostAlso+1):]), attempt)
	return s
}
