package globalid

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

const (
	// maxTries is how many worker ids one acquisition tries. More than one, since
	// others may choose the same at the same moment.
	maxTries = 8
	// roomy is how many used worker ids make a pool large: beyond, free ones are used
	// again before new ones, so that layouts with millions of ids do not fill the
	// stores with registers.
	roomy = 1024
	// maxBehind is how far the mark of a held worker id may lie ahead of this node's
	// clock. Stores take no mark far beyond their own clocks, so one that does tells
	// that this clock is behind. Those of delegated ids are, and nobody holds them.
	maxBehind = 15 * time.Minute
	// maxAhead is how far beyond a right clock a mark may lie that nobody holds: the
	// stores take none that is further beyond theirs. Delegated ids have such marks.
	maxAhead = time.Hour
	// crowdedPercent is the share of a pool above which an operator is warned.
	crowdedPercent = 80
)

// usedWorker is a worker id that has a register.
type usedWorker struct {
	datacenter snowflake.Datacenter
	worker     snowflake.Worker
	mark       mark
	floor      mark          // of the era: a mark that is no higher was never written
	free       bool          // a Prepare would be admitted, and the mark is not too late
	holder     seq.Session   // 0: none
	remaining  time.Duration // of the lease, or of what else keeps it, such as its mark
}

// prefixOf is what the worker registers of a namespace start with.
func prefixOf(namespace string) string {
	return string(seq.KindWorker) + namespace + "/"
}

// prefixIn is what those of one of its datacenters start with.
func prefixIn(namespace string, dc snowflake.Datacenter) string {
	return prefixOf(namespace) + strconv.FormatUint(uint64(dc), 10) + "/"
}

// survey reads what the stores said, by datacenter and worker. self is never a reason
// why its own worker ids are not free: what it holds no longer, it may take again. An
// id with a mark above latest is not free either: it is delegated, or as good as that.
func survey(namespace string, found map[seq.Register]quorum.Outcome, self seq.Session, latest mark) []usedWorker {
	out := make([]usedWorker, 0, len(found))
	for reg, o := range found {
		dc, worker, ok := strings.Cut(strings.TrimPrefix(string(reg), prefixOf(namespace)), "/")
		d, err := strconv.ParseUint(dc, 10, 64)
		w, err2 := strconv.ParseUint(worker, 10, 64)
		if !ok || err != nil || err2 != nil {
			continue
		}
		u := usedWorker{
			datacenter: snowflake.Datacenter(d), worker: snowflake.Worker(w), mark: mark(o.Max), floor: mark(o.Floor),
			free:   o.State == quorum.Won && (o.Holder == 0 || o.Holder == self),
			holder: o.Holder, remaining: o.Remaining,
		}
		if wait := u.mark.ahead(latest); u.free && wait > 0 {
			u.free, u.remaining = false, wait
		}
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b usedWorker) int {
		return cmp.Or(cmp.Compare(a.datacenter, b.datacenter), cmp.Compare(a.worker, b.worker))
	})
	return out
}

// pool is how many of the worker ids of a namespace in a datacenter are not free.
type pool struct {
	held int
	size uint64 // of the layout, used or not
}

// crowded says whether an operator should hear of it.
func (p pool) crowded() bool {
	return p.size < 1<<40 && uint64(p.held)*100 > p.size*crowdedPercent // no more are ever held
}

// choice is which worker ids to try, in this order, and how full the pool is.
type choice struct {
	try  []snowflake.Worker
	pool pool
}

// order is how one who needs a worker id deviates from the order of choose.
type order struct {
	// first, if not nil, goes before all others if it is free: of a node, an id whose
	// mark a failed attempt may have pushed up at some store, so that failing again
	// spoils no second one; of a client, the one that it had.
	first *snowflake.Worker
	// topDown is for delegated ids: the new ones are looked for from the highest down,
	// away from those of nodes, above all of nodes that are numbered from outside.
	topDown bool
}

// choose puts the free worker ids in the order of their marks, never used ones first.
// Those who choose at the same moment should not meet, so new ids come in a random
// order.
func choose(used []usedWorker, layout snowflake.Layout, by order, rnd *rand.Rand) choice {
	c := choice{pool: pool{size: uint64(layout.MaxWorker()) + 1}}
	known := make(map[snowflake.Worker]bool, len(used))
	free := make([]usedWorker, 0, len(used))
	for _, u := range used {
		known[u.worker] = true
		if u.free {
			free = append(free, u)
		} else {
			c.pool.held++
		}
	}
	slices.SortStableFunc(free, func(a, b usedWorker) int { return cmp.Compare(a.mark, b.mark) })
	var fresh, again []snowflake.Worker
	for k := snowflake.Worker(0); k <= layout.MaxWorker() && len(fresh) < maxTries; k++ {
		w := k
		if by.topDown {
			w = layout.MaxWorker() - k
		}
		if !known[w] {
			fresh = append(fresh, w)
		}
	}
	rnd.Shuffle(len(fresh), func(i, j int) { fresh[i], fresh[j] = fresh[j], fresh[i] })
	for _, u := range free[:min(len(free), maxTries)] {
		again = append(again, u.worker)
	}
	if len(used) < roomy {
		c.try = append(fresh, again...)
	} else {
		c.try = append(again, fresh...)
	}
	if first := by.first; first != nil {
		at := slices.Index(c.try, *first)
		if at < 0 && slices.ContainsFunc(free, func(u usedWorker) bool { return u.worker == *first }) {
			c.try, at = append(c.try, *first), len(c.try)
		}
		if at >= 0 {
			c.try = slices.Insert(slices.Delete(c.try, at, at+1), 0, *first)
		}
	}
	c.try = c.try[:min(len(c.try), maxTries)]
	return c
}

// only limits a choice to one worker id.
func (c choice) only(w snowflake.Worker, used []usedWorker) choice {
	c.try = nil
	if !slices.ContainsFunc(used, func(u usedWorker) bool { return u.worker == w && !u.free }) {
		c.try = []snowflake.Worker{w}
	}
	return c
}

// behind says why this node's clock cannot be right: others hold worker ids with
// marks far above it, which they wrote. nil if there are none.
func behind(used []usedWorker, now mark, self seq.Session) error {
	for _, u := range used {
		if u.holder != 0 && u.holder != self && u.mark > u.floor && u.mark.ahead(now) > maxBehind {
			return fmt.Errorf("%w: it is %v behind the mark of worker %d, which session %s holds",
				seq.ErrClockOff, u.mark.ahead(now), u.worker, u.holder)
		}
	}
	return nil
}

// ahead says that this node's clock is behind if worker ids that nobody holds have
// marks that no right clock knows. It is asked once none is free.
func ahead(used []usedWorker, now mark) error {
	for _, u := range used {
		if u.holder == 0 && u.mark > u.floor && u.mark.ahead(now) > maxAhead {
			return fmt.Errorf("%w: it is %v behind the mark of worker %d", seq.ErrClockOff, u.mark.ahead(now), u.worker)
		}
	}
	return nil
}

// kept says that no worker id is to be had yet, used or new: all of them have the floor of
// an era that was restored, which is above latest. nil if it is not.
func kept(floor, latest, now mark) error {
	if floor <= latest {
		return nil
	}
	return fmt.Errorf("%w: until %s, %v by this node's clock, windows from before it may be in use; seqctl store windows-over ends the wait if none is",
		seq.ErrWorkersKept, floor.time().Format(time.RFC3339), floor.ahead(now).Round(time.Second))
}

// floorOf is the highest floor that a look at worker registers has shown.
func floorOf(used []usedWorker) (floor mark) {
	for _, u := range used {
		floor = max(floor, u.floor)
	}
	return floor
}

// maxNamed is how many holders an error names; it must fit a status.
const maxNamed = 12

// exhausted names who holds what.
func exhausted(used []usedWorker, p pool, nodes map[seq.Session]string) error {
	held := make([]string, 0, maxNamed+1)
	for _, u := range used {
		if u.free {
			continue
		}
		if len(held) == maxNamed {
			held = append(held, fmt.Sprintf("and %d more", p.held-maxNamed))
			break
		}
		left := u.remaining.Round(time.Millisecond)
		switch name := nodes[u.holder]; {
		case name != "":
			held = append(held, fmt.Sprintf("%d by %s for %v", u.worker, name, left))
		case u.holder != 0:
			held = append(held, fmt.Sprintf("%d by session %s for %v", u.worker, u.holder, left))
		default:
			held = append(held, fmt.Sprintf("%d kept for %v", u.worker, left))
		}
	}
	return fmt.Errorf("%w: %d of %d held: %s", seq.ErrWorkersExhausted, p.held, p.size, strings.Join(held, ", "))
}
