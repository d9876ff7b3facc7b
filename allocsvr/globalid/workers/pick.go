package workers

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

const (
	// maxTries bounds the worker ids that one acquisition tries. There is more than one try, because other
	// nodes may choose the same id at the same moment.
	maxTries = 8
	// roomy is the number of used worker ids from which a pool counts as large. In a large pool free ids
	// are used again before new ids, so that layouts with millions of ids do not fill the stores with
	// registers.
	roomy = 1024
	// crowdedPercent is the share of a pool above which an operator is warned.
	crowdedPercent = 80
)

// Used is a worker id that has a register.
type Used struct {
	Datacenter snowflake.Datacenter
	Worker     snowflake.Worker
	Mark       Mark
	Floor      Mark          // floor of the era; a mark at or below it was never written
	Free       bool          // a Prepare would be admitted, and the mark is not too late
	Holder     seq.Session   // zero if there is none
	Remaining  time.Duration // time left of the lease, or of another reason such as the mark
}

// prefixOf returns the prefix of the worker registers of a namespace.
func prefixOf(namespace string) string {
	return string(seq.KindWorker) + namespace + "/"
}

// prefixIn returns the prefix of a namespace's worker registers in one datacenter.
func prefixIn(namespace string, dc snowflake.Datacenter) string {
	return prefixOf(namespace) + strconv.FormatUint(uint64(dc), 10) + "/"
}

// survey reads what the stores said, by datacenter and worker. self is never a reason
// why its own worker ids are not free: what it holds no longer, it may take again. An
// id with a mark above latest is not free either: it is delegated, or as good as that.
func survey(namespace string, found map[seq.Register]quorum.Outcome, self seq.Session, latest Mark) []Used {
	out := make([]Used, 0, len(found))
	for reg, o := range found {
		dc, worker, ok := strings.Cut(strings.TrimPrefix(string(reg), prefixOf(namespace)), "/")
		d, err := strconv.ParseUint(dc, 10, 64)
		w, err2 := strconv.ParseUint(worker, 10, 64)
		if !ok || err != nil || err2 != nil {
			continue
		}
		u := Used{
			Datacenter: snowflake.Datacenter(d), Worker: snowflake.Worker(w), Mark: Mark(o.Max), Floor: Mark(o.Floor),
			Free:   o.State == quorum.Won && (o.Holder == 0 || o.Holder == self),
			Holder: o.Holder, Remaining: o.Remaining,
		}
		if wait := u.Mark.ahead(latest); u.Free && wait > 0 {
			u.Free, u.Remaining = false, wait
		}
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b Used) int {
		return cmp.Or(cmp.Compare(a.Datacenter, b.Datacenter), cmp.Compare(a.Worker, b.Worker))
	})
	return out
}

// among returns the used worker ids that nodes of this cluster may use. It raises their marks to at least
// the marks of the IDs that the root made under them.
func among(used []Used, own namespaces.Own, latest Mark) []Used {
	out := make([]Used, 0, len(used))
	for _, u := range used {
		span, ok := own.Find(u.Worker)
		if !ok {
			continue
		}
		if above := Mark(span.Above); u.Mark < above {
			u.Mark = above
			if wait := above.ahead(latest); u.Free && wait > 0 {
				u.Free, u.Remaining = false, wait
			}
		}
		out = append(out, u)
	}
	return out
}

// fresh returns the first worker ids of own, or with topDown the last ones, that have no register yet
// and whose IDs may begin at latest or before.
func fresh(own namespaces.Own, known map[snowflake.Worker]bool, topDown bool, latest Mark) (out []snowflake.Worker) {
	own = slices.Clone(own)
	if topDown {
		slices.Reverse(own)
	}
	for _, s := range own {
		if Mark(s.Above) > latest {
			continue
		}
		for k := snowflake.Worker(0); k <= s.Last-s.First && len(out) < maxTries; k++ {
			w := s.First + k
			if topDown {
				w = s.Last - k
			}
			if !known[w] {
				out = append(out, w)
			}
		}
	}
	return out
}

// Pool counts the worker ids of a namespace and datacenter that nodes of this cluster may use, and those
// among them that are not free.
type Pool struct {
	Held int
	Size uint64 // all ids, used or not
}

func poolOf(used []Used, own namespaces.Own) Pool {
	p := Pool{Size: own.Size()}
	for _, u := range used {
		if !u.Free {
			p.Held++
		}
	}
	return p
}

// Crowded reports whether an operator should hear of the pool, because more than 80 % are not free.
func (p Pool) Crowded() bool {
	return p.Size < 1<<40 && uint64(p.Held)*100 > p.Size*crowdedPercent // no more are ever held
}

// choice is which worker ids to try, in this order, of those that were found.
type choice struct {
	try  []snowflake.Worker
	used []Used
	pool Pool
}

// order says which node needs a worker id, and how its order deviates from the order of choose.
type order struct {
	self   seq.Session // the node may take again an id that it no longer holds
	latest Mark        // the latest mark of an id that it takes
	// first, if not nil and free, goes before all others. For a node, it is an id whose mark a failed
	// attempt may have pushed up at some store, so that another failure spoils no second id. For a client,
	// it is the id that it had.
	first *snowflake.Worker
	// topDown is set for delegated ids. New ids are taken from the highest down, away from the nodes' ids,
	// above all from nodes that are numbered from outside.
	topDown bool
	// returned, if not nil, reports whether an id was given back before its mark is over. Such an id is
	// free, and goes before new ids.
	returned func(Used) bool
}

// choose puts the free worker ids in the order of their marks, never used ones first.
// Nodes that choose at the same moment should not meet, so new ids come in a random
// order.
func choose(used []Used, own namespaces.Own, by order, rnd *rand.Rand) choice {
	used = among(used, own, by.latest)
	var back []snowflake.Worker
	if by.returned != nil {
		used = slices.Clone(used)
		for i := range used {
			if u := &used[i]; !u.Free && u.Holder == 0 && by.returned(*u) {
				u.Free, u.Remaining = true, 0
				back = append(back, u.Worker)
			}
		}
	}
	c := choice{used: used, pool: poolOf(used, own)}
	known := make(map[snowflake.Worker]bool, len(used))
	free := make([]Used, 0, len(used))
	for _, u := range used {
		known[u.Worker] = true
		if u.Free {
			free = append(free, u)
		}
	}
	slices.SortStableFunc(free, func(a, b Used) int { return cmp.Compare(a.Mark, b.Mark) })
	var again []snowflake.Worker
	unused := fresh(own, known, by.topDown, by.latest)
	rnd.Shuffle(len(unused), func(i, j int) { unused[i], unused[j] = unused[j], unused[i] })
	for _, u := range free[:min(len(free), maxTries)] {
		again = append(again, u.Worker)
	}
	if len(used) < roomy {
		c.try = append(unused, again...)
	} else {
		c.try = append(again, unused...)
	}
	c.try = append(back, slices.DeleteFunc(c.try, func(w snowflake.Worker) bool { return slices.Contains(back, w) })...)
	if first := by.first; first != nil {
		at := slices.Index(c.try, *first)
		if at < 0 && slices.ContainsFunc(free, func(u Used) bool { return u.Worker == *first }) {
			c.try, at = append(c.try, *first), len(c.try)
		}
		if at >= 0 {
			c.try = slices.Insert(slices.Delete(c.try, at, at+1), 0, *first)
		}
	}
	c.try = c.try[:min(len(c.try), maxTries)]
	return c
}

// only limits a choice to one worker id, of which exhausted then speaks alone.
func (c choice) only(w snowflake.Worker) choice {
	c.try = nil
	c.used = slices.DeleteFunc(slices.Clone(c.used), func(u Used) bool { return u.Worker != w })
	if !slices.ContainsFunc(c.used, func(u Used) bool { return !u.Free }) {
		c.try = []snowflake.Worker{w}
	}
	return c
}

// kept says that no worker id is to be had yet, used or new: all of them have the floor of
// an era that was restored, which is above latest. nil if it is not.
func kept(floor, latest, now Mark) error {
	if floor <= latest {
		return nil
	}
	return fmt.Errorf("%w: until %s, %v by this node's clock, windows from before it may be in use; seqctl store windows-over ends the wait if none is",
		seq.ErrWorkersKept, floor.Time().Format(time.RFC3339), floor.ahead(now).Round(time.Second))
}

// Kept returns the time, in Unix milliseconds, until which windows from before a restore of this cluster
// may be in use. The cluster knows nothing of these windows. Zero means that there was no restore. The
// error says why the stores do not tell.
func (w *Workers) Kept(ctx context.Context) (uint64, error) {
	// Every register shows the floor, even a register that does not exist.
	found := w.cfg.Holder.Look(ctx, seq.WorkerRegister("", 0, 0))
	if found.State != quorum.Won {
		return 0, found.Err
	}
	return found.Floor, nil
}

// floorOf returns the highest floor that a look at worker registers has shown.
func floorOf(used []Used) (floor Mark) {
	for _, u := range used {
		floor = max(floor, u.Floor)
	}
	return floor
}

// maxNamed bounds the holders that an error names, because it must fit into a status.
const maxNamed = 12

// exhausted returns an error that names the holders.
func exhausted(used []Used, p Pool, nodes map[seq.Session]string) error {
	held := make([]string, 0, maxNamed+1)
	for _, u := range used {
		if u.Free {
			continue
		}
		if len(held) == maxNamed {
			held = append(held, fmt.Sprintf("and %d more", p.Held-maxNamed))
			break
		}
		left := u.Remaining.Round(time.Millisecond)
		switch name := nodes[u.Holder]; {
		case name != "":
			held = append(held, fmt.Sprintf("%d by %s for %v", u.Worker, name, left))
		case u.Holder != 0:
			held = append(held, fmt.Sprintf("%d by session %s for %v", u.Worker, u.Holder, left))
		default:
			held = append(held, fmt.Sprintf("%d kept for %v", u.Worker, left))
		}
	}
	return fmt.Errorf("%w: %d of %d held: %s", seq.ErrWorkersExhausted, p.Held, p.Size, strings.Join(held, ", "))
}
