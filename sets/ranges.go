package sets

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/seqsvr/seqsvr/seq"
)

// Range is the sections First to First+Sections-1.
type Range struct {
	First    seq.SectionID `json:"first"`
	Sections uint32        `json:"sections"` // at least 1
}

// end is the first section behind it.
func (r Range) end() uint64 { return uint64(r.First) + uint64(r.Sections) }

// String is as ParseRanges reads it: "0-63", or "7".
func (r Range) String() string {
	if r.Sections == 1 {
		return strconv.FormatUint(uint64(r.First), 10)
	}
	return fmt.Sprintf("%d-%d", r.First, r.end()-1)
}

// ParseRanges reads "0-63,128,200-255": seq.ErrBadArgument.
func ParseRanges(text string) ([]Range, error) {
	var out []Range
	for _, part := range strings.Split(text, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			to = from
		}
		first, err := strconv.ParseUint(from, 10, 32)
		last, err2 := strconv.ParseUint(to, 10, 32)
		if err != nil || err2 != nil || last < first || last >= seq.MaxSections {
			return nil, fmt.Errorf("%w: sections %q, expected such as 0-63,128 below %d", seq.ErrBadArgument, part, seq.MaxSections)
		}
		out = append(out, Range{seq.SectionID(first), uint32(last - first + 1)})
	}
	return out, CheckRanges(out)
}

// RangesOf returns the sections, in order, as few ranges.
func RangesOf(ids []seq.SectionID) []Range {
	var out []Range
	for _, id := range ids {
		if n := len(out); n > 0 && out[n-1].end() == uint64(id) {
			out[n-1].Sections++
			continue
		}
		out = append(out, Range{id, 1})
	}
	return out
}

// Sections returns the sections of ranges, in their order. Check ranges from other processes with
// CheckRanges first.
func Sections(ranges []Range) []seq.SectionID {
	var out []seq.SectionID
	for _, r := range ranges {
		for i := range r.Sections {
			out = append(out, r.First+seq.SectionID(i))
		}
	}
	return out
}

// CheckRanges returns seq.ErrBadArgument for ranges that are empty, out of order or beyond seq.MaxSections.
// So accepted ranges never have more sections than that.
func CheckRanges(ranges []Range) error {
	end := uint64(0)
	for i, r := range ranges {
		if r.Sections == 0 || i > 0 && uint64(r.First) < end || r.end() > seq.MaxSections {
			return fmt.Errorf("%w: sections %v, expected some, in order, below %d", seq.ErrBadArgument, r, seq.MaxSections)
		}
		end = r.end()
	}
	if len(ranges) == 0 {
		return fmt.Errorf("%w: no sections", seq.ErrBadArgument)
	}
	return nil
}
