package etcdstore

import (
	"cmp"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// seen is one key of a live session, as the newest answer shows it.
type seen struct {
	session
	life int64 // create revision
	beat int64 // mod revision
	// quiet is how long the beat has not changed, as answers to own writes showed it, and
	// last is when the latest of these came.
	quiet, last time.Duration
}

// term is how long the beat must be quiet before the session may be taken for dead, on a clock
// that may be fast, while its holder's may be slow: see quorum.Rho.
func (b *seen) term() time.Duration { return b.Lease + time.Duration(2*quorum.Rho*float64(b.Lease)) }

// most is how much one answer can add to quiet. After an outage of etcd, in which nothing could
// be written, each holder so has the time for some beats.
func (b *seen) most() time.Duration { return b.Lease * 2 / 5 }

// watch is what this process has seen of the sessions, guarded by Store.mu.
type watch struct {
	at       int64 // revision that it is of
	sessions map[seq.Session]*seen
}

func newWatch() watch { return watch{sessions: map[seq.Session]*seen{}} }

// take takes in the list of all sessions as of a revision, that arrived at now. written says
// that the list came with the answer to a write of this process. Only those count as proof of
// silence: reads are answered where nothing can be written, for want of space.
func (w *watch) take(list map[seq.Session]*seen, revision int64, now time.Duration, written bool) {
	if revision < w.at {
		return // overtaken
	}
	for id, b := range list {
		old := w.sessions[id]
		b.last = now
		if old == nil || old.beat != b.beat {
			continue // its time begins
		}
		b.quiet, b.last = old.quiet, old.last
		if written {
			b.quiet += min(now-b.last, b.most())
			b.last = now
		}
	}
	w.at, w.sessions = revision, list
}

// silent are the sessions that may be taken for dead, in order.
func (w *watch) silent() []seq.Session {
	var out []seq.Session
	for id, b := range w.sessions {
		if b.quiet >= b.term() {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// forget takes a session out whose key was deleted at the revision.
func (w *watch) forget(id seq.Session, revision int64) {
	if revision >= w.at {
		delete(w.sessions, id)
	}
}

// left is until the session may be taken for dead if no beat comes: never more than its lease.
func (b *seen) left() time.Duration {
	return max(1, min(b.Lease, b.term()-b.quiet))
}

// holds says whether a register that the session promised under a life is kept for it.
func (w *watch) holds(id seq.Session, life int64) (*seen, bool) {
	b := w.sessions[id]
	return b, life != 0 && b != nil && b.life == life
}

// infos are the sessions by name.
func (w *watch) infos() []quorum.SessionInfo {
	out := make([]quorum.SessionInfo, 0, len(w.sessions))
	for id, b := range w.sessions {
		out = append(out, quorum.SessionInfo{Session: id, Name: b.Name, Addr: b.Addr, Remaining: b.left(), Attached: b.Attached})
	}
	slices.SortFunc(out, func(x, y quorum.SessionInfo) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Session, y.Session))
	})
	return out
}

// reservation is since when this process has seen a register kept for a successor.
type reservation struct {
	modified int64 // of the register
	since    time.Duration
}

// listed reads the sessions that an answer lists.
func (s *Store) listed(kvs []KeyValue) (map[seq.Session]*seen, error) {
	out := make(map[seq.Session]*seen, len(kvs))
	for _, kv := range kvs {
		id, err := s.keys.sessionOf(kv.Key)
		if err != nil {
			return nil, err
		}
		b := &seen{life: kv.Created, beat: kv.Modified}
		if err := decode(kv, &b.session); err != nil {
			return nil, err
		}
		out[id] = b
	}
	return out, nil
}

// observe takes in a list of sessions that came with an answer.
func (s *Store) observe(kvs []KeyValue, revision int64, written bool) error {
	now := s.cfg.Clock.Now() // at the receipt: never earlier
	list, err := s.listed(kvs)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch.take(list, revision, now, written)
	return nil
}
