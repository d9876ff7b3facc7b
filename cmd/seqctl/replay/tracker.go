package replay

import "slices"

// tally counts what was seen of a recipient's numbers.
type tally struct {
	events      uint64
	users       uint64
	duplicates  uint64 // numbers that the recipient had got before
	regressions uint64 // other numbers below one that it had got before
	gaps        uint64 // jumps above the number before it by more than one
	skipped     uint64 // numbers left out by those jumps
}

func (t *tally) add(o tally) {
	t.events += o.events
	t.users += o.users
	t.duplicates += o.duplicates
	t.regressions += o.regressions
	t.gaps += o.gaps
	t.skipped += o.skipped
}

// span is the numbers first to last, inclusive.
type span struct{ first, last uint64 }

// tracker checks the numbers of many recipients, each in the order in which they
// were asked for. The first number seen of a recipient may be any: it may have had
// others before the log began. For one goroutine.
type tracker struct {
	tally
	seen map[uint64][]span // by recipient; sorted, disjoint and not adjacent
}

func newTracker() *tracker { return &tracker{seen: make(map[uint64][]span)} }

// got takes the next number of a recipient into account.
func (t *tracker) got(recipient, number uint64) {
	t.events++
	spans := t.seen[recipient]
	if len(spans) == 0 {
		t.users++
		t.seen[recipient] = []span{{number, number}}
		return
	}
	top := &spans[len(spans)-1]
	switch {
	case number == top.last+1:
		top.last = number
	case number > top.last:
		t.gaps++
		t.skipped += number - top.last - 1
		t.seen[recipient] = append(spans, span{number, number})
	default:
		at, found := slices.BinarySearchFunc(spans, number, func(s span, n uint64) int {
			switch {
			case s.last < n:
				return -1
			case s.first > n:
				return 1
			}
			return 0
		})
		if found {
			t.duplicates++
			return
		}
		t.regressions++
		t.seen[recipient] = slices.Insert(spans, at, span{number, number})
	}
}
