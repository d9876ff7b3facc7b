package client

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/internal/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// request makes one message of the slots, a batch for each space. It brings the slots
// into the order of the message: sorted by space, else as they came.
func request(id uint64, slots []*slot, version uint64, timeout time.Duration) *pb.StreamRequest {
	bySpace := func(a, b *slot) int { return cmp.Compare(a.space.First, b.space.First) }
	if !slices.IsSortedFunc(slots, bySpace) {
		slices.SortStableFunc(slots, bySpace)
	}
	next := &pb.BatchNextRequest{RouteVersion: version}
	for len(slots) > 0 {
		n := 1
		counted := slots[0].count != 1
		for ; n < len(slots) && slots[n].space.First == slots[0].space.First; n++ {
			counted = counted || slots[n].count != 1
		}
		b := &pb.Batch{Space: slots[0].space.Name, Uids: make([]uint64, n)}
		if counted {
			b.Counts = make([]uint32, n)
		}
		for i, s := range slots[:n] {
			b.Uids[i] = uint64(s.uid)
			if counted {
				b.Counts[i] = s.count
			}
		}
		next.Batches = append(next.Batches, b)
		slots = slots[n:]
	}
	return &pb.StreamRequest{Id: id, Call: &pb.StreamRequest_Next{Next: next}, TimeoutMs: millis(timeout)}
}

// millis rounds up: 0 would mean the peer's default.
func millis(d time.Duration) uint32 {
	return uint32((d + time.Millisecond - 1) / time.Millisecond)
}

// answer completes all slots of the flight by the reply.
func (f *flight) answer(reply *pb.StreamReply) {
	if k := reply.GetError(); k != nil {
		finishAll(f.slots, rpc.FromKeyError(k))
		return
	}
	left := f.slots
	for _, r := range reply.GetNext().GetResults() {
		n := 0
		for n < len(left) && left[n].space.First == left[0].space.First {
			n++
		}
		if n == 0 {
			break
		}
		errs := keyErrors(r.GetErrors(), n)
		for i, s := range left[:n] {
			s.finish(rangeOf(r, i, s.count, errs))
		}
		left = left[n:]
	}
	finishAll(left, fmt.Errorf("%w: %d results are missing", errMalformed, len(left)))
}

// keyErrors lays the errors of a result out by index; nil if there are none.
func keyErrors(list []*pb.KeyError, n int) []error {
	if len(list) == 0 {
		return nil
	}
	out := make([]error, n)
	for _, k := range list {
		if int64(k.GetIndex()) < int64(n) {
			out[k.GetIndex()] = rpc.FromKeyError(k)
		}
	}
	return out
}

// rangeOf reads the answer for one index and refuses what is no answer to the count:
// a peer's fault must not become a number.
func rangeOf(r *pb.BatchResult, i int, count uint32, errs []error) Range {
	if errs != nil && errs[i] != nil {
		return Range{Err: errs[i]}
	}
	if i >= len(r.GetFirst()) {
		return Range{Err: fmt.Errorf("%w: %d numbers, none for index %d", errMalformed, len(r.GetFirst()), i)}
	}
	first := r.GetFirst()[i]
	last := first
	if i < len(r.GetLast()) {
		last = r.GetLast()[i]
	}
	return checkRange(first, last, count, r.GetUnordered())
}

func checkRange(first, last uint64, count uint32, unordered bool) Range {
	if first == 0 || last > uint64(seq.MaxSeq) || last-first != uint64(count)-1 {
		return Range{Err: fmt.Errorf("%w: numbers %d to %d for a count of %d", errMalformed, first, last, count)}
	}
	return Range{First: seq.Seq(first), Last: seq.Seq(last), Unordered: unordered}
}
