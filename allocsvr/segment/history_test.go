package segment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seqsvr/seqsvr/seq"
)

// history records the numbers that were handed out, and when, by a count of all beginnings and ends.
type history struct {
	stores *fakeStores
	now    atomic.Uint64
	mu     sync.Mutex // guards took
	took   []taken
}

type taken struct {
	Range
	called, returned uint64
}

// take takes and remembers.
func (h *history) take(ctx context.Context, n *node, tag string, count uint32) error {
	called := h.now.Add(1)
	r, err := n.Take(ctx, tag, count)
	if err != nil {
		return err
	}
	returned := h.now.Add(1)
	if st := h.stores.state(tag); r.Last > r.Max || r.Max > st.max {
		return fmt.Errorf("took %+v, the stores have %d", r, st.max) // I5
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.took = append(h.took, taken{r, called, returned})
	if r.Last-r.First+1 != uint64(count) || r.First == 0 {
		return fmt.Errorf("asked for %d, got %d to %d", count, r.First, r.Last)
	}
	return nil
}

// check finds a number that was handed out twice, or a smaller one after a larger.
func (h *history) check(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.SortFunc(h.took, func(a, b taken) int { return cmp.Compare(b.First, a.First) })
	least := taken{returned: math.MaxUint64}
	for i, r := range h.took {
		if i > 0 && r.Last >= h.took[i-1].First {
			t.Fatalf("%d to %d and %d to %d overlap", r.First, r.Last, h.took[i-1].First, h.took[i-1].Last)
		}
		if least.returned < r.called {
			t.Fatalf("%d to %d was taken after %d to %d had been", r.First, r.Last, least.First, least.Last)
		}
		if r.returned < least.returned {
			least = r
		}
	}
}

func retryable(err error) bool {
	for _, e := range []error{seq.ErrNoLease, seq.ErrNotOwner, seq.ErrShuttingDown, seq.ErrNoQuorum, context.DeadlineExceeded} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
