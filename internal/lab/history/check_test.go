package history

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// call is a call of key 1 that got first to last between start and end.
func call(first, last uint64, start, end time.Duration) Call {
	return Call{Key: Key{UID: 1}, First: first, Last: last, Start: start, End: end}
}

func unordered(c Call) Call {
	c.Unordered = true
	return c
}

func of(key Key, client int, c Call) Call {
	c.Key, c.Client = key, client
	return c
}

func failed(start, end time.Duration) Call {
	return Call{Key: Key{UID: 1}, Start: start, End: end, Err: "unavailable"}
}

func TestForgedHistoriesAreSeenThrough(t *testing.T) {
	tests := []struct {
		name       string
		calls      []Call
		duplicates uint64
		regressed  int
		invalid    int
	}{
		{name: "nothing happened"},
		{name: "one after the other", calls: []Call{call(1, 1, 0, 1), call(2, 4, 2, 3), call(9, 9, 4, 5)}},
		{name: "the same number to two at once", calls: []Call{call(5, 5, 0, 9), call(5, 5, 1, 8)}, duplicates: 1},
		{name: "the same number again later", calls: []Call{call(5, 5, 0, 1), call(5, 5, 2, 3)}, duplicates: 1, regressed: 1},
		{name: "ranges that overlap", calls: []Call{call(1, 6, 0, 9), call(4, 8, 0, 9), call(5, 5, 0, 9)}, duplicates: 4},
		{name: "a range inside another, then one above both", calls: []Call{call(1, 9, 0, 9), call(2, 3, 0, 9), call(10, 10, 0, 9)},
			duplicates: 2},
		{name: "ranges that touch", calls: []Call{call(1, 3, 0, 9), call(4, 6, 0, 9)}},
		{name: "smaller later, on another client",
			calls: []Call{of(Key{UID: 1}, 1, call(7, 7, 0, 1)), of(Key{UID: 1}, 2, call(6, 6, 2, 3))}, regressed: 1},
		{name: "smaller later, far behind in the sweep",
			calls: []Call{call(100, 100, 0, 1), call(101, 101, 0, 90), call(50, 50, 0, 90), call(3, 3, 2, 90)}, regressed: 1},
		{name: "smaller at the same time", calls: []Call{call(7, 7, 0, 5), call(6, 6, 5, 9)}},
		{name: "smaller while the larger is under way", calls: []Call{call(7, 7, 0, 9), call(6, 6, 1, 2)}},
		{name: "smaller after two larger ones counts once", calls: []Call{call(7, 7, 0, 1), call(8, 8, 0, 1), call(6, 6, 2, 3)}, regressed: 1},
		{name: "smaller but flagged", calls: []Call{call(7, 7, 0, 1), unordered(call(6, 6, 2, 3))}},
		{name: "smaller than a flagged one", calls: []Call{unordered(call(7, 7, 0, 1)), call(6, 6, 2, 3)}},
		{name: "flagged and given twice", calls: []Call{unordered(call(7, 7, 0, 1)), unordered(call(7, 7, 2, 3))}, duplicates: 1},
		{name: "flagged and not flagged, the same number", calls: []Call{call(7, 7, 0, 1), unordered(call(7, 7, 2, 3))}, duplicates: 1},
		{name: "another key", calls: []Call{call(7, 7, 0, 1), of(Key{UID: 2}, 0, call(7, 7, 2, 3))}},
		{name: "another space", calls: []Call{call(7, 7, 0, 1), of(Key{Space: "pts", UID: 1}, 0, call(6, 7, 2, 3))}},
		{name: "failed calls", calls: []Call{call(7, 7, 0, 1), failed(2, 3), failed(2, 3), call(8, 8, 4, 5)}},
		{name: "zero for a success", calls: []Call{call(0, 0, 0, 1)}, invalid: 1},
		{name: "a reversed range", calls: []Call{call(3, 2, 0, 1)}, invalid: 1},
		{name: "above 2^53-1", calls: []Call{call(MaxNumber, MaxNumber, 0, 1), call(1<<53, 1<<53, 2, 3)}, invalid: 1},
		{name: "ends before it begins", calls: []Call{call(1, 1, 5, 4)}, invalid: 1},
		{name: "numbers with an error", calls: []Call{{Key: Key{UID: 1}, First: 1, Last: 1, Err: "late"}}, invalid: 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := Check(test.calls)
			if got.Duplicates != test.duplicates || got.Regressions != test.regressed || got.Invalid != test.invalid {
				t.Errorf("got %d duplicates, %d regressions, %d invalid, want %d, %d, %d",
					got.Duplicates, got.Regressions, got.Invalid, test.duplicates, test.regressed, test.invalid)
			}
			err := got.Err()
			for kind, want := range map[error]bool{
				ErrDuplicate: test.duplicates > 0, ErrRegression: test.regressed > 0, ErrInvalid: test.invalid > 0,
			} {
				if errors.Is(err, kind) != want {
					t.Errorf("errors.Is(%v, %v) = %t, want %t", err, kind, !want, want)
				}
			}
		})
	}
}

func TestTheReportCountsWhatHappened(t *testing.T) {
	second := Key{Space: "pts", UID: 2}
	calls := []Call{
		call(3, 5, 0, 4), call(8, 8, 5, 7), call(20, 20, 8, 9), // skips 6-7 and 9-19
		failed(10, 99),
		unordered(of(second, 1, call(1, 1, 0, 6))),
		of(second, 1, call(2, 2, 7, 8)),
	}
	want := Report{
		Requests: 6, Errors: 1, Unordered: 1, Keys: 2, Numbers: 7,
		Below: 2, Gaps: 13, LongestGap: 11,
		MaxPause: 6, MaxPauseKey: second,
	}
	if diff := cmp.Diff(want, Check(calls)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAnErrorShowsTheCallsThatContradictEachOther(t *testing.T) {
	before, after := of(Key{"pts", 9}, 1, call(7, 7, 0, 1)), of(Key{"pts", 9}, 2, call(6, 6, 2, 3))
	report := Check([]Call{after, before})
	want := []Violation{{Kind: ErrRegression, Calls: []Call{before, after}}}
	if diff := cmp.Diff(want, report.Violations, cmpopts.EquateErrors()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	text := report.Err().Error()
	for _, part := range []string{
		"smaller number after a larger one: 1 calls", "client 1, key pts/9, [0s, 1ns]: 7-7", "client 2, key pts/9, [2ns, 3ns]: 6-6",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not say %q", text, part)
		}
	}
}

func TestExamplesAreBoundedButCountsAreNot(t *testing.T) {
	report := Check(slices.Repeat([]Call{call(1, 1, 0, 1)}, 1000))
	if report.Duplicates != 999 || len(report.Violations) != maxViolations {
		t.Errorf("got %d duplicates, %d examples, want 999, %d", report.Duplicates, len(report.Violations), maxViolations)
	}
}

// dumb is Check by the definitions, one number and one pair of calls at a time.
// It leaves out MaxPauseKey and Violations.
func dumb(calls []Call) Report {
	r := Report{Requests: len(calls)}
	handedOut := make(map[Key]map[uint64]uint64)
	var good []Call
	for _, c := range calls {
		if c.Err != "" {
			r.Errors++
		}
		switch {
		case c.End < c.Start || c.Err == "" && (c.First < 1 || c.Last < c.First || c.Last > MaxNumber) ||
			c.Err != "" && (c.First != 0 || c.Last != 0):
			r.Invalid++
			continue
		case c.Err != "":
			continue
		}
		good = append(good, c)
		if c.Unordered {
			r.Unordered++
		}
		r.MaxPause = max(r.MaxPause, c.End-c.Start)
		if handedOut[c.Key] == nil {
			handedOut[c.Key] = make(map[uint64]uint64)
		}
		for n := c.First; n <= c.Last; n++ {
			r.Numbers++
			handedOut[c.Key][n]++
		}
	}
	r.Keys = len(handedOut)
	for _, times := range handedOut {
		dumbNumbers(&r, times)
	}
	for _, later := range good {
		if slices.ContainsFunc(good, func(earlier Call) bool {
			return earlier.Key == later.Key && !earlier.Unordered && !later.Unordered &&
				earlier.End < later.Start && later.First <= earlier.Last
		}) {
			r.Regressions++
		}
	}
	return r
}

func dumbNumbers(r *Report, times map[uint64]uint64) {
	seen, run, left := false, uint64(0), len(times)
	for n := uint64(1); left > 0; n++ {
		switch {
		case times[n] > 0:
			r.Duplicates += times[n] - 1
			seen, run = true, 0
			left--
		case seen:
			r.Gaps++
			run++
			r.LongestGap = max(r.LongestGap, run)
		default:
			r.Below++
		}
	}
}

// forge makes a history of up to 40 calls. It is a good one in which calls of
// several clients overlap, then a few calls are spoilt.
func forge(random *rand.Rand) []Call {
	var calls []Call
	next := map[Key]uint64{}
	now := time.Duration(0)
	for range random.IntN(40) {
		now += time.Duration(random.IntN(4)) // the moment in which the number is taken
		key := Key{Space: []string{"", "pts"}[random.IntN(2)], UID: random.Uint64N(2)}
		c := Call{Key: key, Client: random.IntN(4),
			Start: max(0, now-time.Duration(random.IntN(4))), End: now + time.Duration(random.IntN(4))}
		c.First = next[key] + 1 + random.Uint64N(5)/3*random.Uint64N(4)
		c.Last = c.First + random.Uint64N(6)/3
		next[key] = c.Last
		calls = append(calls, c)
	}
	return calls
}

func spoil(random *rand.Rand, calls []Call) {
	for i := range calls {
		c := &calls[i]
		switch random.IntN(20) {
		case 0:
			c.First = random.Uint64N(30)
			c.Last = c.First + random.Uint64N(4)
		case 1:
			c.Start, c.End = c.End, c.Start
		case 2:
			c.Err = "lost"
		case 3:
			c.First, c.Last, c.Err = 0, 0, "unavailable"
		case 4, 5:
			c.Unordered = true
		case 6:
			c.Start, c.End = c.Start+8, c.End+9
		}
	}
	random.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
}

func TestTheCheckAgreesWithADumbOneOnRandomHistories(t *testing.T) {
	ignore := cmpopts.IgnoreFields(Report{}, "MaxPauseKey", "Violations")
	found := Report{}
	for seed := range uint64(5000) {
		random := rand.New(rand.NewPCG(seed, 0))
		calls := forge(random)
		if err := Check(calls).Err(); err != nil {
			t.Fatalf("seed %d: a good history is refused: %v", seed, err)
		}
		spoil(random, calls)
		got, want := Check(calls), dumb(calls)
		if diff := cmp.Diff(want, got, ignore); diff != "" {
			t.Fatalf("seed %d: (-dumb +check)\n%s\n%s", seed, diff, lines(calls))
		}
		found.Duplicates += got.Duplicates
		found.Regressions += got.Regressions
		found.Invalid += got.Invalid
	}
	if found.Duplicates < 100 || found.Regressions < 100 || found.Invalid < 100 {
		t.Errorf("the random histories held only %v", found)
	}
}

func lines(calls []Call) string {
	var out strings.Builder
	for _, c := range calls {
		fmt.Fprintln(&out, c)
	}
	return out.String()
}
