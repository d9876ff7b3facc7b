package section

import (
	"sync"

	"github.com/seqsvr/seqsvr/seq"
)

// takings are for TakeLocal, which allocates nothing.
var takings = sync.Pool{New: func() any { return new(Taking) }}

// TakeLocal takes counts[i] numbers, one each if counts is empty, of uids[i] where nothing has to
// be waited for: first[i] is the first of them, and 0 for all others, which a Take serves. In a
// strict space that is all of them: there the stores are asked before anything is answered.
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
