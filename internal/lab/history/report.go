package history

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// maxViolations bounds the examples in a Report.
const maxViolations = 16

// Violation is one broken promise as an example for people.
type Violation struct {
	Kind error // ErrDuplicate, ErrRegression, ErrHole, ErrTwice or ErrInvalid
	// Calls are the two calls that contradict each other, for ErrRegression the
	// one that ended first in front; for ErrInvalid it is one call.
	Calls []Call
	Text  string // what calls do not tell
}

// String is the violation in one line.
func (v Violation) String() string {
	texts := make([]string, len(v.Calls))
	for i, c := range v.Calls {
		texts[i] = c.String()
	}
	if v.Text != "" {
		texts = append(texts, v.Text)
	}
	return fmt.Sprintf("%v: %s", v.Kind, strings.Join(texts, " | "))
}

// Report is what Check found. Only Invalid, Duplicates, Regressions, Twice and Holes are
// broken promises.
type Report struct {
	Requests  int    // all calls
	Errors    int    // calls that failed
	Unordered int    // calls that succeeded, flagged as unique only
	Keys      int    // keys with at least one valid call that succeeded
	Numbers   uint64 // numbers handed out, repeats included

	Invalid     int    // impossible calls; they count in no other check
	Duplicates  uint64 // hand-outs of a number that had been handed out already; 0 by U
	Regressions int    // calls not above one that had ended before they began; 0 by M

	Below      uint64 // numbers from 1 up to the smallest seen of each key, that one excluded
	Gaps       uint64 // numbers missing between the smallest and the largest seen of each key
	LongestGap uint64 // the longest run of those
	// MaxPause is the longest call that succeeded, and MaxPauseKey its key, the
	// smallest one if there are several.
	MaxPause    time.Duration
	MaxPauseKey Key

	IDs        int    // requests with an id; all below is about them
	Repeated   int    // those that were sent more than once
	Replayed   int    // answers that said to be repeated ones
	Unanswered int    // without an answer to the end
	Twice      int    // requests with two answers; 0 by X2
	Holes      uint64 // numbers of a key that no request has, of what CheckExact was told of; 0 by X1

	Violations []Violation // the first few
}

// Broken says whether a promise was.
func (r Report) Broken() bool {
	return r.Invalid > 0 || r.Duplicates > 0 || r.Regressions > 0 || r.Twice > 0 || r.Holes > 0
}

// Err is nil if every promise was kept, otherwise it wraps ErrInvalid, ErrDuplicate,
// ErrRegression, ErrHole and ErrTwice, those that apply, with counts and examples.
func (r Report) Err() error {
	var errs []error
	if r.Invalid > 0 {
		errs = append(errs, fmt.Errorf("%w: %d calls", ErrInvalid, r.Invalid))
	}
	if r.Duplicates > 0 {
		errs = append(errs, fmt.Errorf("%w: %d numbers", ErrDuplicate, r.Duplicates))
	}
	if r.Regressions > 0 {
		errs = append(errs, fmt.Errorf("%w: %d calls", ErrRegression, r.Regressions))
	}
	if r.Holes > 0 {
		errs = append(errs, fmt.Errorf("%w: %d numbers", ErrHole, r.Holes))
	}
	if r.Twice > 0 {
		errs = append(errs, fmt.Errorf("%w: %d requests", ErrTwice, r.Twice))
	}
	if len(errs) == 0 {
		return nil
	}
	for _, v := range r.Violations {
		errs = append(errs, errors.New(v.String()))
	}
	return errors.Join(errs...)
}

// String is the report in one line, without examples.
func (r Report) String() string {
	text := fmt.Sprintf("%d requests (%d errors, %d unordered), %d keys, %d numbers: "+
		"%d invalid, %d duplicates, %d regressions; %d skipped, at most %d in a row; longest call %v (key %v)",
		r.Requests, r.Errors, r.Unordered, r.Keys, r.Numbers,
		r.Invalid, r.Duplicates, r.Regressions, r.Gaps, r.LongestGap, r.MaxPause, r.MaxPauseKey)
	if r.IDs > 0 {
		text += fmt.Sprintf("; %d ids, %d repeated, %d answers replayed, %d unanswered: %d holes, %d with two answers",
			r.IDs, r.Repeated, r.Replayed, r.Unanswered, r.Holes, r.Twice)
	}
	return text
}

func (r *Report) example(kind error, calls ...Call) {
	if len(r.Violations) < maxViolations {
		r.Violations = append(r.Violations, Violation{Kind: kind, Calls: calls})
	}
}
