package nodes

import (
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// How long a session is spared whose lease has lapsed, if it came back from that before
// (docs/decisions.md, 023).
const (
	// MostSpared bounds how long a session is spared, in leases.
	MostSpared = 8
	// SteadyAfter is the time after which a session that kept its lease counts as one that never lost it.
	SteadyAfter = time.Minute
)

// flapping remembers which sessions lost their leases and came back, which the dead
// never do: their nodes are late, not gone. Pure; the caller serialises.
//
// A session that came back n times is given spare(n) longer from the end of its lease on
// before others inherit, and is handed nothing back before it has kept its lease for as
// long. A node that inherits from it again without having seen it come back waits likewise,
// since the dead are inherited from once. So what a session can cost is bounded, however
// often it is late and whatever is seen of it; by each heir, in any time d,
//
//	inherited from it  <=  2+log2(MostSpared) + d/((1+MostSpared)*lease)
type flapping struct {
	lease    time.Duration
	sessions map[seq.Session]*flaps
	from     map[string]*takeoverRecord // by the node that was inherited from
}

// flaps is one session.
type flaps struct {
	name   string
	freeAt time.Duration // end of the lease by what was heard last while it ran
	lapsed bool          // it ran out, and the session has not come back
	ended  bool          // with lapsed: it was ended before its time, by a process that knew that it does not come back
	count  int           // how often the session came back, since it was steady last
	back   time.Duration // when, the last time
}

// takeoverRecord records what this node took over from another.
type takeoverRecord struct {
	session seq.Session   // the last that was known of the node
	count   int           // how often, each after a lease or more
	at      time.Duration // when the last time began
}

func newFlapping(lease time.Duration) flapping {
	return flapping{lease: lease, sessions: make(map[seq.Session]*flaps), from: make(map[string]*takeoverRecord)}
}

// spare returns the extra time for a session that came back n times. It is zero for n = 0, then a lease,
// and doubles each time, up to MostSpared leases.
func (f *flapping) spare(n int) time.Duration {
	if n == 0 {
		return 0
	}
	return f.lease * time.Duration(min(1<<min(n-1, 8), MostSpared))
}

// observe takes in what the stores told of all other sessions. sure says that this node
// has heard of them just now: a node that hears nothing sees all leases run out.
func (f *flapping) observe(all []quorum.SessionView, sure bool, now time.Duration) {
	known := make(map[seq.Session]bool, len(all))
	for _, s := range all {
		known[s.Session] = true
		f.one(s, sure, now)
	}
	for id := range f.sessions {
		if !known[id] {
			delete(f.sessions, id)
		}
	}
}

func (f *flapping) one(s quorum.SessionView, sure bool, now time.Duration) {
	p := f.sessions[s.Session]
	alive := !s.Dead && now < s.FreeAt
	switch {
	case p == nil && alive:
		f.sessions[s.Session] = &flaps{name: s.Name, freeAt: s.FreeAt}
	case p == nil:
	case alive:
		if p.lapsed {
			p.lapsed, p.ended, p.back = false, false, now
			p.count++
		} else if now-p.back >= SteadyAfter {
			p.count = 0
		}
		p.freeAt = s.FreeAt
	case sure && !p.lapsed:
		// Half a lease is more than two messages of one moment differ by on their way.
		p.lapsed, p.ended = true, s.Dead && now < p.freeAt-f.lease/2
	}
}

// inherit notes that sections were taken over from the node.
func (f *flapping) inherit(name string, now time.Duration) {
	i, session := f.from[name], f.current(name)
	if i == nil || i.session != session || now-i.at >= SteadyAfter {
		i = &takeoverRecord{session: session, at: now - f.lease}
		f.from[name] = i
	}
	if now-i.at >= f.lease { // else the rest of the same
		i.count, i.at = i.count+1, now
	}
}

// current returns the node's session that was heard of last; 0 if there is none.
func (f *flapping) current(name string) (id seq.Session) {
	for s, p := range f.sessions {
		if p.name == name && (id == 0 || p.freeAt > f.sessions[id].freeAt) {
			id = s
		}
	}
	return id
}

// spared says that a node without a lease is waited for, since it came back before.
func (f *flapping) spared(name string, now time.Duration) bool {
	id := f.current(name)
	if p := f.sessions[id]; p != nil && p.ended {
		return false
	} else if p != nil && p.lapsed && p.count > 0 && now < p.freeAt+f.spare(p.count) {
		return true
	}
	i := f.from[name]
	return i != nil && i.session == id && now >= i.at+f.lease && now < i.at+f.lease+f.spare(i.count)
}

// steady says that the session has been alive for long enough to be handed something.
func (f *flapping) steady(id seq.Session, now time.Duration) bool {
	p := f.sessions[id]
	return p == nil || p.count == 0 || !p.lapsed && now >= p.back+f.spare(p.count)
}
