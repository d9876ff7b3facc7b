package load

import (
	"sync/atomic"

	"github.com/seqsvr/seqsvr/seq"
)

// places is how many UIDs are watched at most; a power of two.
const places = 4096

// Rising checks, for a sample of the UIDs, that a call which begins after another one
// of its UID ended gets larger numbers. It sees every violation between calls of the
// sample that do not overlap, among them numbers handed out twice. Numbers that others
// take meanwhile do not disturb it. Safe for concurrent use.
type Rising struct {
	watched  [places]watch
	broken   atomic.Uint64
	firstBad atomic.Pointer[Fall]
}

// Fall is two calls of one UID of which the later got no larger number.
type Fall struct {
	UID           seq.UID
	Before, After seq.Seq // the last number of the earlier call, the first of the later
}

type watch struct {
	used bool
	uid  seq.UID
	top  atomic.Uint64 // largest number of the calls that ended
	seen atomic.Uint64 // calls that were checked
}

// NewRising watches up to 4,096 of the users.
func NewRising(u *Users) *Rising {
	r := &Rising{}
	free := places
	for _, uid := range u.draws {
		if w := &r.watched[place(uid)]; !w.used {
			w.used, w.uid = true, uid
			if free--; free == 0 {
				break
			}
		}
	}
	return r
}

func place(uid seq.UID) uint64 { return uint64(uid) * 0x9e3779b97f4a7c15 >> (64 - 12) }

// Before is to be called as a call for uid begins. What it gives goes to After.
func (r *Rising) Before(uid seq.UID) uint64 {
	if w := &r.watched[place(uid)]; w.used && w.uid == uid {
		return w.top.Load()
	}
	return 0
}

// After takes what a call for uid got: first to last.
func (r *Rising) After(uid seq.UID, before uint64, first, last seq.Seq) {
	w := &r.watched[place(uid)]
	if !w.used || w.uid != uid {
		return
	}
	w.seen.Add(1)
	if uint64(first) <= before {
		r.broken.Add(1)
		r.firstBad.CompareAndSwap(nil, &Fall{UID: uid, Before: seq.Seq(before), After: first})
	}
	for {
		top := w.top.Load()
		if uint64(last) <= top || w.top.CompareAndSwap(top, uint64(last)) {
			return
		}
	}
}

// Verdict is how many calls were checked and how many got too small a number, with the
// first of those; nil if there is none.
func (r *Rising) Verdict() (checked, broken uint64, first *Fall) {
	for i := range r.watched {
		checked += r.watched[i].seen.Load()
	}
	return checked, r.broken.Load(), r.firstBad.Load()
}
