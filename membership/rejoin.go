//go:build !wasip1

package membership

import (
	"slices"
	"time"
)

const (
	// healFactor times the rejoin interval is how often a node with company looks for those it misses:
	// after a partition longer than memberlist's memory of the dead (30 s) the two halves would
	// otherwise never meet again.
	healFactor = 10
	// settleTime bounds the time that a new node repeats the exchange with one member an interval. The
	// other nodes may still hold the earlier process, under the same name at another address. While they
	// suspect it, they refuse the new process without telling it. settleTime covers the longest suspicion
	// of the fast and lan profiles. For wan, memberlist's own exchange every minute is enough.
	settleTime = 30 * time.Second
	// maxTargets bounds the addresses tried in one round.
	maxTargets = 16
)

// rejoinState is what the rejoin loop decides by. It is guarded by View.mu.
type rejoinState struct {
	seeds    []string
	started  time.Time
	refused  bool // another process was heard to hold this node's name since the last attempt
	lastHeal time.Time
	round    int
}

// due returns the addresses to try at this moment. A node without company tries the seeds and the last
// addresses of the dead; so does any node once every heal. A node that is refused, or settling, repeats
// the exchange with one live member a round, since it is the live ones that may not know it.
func (s *rejoinState) due(members []Member, own string, now time.Time, heal time.Duration) []string {
	var live, dead []string
	for _, m := range members {
		switch {
		case m.Self || m.State == StateLeft:
		case m.State == StateAlive:
			live = append(live, m.Gossip)
		default:
			dead = append(dead, m.Gossip)
		}
	}
	var out []string
	if len(live) > 0 && (s.refused || now.Sub(s.started) < settleTime) {
		out = append(out, live[s.round%len(live)])
	}
	s.refused = false
	s.round++
	if len(live) > 0 && now.Sub(s.lastHeal) < heal {
		return out
	}
	s.lastHeal = now
	for _, a := range slices.Concat(s.seeds, dead) {
		if a != own && !slices.Contains(live, a) && !slices.Contains(out, a) && len(out) < maxTargets {
			out = append(out, a)
		}
	}
	return out
}

// tryJoin asks one address after the other, so that Close waits for one dial only.
func (v *View) tryJoin(addrs []string) (n int, last error) {
	for _, a := range addrs {
		if v.ctx.Err() != nil {
			return n, ErrClosed
		}
		if a == v.addr {
			continue
		}
		if _, err := v.ml.Join([]string{a}); err != nil {
			last = err
			continue
		}
		n++
	}
	return n, last
}

// rejoinLoop joins the seeds until the node has company, and again whenever it has lost it.
func (v *View) rejoinLoop() {
	tick := time.NewTicker(v.cfg.RejoinInterval)
	defer tick.Stop()
	failing := false
	for {
		if targets := v.rejoinTargets(); len(targets) > 0 {
			n, err := v.tryJoin(targets)
			switch {
			case n > 0:
				failing = false
				v.log.Debug("joined members", "tried", len(targets), "answered", n)
			case !failing && v.others.Load() == 0 && v.ctx.Err() == nil:
				failing = true
				v.log.Warn("no seed answers, trying on", "seeds", targets, "error", named(err), "check", checkSeeds)
			}
		}
		select {
		case <-v.ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (v *View) rejoinTargets() []string {
	v.publishMu.Lock()
	departed := v.departed
	v.publishMu.Unlock()
	if departed {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	return v.rejoin.due(v.roster.snapshot(now), v.addr, now, healFactor*v.cfg.RejoinInterval)
}
