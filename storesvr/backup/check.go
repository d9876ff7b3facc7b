package backup

import (
	"fmt"
	"slices"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
)

// Check lists everything that is wrong with the registers of a cluster of that mapping:
// nothing for sound ones. Each line is for people.
func Check(mapping seq.Mapping, states []quorum.RegisterState) []string {
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if err := mapping.Validate(); err != nil {
		say("%v", err)
		return wrong
	}
	seen := make(map[seq.Register]bool, len(states))
	for _, st := range states {
		r := st.Register
		if seen[r] {
			say("%s: twice", r)
		}
		seen[r] = true
		if err := r.Validate(); err != nil {
			say("%v", err)
			continue
		}
		if err := r.Known(); err != nil {
			say("%v", err)
		}
		if st.Promised.Less(st.Accepted) {
			say("%s: accepted %s above promised %s", r, st.Accepted, st.Promised)
		}
		id, section := r.Section()
		isExact := section && mapping.IsExact(id)
		if isExact {
			if _, err := acceptor.CopyOf(st, mapping.WindowOf(id)); err != nil {
				say("%v", err)
			}
		}
		switch {
		case section && int(id) >= mapping.Sections():
			say("%s: the mapping has sections 0 to %d", r, mapping.Sections()-1)
		case r.Rules().Holds == seq.Numbers && st.Max > uint64(seq.MaxSeq):
			say("%s: max %d above 2^53-1", r, st.Max)
		case !r.HasPayload() && len(st.Payload) > 0 && !isExact:
			say("%s: a payload, which only documents have", r)
		case r.HasPayload() && len(st.Payload) > 0 && len(st.Payload) < versionLen:
			say("%s: payload of %d bytes, expected a version", r, len(st.Payload))
		}
	}
	for id := range mapping.Sections() {
		if r := seq.SectionRegister(seq.SectionID(id)); !seen[r] {
			say("%s: missing", r)
		}
	}
	if _, err := SetOf(states); err != nil {
		say("%v", err)
	}
	for _, r := range seq.FixedRegisters() {
		if !seen[r] && !slices.Contains(seq.LaterRegisters(), r) {
			say("%s: missing", r)
		}
	}
	return wrong
}
