package router

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

func TestBatchesThatShareAKeyAreForwardedOneAfterTheOther(t *testing.T) {
	of := func(batch int, space string, uids []seq.UID, names ...string) piece {
		return piece{checked: checked{space: space, uids: uids, names: names}, batch: batch}
	}
	for what, row := range map[string]struct {
		all    []piece
		inTurn [][]int // batches that wait for each other
	}{
		"the same uid":               {[]piece{of(0, "a", []seq.UID{1, 2}), of(1, "a", []seq.UID{2, 3})}, [][]int{{0, 1}}},
		"two texts of a space":       {[]piece{of(0, "", []seq.UID{1}), of(1, seq.DefaultSpace, []seq.UID{1})}, [][]int{{0, 1}}},
		"a uid and its string key":   {[]piece{of(0, "a", []seq.UID{seq.HashKey("k")}), of(1, "a", nil, "k")}, [][]int{{0, 1}}},
		"the same uid of two spaces": {[]piece{of(0, "a", []seq.UID{1}), of(1, "b", []seq.UID{1})}, [][]int{{0}, {1}}},
		"other uids":                 {[]piece{of(0, "a", []seq.UID{1, 1}), of(1, "a", []seq.UID{2})}, [][]int{{0}, {1}}},
		"one that shares none":       {[]piece{of(0, "b", []seq.UID{1}), of(1, "a", []seq.UID{1}), of(2, "a", []seq.UID{1})}, [][]int{{0}, {1, 2}}},
	} {
		bubble.Test(t, func(t *testing.T) {
			var mu sync.Mutex // guards begun
			var begun []int
			next := make(chan struct{})
			done := make(chan struct{})
			go func() {
				defer close(done)
				inTurns(row.all, func(p piece) {
					mu.Lock()
					begun = append(begun, p.batch)
					mu.Unlock()
					<-next
				})
			}()
			synctest.Wait()
			var want []int
			for _, turn := range row.inTurn {
				want = append(want, turn[0])
			}
			mu.Lock()
			if slices.Sort(begun); !slices.Equal(begun, want) {
				t.Errorf("%s: begun at once: batches %d, want %d", what, begun, want)
			}
			mu.Unlock()
			close(next)
			<-done
		})
	}
}
