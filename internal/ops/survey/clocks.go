package survey

import (
	"fmt"
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
	where := "ahead of"
	if ahead < 0 {
		where = "behind"
	}
	return trouble{cause: clockOff, what: fmt.Sprintf("clock of alloc %s is %v %s those that the stores go by", name, ahead.Abs().Round(time.Second), where),
		do: "on " + name + ": chronyc tracking", why: "its IDs carry wrong times, or it gets none (docs/operations.md#seqclockoff)"}, true
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
