package membership

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

const (
	// maxGone bounds the dead and left members kept, and maxDepartures the notices kept, so that a node
	// restarting in a loop under ever new names cannot fill the memory.
	maxGone       = 256
	maxDepartures = 1024

	// conflictRepeat is how long a reported pair stays quiet: memberlist reports it with every message.
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

// roster is the pure core of the view: what memberlist reported goes in with the time, events come out.
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
func (r *roster) alive(meta Meta, gossip string, now time.Time) (Event, bool) {
	old, known := r.members[meta.Name]
	m := Member{Meta: meta, State: StateAlive, Since: now, Gossip: gossip, Self: meta.Name == r.self}
	ev := Event{Kind: EventJoined, At: now}
	switch {
	case !known || old.State != StateAlive:
	case old.Meta.Session != meta.Session:
		ev.Kind, ev.Before = EventRestarted, old.Meta
	case old.Meta == meta && old.Gossip == gossip:
		return Event{}, false
	default:
		ev.Kind, ev.Before = EventUpdated, old.Meta
		m.Since = old.Since
	}
	r.members[meta.Name] = m
	r.prune(now)
	ev.Member = m
	return ev, true
}

// gone records that memberlist holds the node dead or left; which one, only the notices tell.
func (r *roster) gone(name string, now time.Time) (Event, bool) {
	m, known := r.members[name]
	if !known || m.State != StateAlive {
		return Event{}, false
	}
	m.State, m.Since = StateDead, now
	kind := EventDied
	if _, left := r.departed[departure{name, m.Meta.Session}]; left {
		m.State, kind = StateLeft, EventLeft
	}
	r.members[name] = m
	r.prune(now)
	return Event{Kind: kind, At: now, Member: m}, true
}

// notice records that an incarnation said it leaves. fresh tells whether it was news, to be passed on;
// changed, whether a member thought dead turned out to have left.
func (r *roster) notice(d departure, now time.Time) (ev Event, fresh, changed bool) {
	if _, seen := r.departed[d]; seen {
		return Event{}, false, false
	}
	r.departed[d] = now
	m, known := r.members[d.Name]
	changed = known && m.State == StateDead && m.Meta.Session == d.Session
	if changed {
		m.State = StateLeft
		r.members[d.Name] = m
		ev = Event{Kind: EventLeft, At: now, Member: m}
	}
	r.prune(now)
	return ev, true, changed
}

// conflict records that memberlist keeps one node of a name and refuses another. The same process under
// two addresses is none, and a pair reported within conflictRepeat is not reported again.
func (r *roster) conflict(kept, refused Member, now time.Time) (Event, bool) {
	pair := conflictPair{kept.Meta.Name, kept.Meta.Session, refused.Meta.Session}
	if pair.kept == pair.refused {
		return Event{}, false
	}
	if at, seen := r.reported[pair]; seen && now.Sub(at) < conflictRepeat {
		return Event{}, false
	}
	r.prune(now)
	r.reported[pair] = now
	if m, known := r.members[pair.name]; known && m.Meta.Session == pair.kept {
		kept = m
	}
	return Event{
		Kind: EventConflict, At: now, Member: kept, Other: refused,
		Err: fmt.Errorf("member %q at %s (session %016x) and at %s (session %016x): %w",
			pair.name, kept.Gossip, pair.kept, refused.Gossip, pair.refused, ErrNameConflict),
	}, true
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

// highest returns the largest table version among the live members. The gone do not count, since they
// cannot be asked for their table; so the value may fall.
func (r *roster) highest() uint64 {
	var v uint64
	for _, m := range r.members {
		if m.State == StateAlive {
			v = max(v, m.Meta.TableVersion)
		}
	}
	return v
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
