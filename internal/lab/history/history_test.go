package history

import (
	"cmp"
	"slices"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// sorted puts calls of key 1 in the order of their numbers.
func sorted(calls []Call) []Call {
	slices.SortFunc(calls, func(a, b Call) int { return cmp.Compare(a.First, b.First) })
	return calls
}

func many(n int) []Call {
	calls := make([]Call, n)
	for i := range calls {
		calls[i] = of(Key{Space: "a\nb", UID: 1<<64 - 1}, i%100-3, call(uint64(i)+1, uint64(i)+1, 1<<62, 1<<62+1))
	}
	return calls
}

// addAll adds calls from 8 goroutines.
func addAll(calls []Call, add func(Call)) {
	var wg sync.WaitGroup
	for part := range slices.Chunk(calls, (len(calls)+7)/8) {
		wg.Go(func() {
			for _, c := range part {
				add(c)
			}
		})
	}
	wg.Wait()
}

func TestTheRecorderKeepsTheCallsOfAllClients(t *testing.T) {
	var r Recorder
	if got := r.Calls(); len(got) != 0 {
		t.Errorf("an empty recorder holds %v", got)
	}
	want := many(2000)
	addAll(want, r.Add)
	if diff := gocmp.Diff(want, sorted(r.Calls())); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
