package nodes

import (
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

const (
	// PingEvery is the pause between two pings of a node.
	PingEvery = 20 * time.Millisecond
	// usuals is the factor by which an answer must be later than usual before its node counts as silent.
	usuals = 3
	// mostFalse is the number of false suspicions in a minute after which a node is given twice as long.
	mostFalse = 3
	falseFor  = time.Minute
)

// Silence judges by pings which other nodes are silent. It is pure: time comes in as an argument. The caller
// serialises.
type Silence struct {
	least time.Duration
	peers map[seq.Session]*hearing
}

// hearing is what was heard of one session.
type hearing struct {
	asked  bool
	since  time.Duration   // with asked: when the oldest ping was sent that has no answer
	usual  time.Duration   // the longest answer took so long; it fades with each shorter answer
	silent bool            // as Quiet told
	wrong  []time.Duration // when it was silent and was heard again, in the last minute
}

// NewSilence makes a Silence that gives each node at least so long to answer.
func NewSilence(least time.Duration) *Silence {
	return &Silence{least: least, peers: make(map[seq.Session]*hearing)}
}

func (s *Silence) of(session seq.Session) *hearing {
	h := s.peers[session]
	if h == nil {
		h = &hearing{}
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
		h.usual = max(now-h.since, h.usual-h.usual/32)
	}
	if wrongly = h.silent; wrongly {
		h.wrong = append(h.wrong, now)
	}
	h.asked, h.silent = false, false
	return wrongly
}

// Spare gives a session as long again from now on, because another node has heard of it.
func (s *Silence) Spare(session seq.Session, now time.Duration) {
	h := s.of(session)
	h.since, h.silent = now, false
}

// Late gives all sessions as long again that are not silent yet: this node itself was late, and may have
// answers that it has not read.
func (s *Silence) Late(now time.Duration) {
	for _, h := range s.peers {
		if !h.silent {
			h.since = now
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

// patience returns how long the session has to answer.
func (s *Silence) patience(h *hearing, now time.Duration) time.Duration {
	for len(h.wrong) > 0 && now-h.wrong[0] >= falseFor {
		h.wrong = h.wrong[1:]
	}
	return max(s.least, usuals*h.usual) << min(len(h.wrong)/mostFalse, 8)
}

// Hears reports whether the session answers, as far as is known.
func (s *Silence) Hears(session seq.Session, now time.Duration) bool {
	h := s.peers[session]
	return h != nil && (!h.asked || now-h.since < s.patience(h, now))
}

// Quiet returns the sessions that are silent now, and which of them were not when it was asked last.
func (s *Silence) Quiet(now time.Duration) (all, fresh []seq.Session) {
	for id, h := range s.peers {
		if !h.asked || now-h.since < s.patience(h, now) {
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
