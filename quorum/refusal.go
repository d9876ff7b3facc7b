package quorum

import (
	"fmt"
	"math"

	"github.com/seqsvr/seqsvr/seq"
)

// StepLimits are the bounds of a step that depend on more than the kind of the register.
type StepLimits struct {
	Payload int    // bytes that a document may have
	Mark    uint64 // the latest mark that a worker id may have, milliseconds since 1970; zero means no limit
	Exact   bool   // the register is a section of an exact space
}

// Refusal returns the rule of the register that the step breaks, or "" if it breaks none. Every store
// applies it.
func Refusal(item StepItem, limits StepLimits) string {
	most := mostOf(item.Register, limits)
	switch {
	case limits.Exact && item.Max > 0:
		return fmt.Sprintf("a max of %d for a section of an exact space, expected records alone", item.Max)
	case !limits.Exact && len(item.Log) > 0:
		return "a FILL for a section that is not exact"
	case !item.Register.HasPayload() && len(item.Payload) > 0:
		return "only documents have a payload"
	case len(item.Payload) > limits.Payload:
		return fmt.Sprintf("payload of %d bytes, expected at most %d", len(item.Payload), limits.Payload)
	case item.Max > most && item.Register.Rules().Holds == seq.Mark:
		return fmt.Sprintf("high-water mark %d is too far beyond the store's clock, expected at most %d", item.Max, most)
	case item.Max > most:
		return fmt.Sprintf("max %d, expected at most %d", item.Max, most)
	}
	return ""
}

// mostOf returns the largest value that the register may have.
func mostOf(r seq.Register, limits StepLimits) uint64 {
	switch r.Rules().Holds {
	case seq.Numbers:
		return uint64(seq.MaxSeq)
	case seq.Version:
		return math.MaxInt64
	case seq.Mark:
		if limits.Mark > 0 {
			return limits.Mark
		}
	}
	return math.MaxUint64
}
