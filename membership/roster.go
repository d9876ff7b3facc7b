package membership

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

const (
	// maxGone bounds the dead and left members kept, and maxDepartures the notices kept, so that a node
	// restarting in a loop under ever new names cannot fill the memory.
	maxGone       = 256
	maxDepartures = 1024

	// conflictRepeat is the time that a reported pair stays quiet, because memberlist reports it with every
	// message.
	conflictRepeat = time.Minute
)

// departure names one incarnation that said it leaves.
type departure struct {
	Name    string `json:"n"`
	Session uint64 `json:"s"`
}

// conflictPair names two processes that share a name.
type conflictPair struct {
	name          string
	kept, refused uint64
}

// change says what happened to a member, in a word for the log. It is empty if nothing did.
type change string

const (
	joined    change = "joined"    // it appeared, or came back from dead or left
	updated   change = "updated"   // it has other metadata or another gossip address; not logged
	restarted change = "restarted" // it lives under another session, so the process before died unnoticed
	died      change = "died"
	left      change = "left"
)

// roster is the pure core of the view: what memberlist reported goes in with the time, changes come out.
// It is not safe for concurrent use.
//
// Invariants: members[n].Meta.Name = n; a member is StateLeft only if departed has its (name, session)
// or had it within keep.
type roster struct {
	self     string
	keep     time.Duration
	members  map[string]Member
	departed map[departure]time.Time
	reported map[conflictPair]time.Time
}

func newRoster(self string, keep time.Duration) *roster {
	return &roster{
		self: self, keep: keep,
		members:  map[string]Member{},
		departed: map[departure]time.Time{},
		reported: map[conflictPair]time.Time{},
	}
}

// alive records that memberlist holds the node alive with this metadata.
func (r *roster) alive(meta Meta, gossip string, now time.Time) change {
	old, known := r.members[meta.Name]
	m := Member{Meta: meta, State: StateAlive, Since: now, Gossip: gossip, Self: meta.Name == r.self}
	what := joined
	switch {
	case !known || old.State != StateAlive:
	case old.Meta.Session != meta.Session:
		what = restarted
	case old.Meta == meta && old.Gossip == gossip:
		return ""
	default:
		what = updated
		m.Since = old.Since
	}
	r.members[meta.Name] = m
	r.prune(now)
	return what
}

// gone records that memberlist holds the node dead or left; which one, only the notices tell.
func (r *roster) gone(name string, now time.Time) change {
	m, known := r.members[name]
	if !known || m.State != StateAlive {
		return ""
	}
	what := died
	m.State, m.Since = StateDead, now
	if _, said := r.departed[departure{name, m.Meta.Session}]; said {
		m.State, what = StateLeft, left
	}
	r.members[name] = m
	r.prune(now)
	return what
}

// notice records that an incarnation said it leaves. fresh tells whether it was news, to be passed on;
// what is left if a member thought dead turned out to have done so.
func (r *roster) notice(d departure, now time.Time) (what change, fresh bool) {
	if _, seen := r.departed[d]; seen {
		return "", false
	}
	r.departed[d] = now
	if m, known := r.members[d.Name]; known && m.State == StateDead && m.Meta.Session == d.Session {
		m.State, what = StateLeft, left
		r.members[d.Name] = m
	}
	r.prune(now)
	return what, true
}

// conflict is an error that memberlist keeps one node of a name and refuses another; nil for the same
// process under two addresses, and for a pair reported within conflictRepeat. It goes away by itself when
// the older one is seen to be gone, as after a restart under a new address.
func (r *roster) conflict(kept, refused Member, now time.Time) error {
	pair := conflictPair{kept.Meta.Name, kept.Meta.Session, refused.Meta.Session}
	if pair.kept == pair.refused {
		return nil
	}
	if at, seen := r.reported[pair]; seen && now.Sub(at) < conflictRepeat {
		return nil
	}
	r.prune(now)
	r.reported[pair] = now
	return fmt.Errorf("member %q at %s (session %016x) and at %s (session %016x): two members use one name",
		pair.name, kept.Gossip, pair.kept, refused.Gossip, pair.refused)
}

// snapshot returns all members by name, those gone for longer than keep left out.
func (r *roster) snapshot(now time.Time) []Member {
	r.prune(now)
	out := make([]Member, 0, len(r.members))
	for _, m := range r.members {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b Member) int { return cmp.Compare(a.Meta.Name, b.Meta.Name) })
	return out
}

// others counts the live members besides the node itself.
func (r *roster) others() int {
	n := 0
	for _, m := range r.members {
		if m.State == StateAlive && !m.Self {
			n++
		}
	}
	return n
}

// highest returns the largest table version among the live members of the same era. The gone do not count,
// since they cannot be asked for their table; so the value may fall. Another era counts tables from the
// beginning.
func (r *roster) highest(own seq.Incarnation) uint64 {
	var v uint64
	for _, m := range r.members {
		if m.State == StateAlive && own.Check(m.Meta.Incarnation) == nil {
			v = max(v, m.Meta.TableVersion)
		}
	}
	return v
}

// laterEra reports whether a live AllocSvr tells a later era than own.
func (r *roster) laterEra(own seq.Incarnation) bool {
	for _, m := range r.members {
		if m.State == StateAlive && m.Meta.Role == RoleAlloc && own.Newer(m.Meta.Incarnation) {
			return true
		}
	}
	return false
}

// strangers are the addresses that a warning was given of. The map is bounded.
type strangers map[string]time.Time

// first reports whether no warning was given of the address within conflictRepeat, and notes one.
func (s strangers) first(addr string, now time.Time) bool {
	if at, known := s[addr]; known && now.Sub(at) < conflictRepeat {
		return false
	}
	for _, old := range outdated(s, now, conflictRepeat, maxGone) {
		delete(s, old)
	}
	s[addr] = now
	return true
}

// prune forgets what is older than keep, and the oldest of what exceeds the bounds.
func (r *roster) prune(now time.Time) {
	gone := map[string]time.Time{}
	for name, m := range r.members {
		if m.State != StateAlive {
			gone[name] = m.Since
		}
	}
	for _, name := range outdated(gone, now, r.keep, maxGone) {
		delete(r.members, name)
	}
	for _, d := range outdated(r.departed, now, r.keep, maxDepartures) {
		delete(r.departed, d)
	}
	for _, p := range outdated(r.reported, now, conflictRepeat, maxDepartures) {
		delete(r.reported, p)
	}
}

// outdated returns the keys older than keep, and the oldest ones beyond limit.
func outdated[K comparable](at map[K]time.Time, now time.Time, keep time.Duration, limit int) []K {
	var drop, rest []K
	for k, t := range at {
		if now.Sub(t) > keep {
			drop = append(drop, k)
		} else {
			rest = append(rest, k)
		}
	}
	if len(rest) > limit {
		slices.SortFunc(rest, func(a, b K) int { return at[a].Compare(at[b]) })
		drop = append(drop, rest[:len(rest)-limit]...)
	}
	return drop
}
