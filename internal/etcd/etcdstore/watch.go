package etcdstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// seen is one key of a live session, as the newest answer shows it.
type seen struct {
	session
	life int64 // create revision
	beat int64 // mod revision
	// quiet is the time without a change of the beat, measured between answers to own writes. last is the
	// time of the latest of these answers.
	quiet, last time.Duration
}

// term returns how long the beat must be quiet before the session counts as dead. Own clocks may be fast
// and the holder's slow: see quorum.Rho.
func (b *seen) term() time.Duration { return b.Lease + time.Duration(2*quorum.Rho*float64(b.Lease)) }

// most returns the limit of what one answer adds to quiet. So after an outage of etcd, in which nobody
// could write, each holder has the time for some beats.
func (b *seen) most() time.Duration { return b.Lease * 2 / 5 }

// left returns the time until the session counts as dead if no beat comes, and at most the session's lease.
func (b *seen) left() time.Duration {
	return max(1, min(b.Lease, b.term()-b.quiet))
}

// watch is what this process has seen of the sessions, and what it does to those that are silent.
type watch struct {
	cluster *cluster
	clock   clock.Clock

	mu       sync.Mutex // guards all below; not held while another room is asked
	at       int64      // revision that it is of
	sessions map[seq.Session]*seen
}

func newWatch(c *cluster, clk clock.Clock) *watch {
	return &watch{cluster: c, clock: clk, sessions: map[seq.Session]*seen{}}
}

// observe takes in a list of sessions that came with an answer. written says that it was one to a
// write of this process. Only those count as proof of silence: reads are answered where nothing
// can be written, for want of space.
func (w *watch) observe(kvs []KeyValue, revision int64, written bool) error {
	now := w.clock.Now() // at the receipt: never earlier
	list, err := w.listed(kvs)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.take(list, revision, now, written)
	return nil
}

// listed reads the sessions that an answer lists.
func (w *watch) listed(kvs []KeyValue) (map[seq.Session]*seen, error) {
	out := make(map[seq.Session]*seen, len(kvs))
	for _, kv := range kvs {
		id, err := w.cluster.keys.sessionOf(kv.Key)
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

// take takes in the list of all sessions as of a revision, that arrived at now. The caller holds
// mu.
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

// write has the sessions listed by the answer to a write that says nothing.
func (w *watch) write(ctx context.Context) error {
	key := w.cluster.keys.watch()
	a, err := w.cluster.do(ctx, Txn{If: []Compare{w.cluster.unmoved()}, Else: []Op{get(w.cluster.keys.meta())},
		Then: []Op{put(key, seal(key, nil)), all(w.cluster.keys.sessions())}})
	if err == nil && !a.Then {
		return errors.Join(w.cluster.remeta(ctx, a), errRace)
	}
	if err == nil {
		err = w.observe(a.Results[1].KVs, a.Revision, true)
	}
	if err != nil {
		return fmt.Errorf("observe sessions: %w", err)
	}
	w.condemn(ctx)
	return nil
}

// condemned is a session that may be taken for dead, unless it has another beat by now.
type condemned struct {
	id   seq.Session
	beat int64
}

// silent are the sessions that may be taken for dead, in order.
func (w *watch) silent() []condemned {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []condemned
	for id, b := range w.sessions {
		if b.quiet >= b.term() {
			out = append(out, condemned{id, b.beat})
		}
	}
	slices.SortFunc(out, func(x, y condemned) int { return cmp.Compare(x.id, y.id) })
	return out
}

// condemn deletes the keys of sessions that were silent for too long. A beat that comes before
// defeats it.
func (w *watch) condemn(ctx context.Context) {
	silent := w.silent()
	_ = inParallel(len(silent), func(i int) error {
		id, key := silent[i].id, w.cluster.keys.session(silent[i].id)
		a, err := w.cluster.do(ctx, Txn{If: []Compare{w.cluster.unmoved(), modified(key, silent[i].beat)}, Then: []Op{remove(key)}})
		if err != nil || !a.Then {
			w.cluster.logger.Debug("silent session not ended", "session", id, "error", err)
			return nil // the next answer tells again
		}
		w.cluster.logger.Info("session taken for dead: no beat for its lease", "session", id)
		w.forget(id, a.Revision)
		return nil
	})
}

// forget takes a session out whose key was deleted at the revision.
func (w *watch) forget(id seq.Session, revision int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if revision >= w.at {
		delete(w.sessions, id)
	}
}

// live is what was seen of a session that lives; false if it does not.
func (w *watch) live(id seq.Session) (seen, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b := w.sessions[id]; b != nil {
		return *b, true
	}
	return seen{}, false
}

// holds says whether a register that the session promised under a life is kept for it.
func (w *watch) holds(id seq.Session, life int64) (seen, bool) {
	b, lives := w.live(id)
	return b, life != 0 && lives && b.life == life
}

// infos are the sessions by name.
func (w *watch) infos() []quorum.SessionInfo {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]quorum.SessionInfo, 0, len(w.sessions))
	for id, b := range w.sessions {
		out = append(out, quorum.SessionInfo{Session: id, Name: b.Name, Addr: b.Addr, Remaining: b.left(), Attached: b.Attached})
	}
	slices.SortFunc(out, func(x, y quorum.SessionInfo) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Session, y.Session))
	})
	return out
}
