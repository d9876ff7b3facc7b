package section

import (
	"iter"
	"math"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seqsvr/seqsvr/internal/process/telemetry"
	"github.com/seqsvr/seqsvr/seq"
)

var (
	mNumbers   = telemetry.Counter("alloc_numbers_total", "Numbers handed out.", "space")
	mBatch     = telemetry.Distribution("alloc_batch_keys", "Keys in one batch, one in eight looked at.")
	mTake      = telemetry.Distribution("alloc_take_seconds", "How long a batch took from its arrival to its numbers; of those that need no waiting one in eight is looked at.")
	mSections  = telemetry.Gauge("alloc_sections", "Sections of this node by state; served: owned, and the lease holds.", "state")
	mCounters  = telemetry.Gauge("alloc_counters", "UIDs in memory.")
	mIDs       = telemetry.Gauge("alloc_request_ids", "Ids of requests that exact sections of this node keep.")
	mCopy      = telemetry.Gauge("alloc_exact_copy_max_ratio", "The largest owned exact section, as a share of what can be moved; one at 1 takes no more UIDs and request ids.")
	mMemory    = telemetry.Gauge("alloc_uid_memory_bytes", "What the counters of UIDs take.")
	mBudget    = telemetry.Gauge("alloc_uid_memory_budget_bytes", "What they may take (--uid-memory); 0: any number.")
	mExact     = telemetry.Gauge("alloc_exact_bytes", "What the UIDs and ids of exact sections take.")
	mExactMost = telemetry.Gauge("alloc_exact_limit_bytes", "What they may take beside uid-memory, half of it; 0: any number.")
	mDenied    = telemetry.Counter("alloc_exact_refused_total", "Requests for new UIDs and ids of exact sections that were refused because this node or the stores have no memory for them.")
	mFolded    = telemetry.Counter("alloc_folded_blocks_total", "Blocks of 64 neighbouring UIDs whose counters were dropped to stay within the budget.")
	mUnserved  = telemetry.Counter("alloc_uids_refused_total", "Requests refused because there was no memory for a UID without a counter.")
	mOpen      = telemetry.Gauge("alloc_tickets_open", "Tickets that are open; at 1,048,576 no more are given.")
	mTickets   = telemetry.Counter("alloc_tickets_total", "Tickets that were opened, that Done or Cancel ended (done, cancelled), that their time ended (expired), and requests that were refused because too many were open (refused).", "event")
	mWatches   = telemetry.Gauge("alloc_watches", "Watches (watches), and the keys that they watch, each counted once a watch (keys); at 4,194,304 keys no more are watched.", "of")
	mTold      = telemetry.Counter("alloc_watch_told_total", "Values that watches were told (told), and keys that were refused because too many were watched (refused).", "event")
	mHeadroom  = telemetry.Distribution("alloc_headroom_ratio", "Numbers left below the confirmed ceiling of each owned section, as a share of its step.")
	mHeadMin   = telemetry.Gauge("alloc_headroom_min_ratio", "The least of those shares; 1 with no owned section.")
	mSteps     = telemetry.Counter("alloc_steps_total", "Sections whose ceiling was moved forward.")
	mNearEnd   = telemetry.Gauge("alloc_sections_near_end", "Owned sections with less than 2^40 numbers left (near), and with less than a step (spent).", "state")
	mLeft      = telemetry.Gauge("alloc_section_numbers_left", "Numbers left below 2^53-1 above the ceiling of an owned section that is near its end; at most 100 of them.", "space", "section")
	mNacks     = telemetry.Counter("alloc_nacks_total", "Sections lost because a store had promised a higher epoch.")
	mLeaseLeft = telemetry.Gauge("alloc_lease_remaining_seconds", "Least remaining lease of all owned sections; 0: some are not served.")
)

// sampled is one in how many batches that need no waiting is looked at: reading the
// clock twice for each would be the most expensive thing about many of them.
const sampled = 8

// stats are counted since the table was made.
type stats struct {
	numbers      []atomic.Uint64 // by space, in the mapping's order; room for all that there may be
	expired      []atomic.Uint64 // tickets that their time ended, as numbers
	steps, nacks atomic.Uint64

	batches *telemetry.Histogram
	takes   *telemetry.Histogram
}

func newStats(spaces int) stats {
	return stats{numbers: make([]atomic.Uint64, spaces), expired: make([]atomic.Uint64, spaces), batches: telemetry.Sizes(), takes: telemetry.Durations()}
}

// total returns the numbers of all spaces.
func (s *stats) total() (n uint64) {
	for i := range s.numbers {
		n += s.numbers[i].Load()
	}
	return n
}

// sample decides whether this batch is measured.
func (t *Taking) sample() {
	if rand.Uint32()%sampled == 0 {
		t.begun, t.weight = time.Now(), sampled
	}
}

// waits is called when the batch cannot be served at once: those are all looked at.
func (t *Taking) waits() {
	if t.begun.IsZero() {
		t.begun = time.Now()
	}
	t.weight = 1
}

// observe counts what a batch has taken.
func (t *Taking) observe() {
	s := &t.table.stats
	s.numbers[t.table.indexOf(t.space)].Add(t.numbers)
	if t.weight == 0 {
		return
	}
	s.takes.Add(uint64(time.Since(t.begun)), t.weight)
	s.batches.Add(uint64(len(t.keys.UIDs)), t.weight)
}

// Send sends the metrics: the state of all sections, and the counters.
func (t *Table) Send(ch chan<- prometheus.Metric) {
	for i, s := range t.Mapping().Spaces {
		mNumbers.Send(ch, float64(t.stats.numbers[i].Load()), s.Name)
	}
	mBatch.Histogram(ch, t.stats.batches)
	mTake.Histogram(ch, t.stats.takes)
	mSteps.Send(ch, float64(t.stats.steps.Load()))
	mNacks.Send(ch, float64(t.stats.nacks.Load()))
	m := t.Memory()
	mMemory.Send(ch, float64(m.Used))
	mBudget.Send(ch, float64(m.Budget))
	mExact.Send(ch, float64(m.Logs))
	mExactMost.Send(ch, float64(m.Share))
	mDenied.Send(ch, float64(m.Denied))
	mFolded.Send(ch, float64(m.Folded))
	mUnserved.Send(ch, float64(m.Refused))
	t.sendTickets(ch)
	t.sendWatches(ch)
	sendStates(ch, t.all(), t.clock.Now())
	sendEndings(ch, t.all())
}

func (t *Table) sendTickets(ch chan<- prometheus.Metric) {
	s := &t.tickets
	mOpen.Send(ch, float64(s.Open.Load()))
	for event, n := range map[string]*atomic.Uint64{"opened": &s.Opened, "done": &s.Done, "cancelled": &s.Cancelled, "expired": &s.Expired, "refused": &s.Refused} {
		mTickets.Send(ch, float64(n.Load()), event)
	}
}

func (t *Table) sendWatches(ch chan<- prometheus.Metric) {
	now := t.Watches()
	mWatches.Send(ch, float64(now.Watchers), "watches")
	mWatches.Send(ch, float64(now.Keys), "keys")
	mTold.Send(ch, float64(t.watches.Told.Load()), "told")
	mTold.Send(ch, float64(t.watches.Refused.Load()), "refused")
}

func sendStates(ch chan<- prometheus.Metric, cells iter.Seq[*Section], now time.Duration) {
	var states [Sealed + 1]int
	served, uids, ids, largest := 0, 0, 0, 0.0
	headroom, least, left := telemetry.Percents(), math.Inf(1), time.Duration(math.MaxInt64)
	for c := range cells {
		c.mu.Lock()
		states[c.state]++
		if c.state == Owned {
			uids += c.uids()
			remaining := time.Duration(0)
			if c.hold != nil {
				remaining = max(0, c.hold.Until()-now)
			}
			if remaining > 0 {
				served++
			}
			left = min(left, remaining)
			if c.log != nil { // it has no ceiling
				_, n := c.log.Size()
				ids, largest = ids+n, max(largest, c.log.CopyShare())
				c.mu.Unlock()
				continue
			}
			share := float64(c.confirmed-c.table.High()) / float64(max(c.pace.step, 1))
			least = min(least, share)
			headroom.Add(uint64(100*min(share, 1000)), 1)
		}
		c.mu.Unlock()
	}
	for st, n := range states {
		mSections.Send(ch, float64(n), State(st).String())
	}
	mSections.Send(ch, float64(served), "served")
	mCounters.Send(ch, float64(uids))
	mIDs.Send(ch, float64(ids))
	mCopy.Send(ch, largest)
	mHeadroom.Histogram(ch, headroom)
	if states[Owned] == 0 {
		left = 0
	}
	if math.IsInf(least, 1) {
		least = 1
	}
	mHeadMin.Send(ch, least)
	mLeaseLeft.Send(ch, left.Seconds())
}

// MostEndings bounds the named sections near their end. All such sections are counted.
const MostEndings = 100

// sendEndings sends the owned sections near their end.
func sendEndings(ch chan<- prometheus.Metric, cells iter.Seq[*Section]) {
	all, ended := 0, 0
	for c := range cells {
		v, _ := c.View()
		near, spent := c.space.Ending(v.Confirmed)
		if !v.Owned || !near {
			continue
		}
		if all++; spent {
			ended++
		}
		if all <= MostEndings {
			mLeft.Send(ch, float64(uint64(seq.MaxSeq)-min(v.Confirmed, uint64(seq.MaxSeq))), c.space.Name, strconv.Itoa(int(c.id)))
		}
	}
	mNearEnd.Send(ch, float64(all), "near")
	mNearEnd.Send(ch, float64(ended), "spent")
}
