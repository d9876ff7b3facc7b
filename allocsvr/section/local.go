package section

import (
	"sync"

	"github.com/seqsvr/seqsvr/seq"
)

// takings holds Takings for TakeLocal, so that it allocates nothing.
var takings = sync.Pool{New: func() any { return new(Taking) }}

// TakeLocal takes counts[i] numbers of uids[i], or one each if counts is empty, if the take need not wait.
// Then first[i] is the first of the numbers. For all other UIDs first[i] is 0, and the caller uses Take. In
// a strict space TakeLocal takes no numbers, because there the stores are asked before any answer.
func (t *Table) TakeLocal(space *seq.Space, uids []seq.UID, counts []uint32, first []uint64) (unordered bool) {
	if space.Mode == seq.Strict {
		return false
	}
	k := takings.Get().(*Taking)
	defer takings.Put(k)
	k.Set(t, space, seq.Counters{UIDs: uids, Places: uids}, counts)
	k.Pass(t.BatchClock())
	k.observe()
	copy(first, k.out.First)
	return k.out.Unordered
}
