package sim

import (
	"strings"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// ledger holds what is done in etcd against the rules of internal/etcd/etcdstore: I1 to I3 of every
// register, whose reservations are waited for, that no session that has ended comes back, and
// that after an outage each has the time to beat before it is taken for dead.
type ledger struct {
	w *world

	mu       sync.Mutex // guards all below
	highest  map[seq.Register]uint64
	reserved map[seq.Register]time.Duration // since when
	ended    map[string]bool                // keys of sessions
	chances  time.Duration                  // to beat, since the begin: of a time without a beat of anybody, only grace
	last     time.Duration                  // when the latest beat was
	beats    map[string]time.Duration       // chances at the latest beat of each session's key
}

func newLedger(w *world) *ledger {
	return &ledger{w: w, highest: map[seq.Register]uint64{}, reserved: map[seq.Register]time.Duration{}, ended: map[string]bool{}, beats: map[string]time.Duration{}}
}

// grace is what a time without an answer counts for at most, as the silence of a session.
func (l *ledger) grace() time.Duration { return l.w.opts.Lease * 2 / 5 }

// The model calls changed for every change of a key, in order.
func (l *ledger) changed(key string, old, now []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch kind, rest, _ := strings.Cut(strings.TrimPrefix(key, etcdPrefix+"/"), "/"); kind {
	case "r":
		l.register(seq.Register(rest), key, old, now)
	case "s":
		if l.beat(); now == nil {
			return
		}
		l.beats[key] = l.chances
		if l.ended[rest] {
			l.w.check.broken("ended", "the session %s has ended, and has a key again", rest)
		}
	case "o":
		l.beat()
	}
}

// beat notes that etcd takes beats. Needs l.mu.
func (l *ledger) beat() {
	l.chances += min(l.w.now()-l.last, l.grace())
	l.last = l.w.now()
}

func (l *ledger) register(r seq.Register, key string, old, now []byte) {
	after, err := etcdstore.Show(etcdstore.KeyValue{Key: key, Value: now})
	before := etcdstore.Shown{}
	if err == nil && old != nil {
		before, err = etcdstore.Show(etcdstore.KeyValue{Key: key, Value: old})
	}
	since, now0 := l.reserved[r], l.w.now()
	switch {
	case err != nil:
		l.w.check.broken("etcd", "%s cannot be read: %v", r, err)
	case after.Promised.Less(before.Promised):
		l.w.check.broken("I1", "%s: promised %s after %s", r, after.Promised, before.Promised)
	case after.Max < before.Max:
		l.w.check.broken("I2", "%s: max %d after %d", r, after.Max, before.Max)
	case after.Promised.Less(after.Accepted):
		l.w.check.broken("I3", "%s: accepted %s above promised %s", r, after.Accepted, after.Promised)
	case since > 0 && before.Promised != after.Promised && after.Promised.Session != before.Reserved && now0-since < quorum.ReserveTime*9/10 && !l.w.opts.Beyond:
		l.w.check.broken("reserved", "%s is promised to %s, %v after it was given to %s", r, after.Promised, now0-since, before.Reserved)
	}
	if after.Reserved == 0 {
		delete(l.reserved, r)
	} else if before.Reserved != after.Reserved || since == 0 {
		l.reserved[r] = now0
	}
	l.highest[r] = max(l.highest[r], after.Max)
}

// did is called for every transaction that etcd has done.
func (l *ledger) did(t etcdstore.Txn, a etcdstore.Answer) {
	what := purpose(t)
	if what != "End" && what != "Condemn" || !a.Then {
		return
	}
	key := t.Then[0].Key
	l.mu.Lock()
	defer l.mu.Unlock()
	if what == "End" {
		l.ended[strings.TrimPrefix(key, etcdPrefix+"/s/")] = true
		return
	}
	// An answer that came in the middle of an outage makes two of it, each of which counts.
	had, least := l.chances+min(l.w.now()-l.last, l.grace())-l.beats[key], l.w.opts.Lease-l.grace()-l.w.opts.Lease/20
	if had < least && !l.w.opts.Beyond {
		l.w.check.broken("outage", "%s is taken for dead, with %v in which it could have beaten, %v expected at least", key, had, least)
	}
}

// top is the highest max that a register ever had.
func (l *ledger) top(r seq.Register) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.highest[r]
}

// putBack forgets what is not there any more.
func (l *ledger) putBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.reserved)
	clear(l.beats)
	clear(l.ended)
}
