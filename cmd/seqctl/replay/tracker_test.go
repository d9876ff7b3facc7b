package replay

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatIsSeenOfARecipientsNumbersIsCounted(t *testing.T) {
	tests := []struct {
		name    string
		numbers []uint64
		want    tally
	}{
		{"none", nil, tally{}},
		{"contiguous from one", []uint64{1, 2, 3}, tally{events: 3, users: 1}},
		{"the first number may be any", []uint64{40, 41}, tally{events: 2, users: 1}},
		{"a jump", []uint64{1, 2, 10, 11, 20}, tally{events: 5, users: 1, gaps: 2, skipped: 7 + 8}},
		{"the same number again", []uint64{1, 2, 2}, tally{events: 3, users: 1, duplicates: 1}},
		{"an old number again", []uint64{1, 2, 10, 1}, tally{events: 4, users: 1, gaps: 1, skipped: 7, duplicates: 1}},
		{"a number below, never seen", []uint64{10, 5}, tally{events: 2, users: 1, regressions: 1}},
		{"a number below, and again", []uint64{10, 5, 5}, tally{events: 3, users: 1, regressions: 1, duplicates: 1}},
		{"into a hole", []uint64{1, 5, 3, 6}, tally{events: 4, users: 1, gaps: 1, skipped: 3, regressions: 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tr := newTracker()
			for _, n := range test.numbers {
				tr.got(7, n)
			}
			if diff := cmp.Diff(test.want, tr.tally, cmp.AllowUnexported(tally{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// slow keeps every number and looks through all of them.
func slow(numbers []uint64) (t tally) {
	seen := map[uint64]bool{}
	var top uint64
	for i, n := range numbers {
		t.events++
		switch {
		case i == 0:
			t.users++
		case seen[n]:
			t.duplicates++
		case n < top:
			t.regressions++
		case n > top+1:
			t.gaps++
			t.skipped += n - top - 1
		}
		seen[n] = true
		top = max(top, n)
	}
	return t
}

func TestTheTrackerAgreesWithASlowOneOnRandomNumbers(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		numbers := make([]uint64, random.IntN(60))
		for i := range numbers {
			numbers[i] = 1 + random.Uint64N(uint64(len(numbers)))
		}
		tr := newTracker()
		for _, n := range numbers {
			tr.got(1, n)
		}
		if diff := cmp.Diff(slow(numbers), tr.tally, cmp.AllowUnexported(tally{})); diff != "" {
			t.Fatalf("seed %d, numbers %v (-want +got)\n%s", seed, numbers, diff)
		}
	}
}

func TestRecipientsDoNotDisturbEachOther(t *testing.T) {
	tr := newTracker()
	for n := uint64(1); n <= 3; n++ {
		tr.got(1, n)
		tr.got(2, 100+n)
	}
	if diff := cmp.Diff(tally{events: 6, users: 2}, tr.tally, cmp.AllowUnexported(tally{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
