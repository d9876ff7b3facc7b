package exact

import (
	"container/heap"
	"slices"
)

// expiry is when an id is dropped, in the section's time.
type expiry struct {
	request
	at int64
}

// expiries returns the earliest expiry first. Ids are kept for one window from a time that does not fall,
// so nearly all come in order. The ids of callers whose clocks are ahead come out of order.
type expiries struct {
	queue []expiry // in order
	late  expiryHeap
}

func (e *expiries) add(x expiry) {
	if n := len(e.queue); n > 0 && x.at < e.queue[n-1].at {
		heap.Push(&e.late, x)
		return
	}
	e.queue = append(e.queue, x)
}

// next is the earliest, nil if there is none.
func (e *expiries) next() *expiry {
	switch {
	case len(e.queue) > 0 && (len(e.late) == 0 || e.queue[0].at <= e.late[0].at):
		return &e.queue[0]
	case len(e.late) > 0:
		return &e.late[0]
	}
	return nil
}

// drop drops the earliest.
func (e *expiries) drop() {
	if len(e.late) > 0 && e.next() == &e.late[0] {
		heap.Pop(&e.late)
		return
	}
	e.queue[0] = expiry{}
	e.queue = e.queue[1:]
}

func (e *expiries) clone() expiries {
	return expiries{queue: slices.Clone(e.queue), late: slices.Clone(e.late)}
}

// expiryHeap has the earliest first.
type expiryHeap []expiry

func (h expiryHeap) Len() int           { return len(h) }
func (h expiryHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h expiryHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *expiryHeap) Push(x any)        { *h = append(*h, x.(expiry)) }
func (h *expiryHeap) Pop() any {
	old := *h
	n := len(old) - 1
	x := old[n]
	old[n] = expiry{}
	*h = old[:n]
	return x
}
