package globalid

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seqsvr/seqsvr/internal/process/telemetry"
	"github.com/seqsvr/seqsvr/snowflake"
)

var (
	mIDs       = telemetry.Counter("snowflake_ids_total", "IDs handed out.", "namespace")
	mDelegated = telemetry.Counter("snowflake_delegated_total", "Windows given to clients for their own fallback.", "namespace")
	mGivenBack = telemetry.Counter("snowflake_given_back_total", "Of these windows, those given back before they were over.", "namespace")
	mAgents    = telemetry.Counter("snowflake_agent_ids_total", "IDs handed out by the agent that asked; at most 1,024 names, then (other).", "agent")
	mHeld      = telemetry.Gauge("snowflake_worker_held", "1 while this node has a worker id of the namespace.", "namespace")
	mWindow    = telemetry.Gauge("snowflake_window_remaining_seconds", "How far ahead of the clock the worker id's high-water mark is confirmed; 0 without a worker id.", "namespace")
	mPoolUsed  = telemetry.Gauge("snowflake_pool_used", "Worker ids of this datacenter that are not free, as last seen.", "namespace")
	mPoolSize  = telemetry.Gauge("snowflake_pool_size", "Worker ids of one datacenter; 0: not looked at yet.", "namespace")
	mCrowded   = telemetry.Gauge("snowflake_pool_crowded", "1 while more than 80 % of the worker ids are not free.", "namespace")
	mAudited   = telemetry.Counter("snowflake_audit_lines_total", "Lines written to the ID audit; there is none without id-audit.")
	mUnaudited = telemetry.Counter("snowflake_audit_dropped_total", "Calls and lines that were left out of the ID audit: the disk was too slow, full or gone.")
	mLayoutEnd = telemetry.Gauge("snowflake_layout_remaining_seconds", "Time until the layout has no tick left; below 0 afterwards.", "namespace")
	mConflicts = telemetry.Gauge("snowflake_region_conflicts", "Namespaces of which another region can make the same IDs, as last seen.")
	mRegions   = telemetry.Gauge("snowflake_regions", "Addresses of other regions: all that are configured, and those that told which IDs they make when they were last asked.", "what")
	mEndsSoon  = telemetry.Gauge("snowflake_layout_ends_soon", "1 within a year of the layout's end, and after it.", "namespace")
)

// Send sends the metrics of the namespaces that were asked for at this node.
func (s *Service) Send(ch chan<- prometheus.Metric) {
	now := s.cfg.Wall()
	for _, ns := range s.names.Known().All {
		i := s.workers.Of(ns.Name)
		if !i.Asked() {
			continue
		}
		l, window := i.Current(), 0.0
		if l != nil {
			window = max(0, l.Mark().Time().Sub(now).Seconds())
		}
		pool := i.Pool()
		mIDs.Send(ch, float64(i.Issued.Load()), ns.Name)
		mDelegated.Send(ch, float64(i.Delegated.Load()), ns.Name)
		mGivenBack.Send(ch, float64(i.GivenBack.Load()), ns.Name)
		mHeld.Flag(ch, l != nil, ns.Name)
		mWindow.Send(ch, window, ns.Name)
		mPoolUsed.Send(ch, float64(pool.Held), ns.Name)
		mPoolSize.Send(ch, float64(pool.Size), ns.Name)
		mCrowded.Flag(ch, pool.Size > 0 && pool.Crowded(), ns.Name)
		mLayoutEnd.Send(ch, ns.Layout.Exhausted().Sub(now).Seconds(), ns.Name)
		mEndsSoon.Flag(ch, ns.Retired == 0 && ns.Layout.Remaining(now) <= snowflake.ExhaustionWarning, ns.Name)
	}
	s.abroad.send(ch)
	if s.cfg.Audit != nil {
		written, dropped := s.cfg.Audit.Counts()
		mAudited.Send(ch, float64(written))
		mUnaudited.Send(ch, float64(dropped))
	}
	for agent, ids := range s.agents.counts() {
		mAgents.Send(ch, float64(ids), agent)
	}
}
