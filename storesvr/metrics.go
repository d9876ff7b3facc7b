package storesvr

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seqsvr/seqsvr/internal/process/telemetry"
	"github.com/seqsvr/seqsvr/membership"
	"github.com/seqsvr/seqsvr/seq"
)

var (
	mState      = telemetry.Gauge("store_state", "1 for the state that the store is in. Only a voting one counts for a quorum.", "state")
	mCommits    = telemetry.Counter("store_commits_total", "Transactions of the database and batches of the journal over the life of the disk, each fsynced.")
	mCommit     = telemetry.Distribution("store_commit_seconds", "How long the transaction of a group of requests took, with its fsyncs and the journal's.")
	mGroup      = telemetry.Distribution("store_commit_requests", "Requests that shared one transaction.")
	mChanges    = telemetry.Counter("store_register_writes_total", "Registers written.")
	mRefused    = telemetry.Counter("store_refused_full_total", "Groups of requests refused because the disk is nearly full.")
	mBoots      = telemetry.Counter("store_boots_total", "Starts on this disk.")
	mGrace      = telemetry.Gauge("store_grace_remaining_seconds", "How long the store still lets nobody but the recorded owners in, after its start.")
	mLeaseBound = telemetry.Gauge("store_lease_bound_seconds", "Longest lease ever granted: the grace after the next crash.")
	mFree       = telemetry.Gauge("store_disk_free_bytes", "Bytes free for this process on the file system of the database.")
	mNearFullAt = telemetry.Gauge("store_near_full_bytes", "Below so many free bytes writes are refused; 0: never.")
	mFull       = telemetry.Gauge("store_nearly_full", "1 while writes are refused for lack of room. Leases go on.")
	mRegisters  = telemetry.Gauge("store_registers", "Registers on the disk.")
	mSessions   = telemetry.Gauge("store_sessions", "Sessions of AllocSvr with a valid lease.")
	mLeased     = telemetry.Gauge("store_leased_registers", "Registers under a valid lease.")
	mJournal    = telemetry.Distribution("store_journal_seconds", "How long one batch of the journal of exact spaces took, with its fsync.")
	mJournaled  = telemetry.Counter("store_journal_bytes_total", "Bytes written to the journal since start.")
	mUIDs       = telemetry.Gauge("store_exact_uids", "UIDs of exact spaces.")
	mIDs        = telemetry.Gauge("store_exact_ids", "Ids of requests that exact spaces keep.")
	mExactUsed  = telemetry.Gauge("store_exact_bytes", "What the UIDs and ids of exact spaces take in memory.")
	mExactMost  = telemetry.Gauge("store_exact_limit_bytes", "From so many bytes on no more UIDs and ids of exact spaces are let in, if fewer than W stores have room; 0: no memory limit is known.")
	mFatalZones = telemetry.Gauge("store_fatal_zones", "Zones whose loss would leave fewer stores than a write needs, of three or more that are known.")
	mUptime     = telemetry.Gauge("store_uptime_seconds", "Time since the store opened its disk.")
)

// states are those that replica.state begins with.
var states = []string{"voting", "unbound", "distrusted", "failed"}

// stats are counted since start, by the goroutine that commits.
type stats struct {
	commit, group    *telemetry.Histogram
	changes, refused atomic.Uint64

	log      *telemetry.Histogram
	logBytes atomic.Uint64
}

func newStats() stats {
	return stats{commit: telemetry.Durations(), group: telemetry.Sizes(), log: telemetry.Durations()}
}

// committed counts a group that is on disk.
func (s *stats) committed(took time.Duration, requests, changes int) {
	s.commit.Observe(took)
	s.group.Add(uint64(requests), 1)
	s.changes.Add(uint64(changes))
}

// logged counts a batch of the journal that is on disk.
func (s *stats) logged(took time.Duration, bytes uint64) {
	s.log.Observe(took)
	s.logBytes.Add(bytes)
}

// Describe implements prometheus.Collector; see telemetry.Func.
func (s *Store) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector. It waits for no commit.
func (s *Store) Collect(ch chan<- prometheus.Metric) {
	s.calls.Send(ch)
	s.replica.send(ch)
	var view *membership.View
	if s.gossip != nil {
		view = s.gossip.view
	}
	telemetry.SendMembers(ch, view)
	if view != nil {
		mFatalZones.Send(ch, float64(len(s.replica.core.fatalZones(view.Members()))))
	}
	telemetry.SendTraces(ch, s.cfg.Traces)
	telemetry.SendAuth(ch, s.cfg.Guard)
	telemetry.SendRefused(ch, s.cfg.Refused)
}

// Ready is nil while the store votes; else the reason why not.
func (s *Store) Ready() error {
	if d := s.replica.describe(); !d.Voting {
		return fmt.Errorf("%w: this store counts for no quorum: %s", seq.ErrNotVoting, d.State)
	}
	return nil
}

func (r *replica) send(ch chan<- prometheus.Metric) {
	d := r.describe()
	for _, state := range states {
		mState.Flag(ch, strings.HasPrefix(d.State, state), state)
	}
	mCommits.Send(ch, float64(d.Commits))
	mCommit.Histogram(ch, r.writer.stats.commit)
	mGroup.Histogram(ch, r.writer.stats.group)
	mChanges.Send(ch, float64(r.writer.stats.changes.Load()))
	mRefused.Send(ch, float64(r.writer.stats.refused.Load()))
	mBoots.Send(ch, float64(d.BootCount))
	mGrace.Send(ch, d.Grace.Seconds())
	mLeaseBound.Send(ch, d.LeaseBound.Seconds())
	mFree.Send(ch, float64(d.free))
	mNearFullAt.Send(ch, float64(r.writer.nearFull.Load()))
	mFull.Flag(ch, d.nearlyFull)
	mRegisters.Send(ch, float64(d.registers))
	mUptime.Send(ch, d.uptime.Seconds())
	r.core.mu.Lock()
	uids, ids, _ := r.core.acceptor.Kept()
	room := r.core.exactRoom()
	sessions, leased := r.core.acceptor.Sessions(r.core.clock.Now())
	r.core.mu.Unlock()
	mJournal.Histogram(ch, r.writer.stats.log)
	mJournaled.Send(ch, float64(r.writer.stats.logBytes.Load()))
	mUIDs.Send(ch, float64(uids))
	mIDs.Send(ch, float64(ids))
	mExactUsed.Send(ch, float64(room.used))
	mExactMost.Send(ch, float64(room.most))
	mSessions.Send(ch, float64(sessions))
	mLeased.Send(ch, float64(leased))
}
