package gate

import (
	"sync"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
)

// Budget bounds the bytes that callers hold in one process: of all addresses together, and of each
// address. Safe for concurrent use.
type Budget struct {
	mu         sync.Mutex // guards all below
	most, each int64
	used       int64
	by         map[string]int64 // of addresses that hold something
}

// NewBudget returns a budget of so many bytes, of which one address may hold a half.
func NewBudget(most int64) *Budget {
	return &Budget{most: most, each: most / 2, by: map[string]int64{}}
}

// SetMost changes the budget. Callers that hold more keep it.
func (b *Budget) SetMost(most int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.most, b.each = most, most/2
}

// Draw takes n bytes for the address, host:port, or gives them back if n is negative. It reports
// whether they were there; giving back always succeeds.
func (b *Budget) Draw(address string, n int64) bool {
	host := rpc.Host(address)
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > 0 && (b.used+n > b.most || b.by[host]+n > b.each) {
		return false
	}
	b.used += n
	if b.by[host] += n; b.by[host] == 0 {
		delete(b.by, host)
	}
	return true
}

// Short reports whether more than half of all, or of the share of the address, is drawn.
func (b *Budget) Short(address string) bool {
	host := rpc.Host(address)
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used > b.most/2 || b.by[host] > b.each/2
}

// Used returns how many bytes are drawn.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}
