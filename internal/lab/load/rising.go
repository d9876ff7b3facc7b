package load

import (
	"sync/atomic"

	"github.com/seqsvr/seqsvr/seq"
)

// places limits the watched UIDs; a power of two.
const places = 4096

// Rising checks, for a sample of the UIDs, that a call which begins after another one
// of its UID ended gets larger numbers. It sees every violation between calls of the
// sample that do not overlap, among them numbers handed out twice. Numbers that others
// take meanwhile do not disturb it. Safe for concurrent use.
type Rising struct {
	watched  [places]watch
	skip     uint64 // a UID whose hash has one of these bits is not watched
	broken   atomic.Uint64
	firstBad atomic.Pointer[Fall]
}

// Fall is two calls of one UID, the later of which got no larger number.
type Fall struct {
	UID           seq.UID
	Before, After seq.Seq // the last number of the earlier call, the first of the later
}

type watch struct {
	used bool
	uid  seq.UID
	top  atomic.Uint64 // largest number of the calls that ended
	seen atomic.Uint64 // calls that were checked
	_    [32]byte      // one cache line each
}

// Mark is a call that Before saw begin.
type Mark struct {
	watch *watch // nil if the UID is not in the sample
	top   uint64
}

// NewRising watches up to 4,096 of the users. If there are more users and all are called alike, it watches
// the users whose hashes fall into one share. So a call for another user is recognised without looking at
// memory.
func NewRising(u *Users) *Rising {
	r := &Rising{}
	if u.alike {
		for n := u.uids; n > places/2; n /= 2 {
			r.skip = r.skip<<1 | 1
		}
	}
	free := places
	for _, uid := range u.draws {
		h := hash(uid)
		if h&r.skip != 0 {
			continue
		}
		if w := &r.watched[h>>(64-12)]; !w.used {
			w.used, w.uid = true, uid
			if free--; free == 0 {
				break
			}
		}
	}
	return r
}

// hash has good upper and lower bits, the first for the place and the others for the
// share.
func hash(uid seq.UID) uint64 {
	h := uint64(uid) * 0x9e3779b97f4a7c15
	return h ^ h>>32
}

// Before must be called when a call for uid begins. Its Mark goes to After.
func (r *Rising) Before(uid seq.UID) Mark {
	h := hash(uid)
	if h&r.skip != 0 {
		return Mark{}
	}
	if w := &r.watched[h>>(64-12)]; w.used && w.uid == uid {
		return Mark{w, w.top.Load()}
	}
	return Mark{}
}

// After takes what the call got: first to last.
func (r *Rising) After(m Mark, first, last seq.Seq) {
	w := m.watch
	if w == nil {
		return
	}
	w.seen.Add(1)
	if uint64(first) <= m.top {
		r.broken.Add(1)
		r.firstBad.CompareAndSwap(nil, &Fall{UID: w.uid, Before: seq.Seq(m.top), After: first})
	}
	for {
		top := w.top.Load()
		if uint64(last) <= top || w.top.CompareAndSwap(top, uint64(last)) {
			return
		}
	}
}

// Verdict returns the number of checked calls, the number of calls with too small a number, and the first
// of these or nil.
func (r *Rising) Verdict() (checked, broken uint64, first *Fall) {
	for i := range r.watched {
		checked += r.watched[i].seen.Load()
	}
	return checked, r.broken.Load(), r.firstBad.Load()
}
