package history

import (
	"errors"
	"maps"
	"testing"
	"time"
)

var one = Key{UID: 1}

func by(id string, c Call) Call {
	c.ID = id
	return c
}

func replayed(c Call) Call {
	c.Replayed = true
	return c
}

func log(last uint64, found map[string]Taken, raised ...uint64) map[Key]Log {
	return map[Key]Log{one: {Last: last, Found: found, Raised: raised}}
}

func TestForgedExactHistoriesAreSeenThrough(t *testing.T) {
	kept := map[string]Taken{"a": {1, 1}, "b": {2, 4}}
	both := []Call{by("a", call(1, 1, 0, 1)), by("b", call(2, 4, 2, 3))}
	tests := []struct {
		name  string
		calls []Call
		logs  map[Key]Log
		want  map[error]uint64 // counts
	}{
		{name: "all is as it should be", calls: both, logs: log(4, kept)},
		{name: "repeated, replayed", calls: append(both, replayed(by("a", call(1, 1, 8, 9)))), logs: log(4, kept)},
		{name: "two sendings of one request at a time", calls: append(both, by("a", call(1, 1, 0, 2))), logs: log(4, kept)},
		{name: "a lost answer, a larger number of another, then the number",
			calls: []Call{by("a", failed(0, 1)), by("b", call(2, 4, 2, 3)), replayed(by("a", call(1, 1, 4, 5)))}, logs: log(4, kept)},
		{name: "a lost answer that nobody asked for again", calls: []Call{by("a", failed(0, 1)), by("b", call(2, 4, 2, 3))}, logs: log(4, kept)},
		{name: "a raise", calls: []Call{by("b", call(10, 10, 2, 3))}, logs: log(10, map[string]Taken{"b": {10, 10}}, 9)},
		{name: "a raise above all", calls: []Call{by("a", call(1, 1, 2, 3))}, logs: log(9, map[string]Taken{"a": {1, 1}}, 9)},
		{name: "nothing was taken of a key", logs: log(0, nil)},
		{name: "another number for a repeated request", calls: append(both, replayed(by("a", call(5, 5, 8, 9)))), logs: log(4, kept),
			want: map[error]uint64{ErrTwice: 1}},
		{name: "fewer numbers for a repeated request", calls: append(both, replayed(by("b", call(2, 3, 8, 9)))), logs: log(4, kept),
			want: map[error]uint64{ErrTwice: 1}},
		{name: "a repeated request that is told to be new", calls: append(both, by("a", call(1, 1, 8, 9))), logs: log(4, kept),
			want: map[error]uint64{ErrTwice: 1}},
		{name: "a lookup finds another number", calls: both, logs: log(4, map[string]Taken{"a": {1, 1}, "b": {3, 4}, "c": {2, 2}}),
			want: map[error]uint64{ErrTwice: 1}},
		{name: "a lookup finds nothing", calls: both, logs: log(4, map[string]Taken{"a": {1, 1}}),
			want: map[error]uint64{ErrTwice: 1, ErrHole: 3}},
		{name: "a key of the calls has no log", calls: both[:1], want: map[error]uint64{ErrTwice: 1}},
		{name: "a hole below", calls: both[1:], logs: log(4, map[string]Taken{"b": {2, 4}}), want: map[error]uint64{ErrHole: 1}},
		{name: "a hole between", calls: []Call{both[0], by("b", call(4, 4, 2, 3))}, logs: log(4, map[string]Taken{"a": {1, 1}, "b": {4, 4}}),
			want: map[error]uint64{ErrHole: 2}},
		{name: "a hole above", calls: both, logs: log(6, kept), want: map[error]uint64{ErrHole: 2}},
		{name: "a hole beyond what was raised", calls: []Call{by("b", call(10, 10, 2, 3))}, logs: log(10, map[string]Taken{"b": {10, 10}}, 8),
			want: map[error]uint64{ErrHole: 9}},
		{name: "a key stands below its numbers", calls: both, logs: log(3, kept), want: map[error]uint64{ErrHole: 1}},
		{name: "one number of two requests", calls: both[:1], logs: log(2, map[string]Taken{"a": {1, 1}, "c": {1, 2}}),
			want: map[error]uint64{ErrDuplicate: 1}},
		{name: "a smaller number later", calls: []Call{by("b", call(2, 4, 0, 1)), by("a", call(1, 1, 2, 3))}, logs: log(4, kept),
			want: map[error]uint64{ErrRegression: 1}},
		{name: "a smaller number than before its first sending", calls: []Call{by("b", call(2, 4, 0, 1)), by("a", failed(2, 3)), by("a", call(1, 1, 4, 5))},
			logs: log(4, kept), want: map[error]uint64{ErrRegression: 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := CheckExact(test.calls, test.logs)
			got := map[error]uint64{ErrTwice: uint64(r.Twice), ErrHole: r.Holes, ErrDuplicate: r.Duplicates, ErrRegression: uint64(r.Regressions), ErrInvalid: uint64(r.Invalid)}
			maps.DeleteFunc(got, func(_ error, n uint64) bool { return n == 0 })
			if !maps.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
			if r.Broken() != (len(test.want) > 0) || (r.Err() != nil) != r.Broken() {
				t.Errorf("broken: %t, error %v", r.Broken(), r.Err())
			}
			for kind := range test.want {
				if !errors.Is(r.Err(), kind) {
					t.Errorf("got %v, want %v", r.Err(), kind)
				}
			}
		})
	}
}

func TestRequestsWithIDsAreCounted(t *testing.T) {
	patient := by("a", call(1, 1, 0, 3*time.Second))
	patient.Sent = 3
	r := Check([]Call{patient, by("b", failed(0, 1)), replayed(by("b", call(2, 2, 2, 3))), by("c", failed(0, 1)), call(3, 3, 0, 9)})
	if r.IDs != 3 || r.Repeated != 2 || r.Replayed != 1 || r.Unanswered != 1 || r.Errors != 2 || r.Numbers != 3 {
		t.Errorf("got %v", r)
	}
}
