package survey

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

const (
	// maxClockOff bounds the difference between a node's clock and the stores' clocks.
	maxClockOff = time.Minute
	// maxHeldAhead bounds how far the mark of a worker id that a node holds is ahead of a right clock: the
	// longest window, and five minutes for clocks that differ.
	maxHeldAhead = 15 * time.Minute
	// maxLentAhead is the bound for a mark that no node holds. The stores accept none beyond.
	maxLentAhead = time.Hour
)

// clockTrouble reports a clock that is off. Such a clock endangers no guarantee, except that exact spaces
// answer.
func clockTrouble(name string, reply *pb.StatusReply) (t trouble, off bool) {
	ahead := time.Duration(reply.GetClockAheadMs()) * time.Millisecond
	if ahead.Abs() <= maxClockOff {
		return t, false
	}
	return trouble{cause: clockOff, what: fmt.Sprintf("clock of alloc %s is %v %s those that the stores go by", name, ahead.Abs().Round(time.Second), aheadOrBehind(ahead)),
		do: "on " + name + ": chronyc tracking", why: "its IDs carry wrong times, or it gets none (docs/operations.md#seqclockoff)"}, true
}

// storeClockTroubles names the stores whose clocks differ from most. It compares them with the median of at
// least three, which one wrong clock does not move.
func (s *Survey) storeClockTroubles(stores []*pb.StoreStatus) (all []trouble) {
	known := slices.DeleteFunc(slices.Clone(stores), func(st *pb.StoreStatus) bool { return st.ClockAheadMs == nil })
	if len(known) < 3 {
		return nil
	}
	slices.SortFunc(known, func(a, b *pb.StoreStatus) int { return cmp.Compare(a.GetClockAheadMs(), b.GetClockAheadMs()) })
	middle := known[len(known)/2].GetClockAheadMs()
	for _, st := range known {
		ahead := time.Duration(st.GetClockAheadMs()-middle) * time.Millisecond
		if ahead.Abs() <= maxClockOff {
			continue
		}
		name := s.storeName(st)
		all = append(all, trouble{cause: clockOff, what: fmt.Sprintf("clock of store %s is %v %s the other stores' clocks", name, ahead.Abs().Round(time.Second), aheadOrBehind(ahead)),
			do: "on " + name + ": chronyc tracking", why: "exact spaces and worker ids go by the other stores; a second wrong clock may stop them (docs/operations.md#seqclockoff)"})
	}
	return all
}

func aheadOrBehind(ahead time.Duration) string {
	if ahead < 0 {
		return "behind"
	}
	return "ahead of"
}

// aheadTrouble is worker ids that are marked as used until a time that no right clock knows.
func aheadTrouble(r *pb.SnowflakeWorkersReply) (t trouble, found bool) {
	n, last := 0, (*pb.SnowflakeWorker)(nil)
	for _, w := range r.GetWorkers() {
		most := maxLentAhead
		if w.GetSession() != 0 {
			most = maxHeldAhead
		}
		if time.Duration(w.GetAheadMs())*time.Millisecond <= most {
			continue
		}
		if n++; last == nil || last.GetMarkUnixMs() < w.GetMarkUnixMs() {
			last = w
		}
	}
	if n == 0 {
		return t, false
	}
	what := fmt.Sprintf("%d worker ids of %s are held in the future, worker %d", n, r.GetNamespace(), last.GetWorkerId())
	if node := last.GetNode(); node != "" {
		what += " by " + node
	}
	return trouble{cause: idsAhead, what: fmt.Sprintf("%s until %s", what, time.UnixMilli(int64(last.GetMarkUnixMs())).UTC().Format(time.RFC3339)),
		do: "seqctl snowflake workers --namespace " + r.GetNamespace(), why: "a clock is or was ahead: nobody can use them before (docs/operations.md#seqclockoff)"}, true
}
