package survey

import (
	"fmt"
	"slices"
	"strings"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

const endingsRunbook = "docs/operations.md#seqsectionsending"

// mostNamed is the number of sections that a trouble names.
const mostNamed = 5

// endTroubles are the sections whose numbers come to an end. One that is spent breaks
// promises already if its UIDs stand at the end, and else with the crash of its owner, which
// still has their counters in memory.
func (s *Survey) endTroubles(best *pb.StatusReply) (all []trouble) {
	bases := map[uint32]uint64{} // by section, of those whose owner answered
	for _, reply := range s.Replies {
		for _, e := range reply.GetEnding() {
			if e.GetOwned() {
				bases[e.GetSection()] = e.GetBase()
			}
		}
	}
	var used, spent, near []string
	for _, e := range best.GetEnding() {
		name := fmt.Sprintf("%d (%s)", e.GetSection(), e.GetSpace())
		base, owned := bases[e.GetSection()]
		switch {
		case !e.GetSpent():
			near = append(near, fmt.Sprintf("%d (%s, %d left)", e.GetSection(), e.GetSpace(), uint64(seq.MaxSeq)-min(e.GetMax(), uint64(seq.MaxSeq))))
		case owned && base < uint64(seq.MaxSeq)-seq.NearEnd:
			spent = append(spent, name)
		default:
			used = append(used, name)
		}
	}
	add := func(names []string, cause cause, breaks bool, format, why string) {
		if len(names) > 0 {
			all = append(all, trouble{cause, breaks, fmt.Sprintf(format, named(names)), "seqctl events", why})
		}
	}
	add(used, sectionsSpent, true, "%s used up: every UID gets OVERFLOW", "for good; move the callers to another space ("+endingsRunbook+")")
	add(spent, sectionsSpent, false, "%s used up once the owner crashes", "until then drains and restarts in order keep it ("+endingsRunbook+")")
	add(near, sectionsEnding, false, "%s near the end, fewer than 2^40 numbers left", "plan where their callers go ("+endingsRunbook+")")
	if more := int(best.GetSectionsNearEnd()) - len(best.GetEnding()); more > 0 && len(all) > 0 {
		all[len(all)-1].what += fmt.Sprintf(", and %d more sections near the end or spent", more)
	}
	return all
}

// named is a list of sections in words.
func named(names []string) string {
	names = slices.Clone(names)
	if more := len(names) - mostNamed; more > 0 {
		names = append(names[:mostNamed], fmt.Sprintf("%d more", more))
	}
	if len(names) == 1 {
		return "section " + names[0] + " is"
	}
	return "sections " + strings.Join(names, ", ") + " are"
}
