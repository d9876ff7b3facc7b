package quorum

import "github.com/seqsvr/seqsvr/seq"

// RegisterState is all that a store has on disk of one register. Of a section of an exact space
// the payload is the copy, an exact.State that stands at PayloadMax of Accepted: of two, the one
// that stands higher is taken as it is.
type RegisterState struct {
	Register   seq.Register
	Promised   seq.Epoch
	Accepted   seq.Epoch
	Max        uint64
	Payload    []byte // of documents and exact sections; do not modify
	PayloadMax uint64 // the max that came with Payload
}

// Merge is the least state that has everything of both: the highest of each field, and
// of a document what was accepted last.
//
//	Accepted <= Promised in both  =>  in the result
func Merge(a, b RegisterState) RegisterState {
	m := a
	if m.Promised.Less(b.Promised) {
		m.Promised = b.Promised
	}
	m.Max = max(a.Max, b.Max)
	if c := a.Accepted.Compare(b.Accepted); c < 0 || c == 0 && a.PayloadMax < b.PayloadMax {
		m.Accepted, m.Payload, m.PayloadMax = b.Accepted, b.Payload, b.PayloadMax
	}
	return m
}
