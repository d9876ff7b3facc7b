package nodes

import (
	"time"

	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/seq"
)

const (
	// PingEvery is the pause between two pings of a node.
	PingEvery = 20 * time.Millisecond
	// known is the number of answers after which it is known how long a session usually takes. Before, it is
	// not silent: a process that starts is slow.
	known = 25
)

// Silence judges by pings which other nodes are silent. It is pure: time comes in as an argument. The caller
// serialises.
type Silence struct {
	least time.Duration
	peers map[seq.Session]*hearing
	own   wake.Patience // of this node: how late it runs itself
}

// hearing is what was heard of one session.
type hearing struct {
	asked    bool
	since    time.Duration // with asked: when the oldest ping was sent that has no answer
	silent   bool          // as Quiet told
	answers  int
	patience wake.Patience
}

// NewSilence makes a Silence that gives each node at least so long to answer.
func NewSilence(least time.Duration) *Silence {
	return &Silence{least: least, peers: make(map[seq.Session]*hearing)}
}

func (s *Silence) of(session seq.Session) *hearing {
	h := s.peers[session]
	if h == nil {
		h = &hearing{patience: wake.Patience{Least: s.least}}
		s.peers[session] = h
	}
	return h
}

// Sent notes that a ping is sent.
func (s *Silence) Sent(session seq.Session, now time.Duration) {
	if h := s.of(session); !h.asked {
		h.asked, h.since = true, now
	}
}

// Heard notes that a ping was answered. It reports whether the session had been taken for silent.
func (s *Silence) Heard(session seq.Session, now time.Duration) (wrongly bool) {
	h := s.of(session)
	if h.asked {
		h.answers++
		h.patience.Answered(now - h.since)
	}
	if wrongly = h.silent; wrongly {
		h.patience.Wrong(now)
	}
	h.asked, h.silent = false, false
	return wrongly
}

// Spare gives a session as long again from now on, because another node has heard of it.
func (s *Silence) Spare(session seq.Session, now time.Duration) {
	h := s.of(session)
	h.since, h.silent = now, false
}

// Ran notes that this node runs now, so much later than it wanted to. It may have answers that it has not
// read, so that time counts for no session that is not silent yet. And while it runs late itself, all have
// longer: what keeps it from running may keep them.
func (s *Silence) Ran(late, now time.Duration) {
	s.own.Answered(late)
	for _, h := range s.peers {
		if !h.silent {
			h.since = min(h.since+late, now)
		}
	}
}

// Forget drops all sessions but those that live.
func (s *Silence) Forget(live func(seq.Session) bool) {
	for id := range s.peers {
		if !live(id) {
			delete(s.peers, id)
		}
	}
}

// patience returns how long the session has.
func (s *Silence) patience(h *hearing, now time.Duration) time.Duration {
	return h.patience.At(now) + s.own.At(now)
}

// Hears reports whether the session answers, as far as is known.
func (s *Silence) Hears(session seq.Session, now time.Duration) bool {
	h := s.peers[session]
	return h != nil && (!h.asked || now-h.since < s.patience(h, now))
}

// Quiet returns the sessions that are silent now, and which of them were not when it was asked last.
func (s *Silence) Quiet(now time.Duration) (all, fresh []seq.Session) {
	for id, h := range s.peers {
		if !h.asked || h.answers < known || now-h.since < s.patience(h, now) {
			continue
		}
		all = append(all, id)
		if !h.silent {
			fresh = append(fresh, id)
		}
		h.silent = true
	}
	return all, fresh
}
