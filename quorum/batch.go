package quorum

import (
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

// batch counts the answers to one request, item by item. It is pure: no clock,
// no I/O, no goroutine.
//
//	Won      yes >= W, and in a step no store said NACK
//	Refused  no > N - W, or in a step some store said NACK
//	Unknown  neither can happen any more
type batch struct {
	op       string
	n, w     int
	length   int
	register func(i int) seq.Register
	// credible says whether an OK shows what an OK must show.
	credible func(i int, r *Result) bool
	// nackDecides: one NACK refuses the item, whatever else was said.
	nackDecides bool
	// absentIsFree: an on-demand register that a store does not have admits.
	absentIsFree bool
	// shows: the answers show the registers whatever their verdicts are, as reads do.
	shows bool
	// few: W stores are asked first, as round says.
	few bool
	// timeout of the round. If zero, Config.Timeout applies.
	timeout time.Duration

	answers []answer // in the order of arrival, one a store
	decided int      // items [0, decided) are decided
}

type class uint8

const (
	silent class = iota // no answer, or none that means anything
	yes
	no
)

// take adds an answer; enough once every item is decided.
func (b *batch) take(a answer) (enough bool) {
	b.answers = append(b.answers, a)
	for b.decided < b.length {
		if _, final := b.state(b.decided); !final {
			return false
		}
		b.decided++
	}
	return true
}

func (b *batch) class(i int, a *answer) class {
	if a.err != nil {
		return silent
	}
	switch r := &a.results[i]; r.Verdict {
	case VerdictOK:
		if b.credible == nil || b.credible(i, r) {
			return yes
		}
		return silent
	case VerdictUnknown:
		if b.absentIsFree && b.register(i).OnDemand() {
			return yes
		}
		return no
	case VerdictNack, VerdictHeld, VerdictGrace, VerdictRefused, VerdictFull, VerdictElsewhere:
		return no
	}
	return silent
}

// state of an item by the answers so far; final if no further answer that the
// caller should wait for could change it.
func (b *batch) state(i int) (s State, final bool) {
	var count [3]int
	nack := false
	for k := range b.answers {
		c := b.class(i, &b.answers[k])
		count[c]++
		nack = nack || c == no && b.answers[k].results[i].Verdict == VerdictNack
	}
	open := b.n - len(b.answers)
	switch {
	case nack && b.nackDecides:
		return Refused, true
	case count[yes] >= b.w:
		return Won, true
	case count[no] > b.n-b.w:
		return Refused, true
	}
	return Unknown, count[yes]+open < b.w && count[no]+open <= b.n-b.w
}

// outcomes of all items, with what is left of the stores' Remaining at now.
func (b *batch) outcomes(now time.Time) []Outcome {
	out := make([]Outcome, b.length)
	causes := []error{seq.ErrNoQuorum}
	for k := range b.answers {
		if err := b.answers[k].err; err != nil {
			causes = append(causes, err)
		}
	}
	for i := range out {
		out[i] = b.outcome(i, now, causes)
	}
	return out
}

func (b *batch) outcome(i int, now time.Time, causes []error) Outcome {
	var o Outcome
	o.State, _ = b.state(i)
	var waits [MaxStores]time.Duration
	admits := 0
	var longest time.Duration
	for k := range b.answers {
		a := &b.answers[k]
		if a.err != nil {
			continue
		}
		r := &a.results[i]
		if o.Promised.Less(r.Promised) {
			o.Promised = r.Promised
		}
		o.Elsewhere = o.Elsewhere || r.Verdict == VerdictElsewhere
		if r.Holder != 0 && (o.Holder == 0 || r.Remaining > longest) {
			o.Holder, longest = r.Holder, r.Remaining
		}
		c := b.class(i, a)
		if c == yes || b.shows && r.Verdict != VerdictUnknown {
			o.show(r)
		}
		switch {
		case c == yes:
			if o.Time == 0 || r.Time < o.Time {
				o.Time = r.Time
			}
			o.Acks++
			admits++
		case c == no && r.Verdict == VerdictNack: // a higher round would pass, for all that is known
			admits++
		case c == no && (r.Verdict == VerdictHeld || r.Verdict == VerdictGrace):
			// At least a nanosecond: 0 would mean that nothing is known.
			waits[admits] = max(1, r.Remaining-now.Sub(a.at))
			admits++
		}
	}
	if o.State == Won {
		return o
	}
	if admits >= b.w {
		slices.Sort(waits[:admits])
		o.Remaining = waits[b.w-1]
	}
	o.Err = b.err(i, o.State, causes)
	return o
}

// show takes the state that a store showed into the outcome: of a write only with
// its OK, of a read in any case.
func (o *Outcome) show(r *Result) {
	o.Max, o.Floor = max(o.Max, r.Max), max(o.Floor, r.Floor)
	if r.Seal != 0 && (o.Seal == 0 || o.Accepted.Less(r.Accepted)) {
		o.Seal = r.Seal
	}
	if c := o.Accepted.Compare(r.Accepted); o.Accepted.IsZero() || c < 0 || c == 0 && o.Index < r.Index {
		o.Accepted, o.Payload, o.Index = r.Accepted, r.Payload, r.Index
	}
}

// refusals is in the order in which a caller has to react.
var refusals = []struct {
	verdict Verdict
	err     error
}{
	{VerdictNack, ErrNack},
	{VerdictElsewhere, ErrElsewhere},
	{VerdictHeld, ErrHeld},
	{VerdictGrace, ErrHeld},
	{VerdictFull, seq.ErrStoreFull},
	{VerdictRefused, ErrRefused},
}

func (b *batch) err(i int, s State, causes []error) error {
	e := &itemError{op: b.op, register: b.register(i)}
	if s == Unknown {
		e.reasons = causes
		if b.incredible(i) {
			e.reasons = append(slices.Clip(causes), ErrBadReply)
		}
		return e
	}
	var said [VerdictElsewhere + 1]int
	for k := range b.answers {
		if b.class(i, &b.answers[k]) != no {
			continue
		}
		r := &b.answers[k].results[i]
		said[r.Verdict]++
		if e.detail == "" {
			e.detail = r.Message
		}
	}
	for _, r := range refusals {
		if said[r.verdict] > 0 && !slices.Contains(e.reasons, r.err) {
			e.reasons = append(e.reasons, r.err)
		}
	}
	// One store that lacks a register does not prove that there is none.
	if said[VerdictUnknown] > b.n-b.w || len(e.reasons) == 0 {
		e.reasons = append(e.reasons, seq.ErrUnknownRegister)
	}
	return e
}

// incredible says whether a store answered the item with something that is
// neither a yes nor a no.
func (b *batch) incredible(i int) bool {
	return slices.ContainsFunc(b.answers, func(a answer) bool {
		return a.err == nil && b.class(i, &a) == silent
	})
}
