package history

import (
	"cmp"
	"fmt"
	"slices"
)

// Log is what a key of an exact space holds when all calls have ended.
type Log struct {
	Last   uint64           // where it stands, 0 for nothing taken
	Found  map[string]Taken // what a lookup tells of each id, nothing for those not taken
	Raised []uint64         // floors that were asked for: numbers up to there may be of no request
}

// Taken is what a request has got.
type Taken struct{ First, Last uint64 }

// CheckExact is Check, and holds what the keys of an exact space hold against the requests
// for them: every id of the calls that is not in its key's Log counts as not found.
func CheckExact(calls []Call, logs map[Key]Log) Report {
	report := Check(calls)
	requests := (&Report{}).requests(calls)
	for key := range requests {
		report.checkFound(requests[key], logs[key])
	}
	for key, log := range logs {
		report.checkHoles(key, log)
	}
	return report
}

// request is all calls with one id.
type request struct {
	answer *Call // the first answer, begun when the request was first sent; may be nil
	calls  []*Call
}

// requests puts calls with an id together, and counts and judges their answers.
func (r *Report) requests(calls []Call) map[Key]map[string]*request {
	all := map[Key]map[string]*request{}
	for i := range calls {
		c := &calls[i]
		if c.ID == "" || !c.valid() {
			continue
		}
		if all[c.Key] == nil {
			all[c.Key] = map[string]*request{}
		}
		q := all[c.Key][c.ID]
		if q == nil {
			q = &request{}
			all[c.Key][c.ID] = q
		}
		q.calls = append(q.calls, c)
	}
	for _, ids := range all {
		for _, q := range ids {
			r.once(q)
		}
	}
	return all
}

// once judges one request. All answers to it are one, which is taken from the first time that it
// was sent to the end of its first answer: until then a larger number of another call is no
// smaller one of this.
func (r *Report) once(q *request) {
	r.IDs++
	slices.SortFunc(q.calls, func(a, b *Call) int { return cmp.Compare(a.End, b.End) })
	start, sent, two := q.calls[0].Start, 0, false
	for _, c := range q.calls {
		start, sent = min(start, c.Start), sent+max(c.Sent, 1)
		switch {
		case c.Err != "":
			continue
		case c.Replayed:
			r.Replayed++
		}
		switch {
		case q.answer == nil:
			one := *c
			q.answer = &one
		case c.First != q.answer.First, c.Last != q.answer.Last, !c.Replayed && c.Start > q.answer.End:
			r.example(ErrTwice, *q.answer, *c)
			two = true
		}
	}
	if sent > 1 {
		r.Repeated++
	}
	if two {
		r.Twice++
	}
	if q.answer == nil {
		r.Unanswered++
		return
	}
	q.answer.Start = start
}

// checkFound holds what lookups tell against the answers.
func (r *Report) checkFound(requests map[string]*request, log Log) {
	for id, q := range requests {
		if q.answer == nil {
			continue
		}
		if got := log.Found[id]; got != (Taken{q.answer.First, q.answer.Last}) {
			r.Twice++
			r.say(ErrTwice, fmt.Sprintf("looked up %d-%d", got.First, got.Last), *q.answer)
		}
	}
}

// checkHoles wants each number up to where the key stands to be of one id, or below a raise.
func (r *Report) checkHoles(key Key, log Log) {
	type taken struct {
		Taken
		id string
	}
	var all []taken
	for id, got := range log.Found {
		if got.First != 0 {
			all = append(all, taken{got, id})
		}
	}
	slices.SortFunc(all, func(a, b taken) int { return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Last, b.Last)) })
	top := taken{}
	hole := func(end uint64) {
		if end > top.Last && !slices.Contains(log.Raised, end) {
			r.Holes += end - top.Last
			r.say(ErrHole, fmt.Sprintf("key %v: nobody has %d-%d of %d", key, top.Last+1, end, log.Last))
		}
	}
	for _, got := range all {
		if got.First <= top.Last {
			r.Duplicates += min(got.Last, top.Last) - got.First + 1
			r.say(ErrDuplicate, fmt.Sprintf("key %v: %d-%d is of %q, %d-%d of %q", key, top.First, top.Last, top.id, got.First, got.Last, got.id))
		}
		hole(got.First - 1)
		if got.Last > top.Last {
			top = got
		}
	}
	hole(log.Last)
	if top.Last > log.Last {
		r.Holes += top.Last - log.Last
		r.say(ErrHole, fmt.Sprintf("key %v stands at %d, and %q has %d-%d", key, log.Last, top.id, top.First, top.Last))
	}
}

func (r *Report) say(kind error, text string, calls ...Call) {
	if len(r.Violations) < maxViolations {
		r.Violations = append(r.Violations, Violation{Kind: kind, Calls: calls, Text: text})
	}
}
