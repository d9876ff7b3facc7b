package history

import (
	"cmp"
	"slices"
	"strings"
)

// Check looks at a whole history. It does not change calls, whose order does
// not matter to the counts.
func Check(calls []Call) Report {
	report := Report{Requests: len(calls)}
	byKey := make(map[Key][]*Call)
	requests := report.requests(calls)
	for i := range calls {
		c := &calls[i]
		if c.Err != "" {
			report.Errors++
		}
		switch {
		case !c.valid():
			report.Invalid++
			report.example(ErrInvalid, *c)
		case c.Err == "" && c.ID == "":
			byKey[c.Key] = append(byKey[c.Key], c)
		}
	}
	for key, ids := range requests {
		for _, q := range ids {
			if q.answer != nil {
				byKey[key] = append(byKey[key], q.answer)
			}
		}
	}
	keys := make([]Key, 0, len(byKey))
	for key := range byKey {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b Key) int {
		return cmp.Or(strings.Compare(a.Space, b.Space), cmp.Compare(a.UID, b.UID))
	})
	report.Keys = len(keys)
	for _, key := range keys {
		report.measure(byKey[key])
		report.checkUnique(byKey[key])
		report.checkMonotonic(byKey[key])
	}
	return report
}

// measure counts what breaks no promise. All three functions get the valid
// calls of one key that succeeded, at least one.
func (r *Report) measure(calls []*Call) {
	for _, c := range calls {
		r.Numbers += c.Last - c.First + 1
		if c.Unordered {
			r.Unordered++
		}
		if pause := c.End - c.Start; pause > r.MaxPause {
			r.MaxPause, r.MaxPauseKey = pause, c.Key
		}
	}
}

// checkUnique sorts the ranges: they are disjoint if and only if each begins
// above all before it. The same sweep sees the gaps.
func (r *Report) checkUnique(calls []*Call) {
	slices.SortFunc(calls, func(a, b *Call) int {
		return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Last, b.Last), cmp.Compare(a.Start, b.Start))
	})
	r.Below += calls[0].First - 1
	top := calls[0] // the largest Last so far; it began at or below every later First
	for _, c := range calls[1:] {
		switch {
		case c.First <= top.Last:
			r.Duplicates += min(c.Last, top.Last) - c.First + 1
			r.example(ErrDuplicate, *top, *c)
		case c.First > top.Last+1:
			gap := c.First - top.Last - 1
			r.Gaps += gap
			r.LongestGap = max(r.LongestGap, gap)
		}
		if c.Last > top.Last {
			top = c
		}
	}
}

// checkMonotonic sweeps the calls from the largest number down. When it comes to a call, it has passed
// every call that reaches as high as this call's First, and has kept the passed call that ended first. If
// the kept call had ended before this call began, this call should have got larger numbers. If not, no
// passed call had. No call is held against itself, since it does not end before it begins.
//
// Equal readings of the clock count as overlap: they do not tell the order.
func (r *Report) checkMonotonic(calls []*Call) {
	byFirst := make([]*Call, 0, len(calls))
	for _, c := range calls {
		if !c.Unordered {
			byFirst = append(byFirst, c)
		}
	}
	byLast := slices.Clone(byFirst)
	slices.SortFunc(byFirst, func(a, b *Call) int { return cmp.Compare(b.First, a.First) })
	slices.SortFunc(byLast, func(a, b *Call) int { return cmp.Compare(b.Last, a.Last) })
	var earliest *Call
	passed := 0
	for _, c := range byFirst {
		for ; passed < len(byLast) && byLast[passed].Last >= c.First; passed++ {
			if earliest == nil || byLast[passed].End < earliest.End {
				earliest = byLast[passed]
			}
		}
		if earliest.End < c.Start { // c itself has been passed, so there is one
			r.Regressions++
			r.example(ErrRegression, *earliest, *c)
		}
	}
}
