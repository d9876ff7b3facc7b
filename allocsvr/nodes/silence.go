package nodes

import (
	"time"

	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/seq"
)

// PingEvery is the pause between two pings of a node.
const PingEvery = 20 * time.Millisecond

// Silence judges by pings which other nodes are silent. It is pure: time comes in as an argument. The caller
// serialises.
type Silence struct {
	least time.Duration
	peers map[seq.Session]*hearing
}

// hearing is what was heard of one session.
type hearing struct {
	asked    bool
	since    time.Duration // with asked: when the oldest ping was sent that has no answer
	silent   bool          // as Quiet told
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

// Late notes that this node itself stood still for so long, and may have answers that it has not read. That
// time counts for no session that is not silent yet.
func (s *Silence) Late(by, now time.Duration) {
	for _, h := range s.peers {
		if !h.silent {
			h.since = min(h.since+by, now)
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

// Hears reports whether the session answers, as far as is known.
func (s *Silence) Hears(session seq.Session, now time.Duration) bool {
	h := s.peers[session]
	return h != nil && (!h.asked || now-h.since < h.patience.At(now))
}

// Quiet returns the sessions that are silent now, and which of them were not when it was asked last.
func (s *Silence) Quiet(now time.Duration) (all, fresh []seq.Session) {
	for id, h := range s.peers {
		if !h.asked || now-h.since < h.patience.At(now) {
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
