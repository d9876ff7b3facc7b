package handover

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/seqsvr/seqsvr/allocsvr/counters"
	"github.com/seqsvr/seqsvr/seq"
)

// Sealed is a section with its counters at the moment of the seal. It may
// be used only by a node that finds Epoch as the highest accepted one.
type Sealed struct {
	ID    seq.SectionID
	Epoch seq.Epoch
	// Also are epochs of this session that came directly after, whose STEPs have
	// an unknown outcome and under which nothing was handed out; mostly none.
	Also  []seq.Epoch
	Table *counters.Table // not changed from the seal on
	// Mark is of the hash of string keys under which they were counted. A node that goes by
	// another one has no use for them: the same key has another counter there.
	Mark uint64
	// offered, if not 0, is the digest of counters that came from a peer. They are good only
	// if the release left the same at the stores: anybody could send others, under an epoch
	// that every status shows.
	offered uint64
	Body    []byte // Table as it travels, while it is handed over
}

// Digest is what the release leaves at the stores of the counters.
func (s Sealed) Digest() uint64 {
	body := s.Body
	if body == nil {
		body = s.Table.AppendBinary(nil)
	}
	head := binary.BigEndian.AppendUint32([]byte("seqsvr sealed counters "), uint32(s.ID))
	head = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(head, s.Epoch.Round), uint64(s.Epoch.Session))
	if s.Mark != 0 { // without one the digest is that of builds which know of none
		head = binary.BigEndian.AppendUint64(head, s.Mark)
	}
	sum := sha256.New()
	sum.Write(head)
	sum.Write(body)
	return max(1, binary.BigEndian.Uint64(sum.Sum(nil)))
}

// Genuine says that the counters are the last owner's, by what its release left.
func (s Sealed) Genuine(left uint64) bool { return s.offered == 0 || s.offered == left }

// Follows says that no number was handed out since the seal.
func (s Sealed) Follows(accepted seq.Epoch) bool {
	return accepted == s.Epoch || slices.Contains(s.Also, accepted)
}

// mostAlso bounds how many attempts are remembered: of more the last ones.
const mostAlso = 16

// After is the same with one more attempt of unknown outcome.
func (s Sealed) After(attempt seq.Epoch) Sealed {
	s.Also = append(slices.Clone(s.Also[max(0, len(s.Also)-mostAlso+1):]), attempt)
	return s
}
