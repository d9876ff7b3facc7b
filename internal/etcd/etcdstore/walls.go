package etcdstore

import (
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// walls compares the wall clocks of the AllocSvr, since etcd tells none of its own: each beat carries
// the clock of its process. No promise rests on them. They keep a wrong clock from marking worker ids
// as used until a far future.
type walls struct {
	watch *watch
	clock clock.Clock
	wall  func() time.Time

	began   time.Time     // by wall
	beganAt time.Duration // the same moment, by clock
}

func newWalls(w *watch, clk clock.Clock, wall func() time.Time) *walls {
	return &walls{watch: w, clock: clk, wall: wall, began: wall(), beganAt: clk.Now()}
}

// steady returns the time by the wall clock of the start and the clock since boot: a wall clock that
// jumps later does not move it.
func (w *walls) steady() time.Time { return w.began.Add(w.clock.Now() - w.beganAt) }

// vote is the clock of one process.
type vote struct {
	life int64 // of its session: the lower, the older
	wall int64
}

// votes are the clocks of this process, at the start, and of the other living sessions.
func (w *walls) votes(who seq.Session) (own vote, others []vote) {
	own.wall = w.steady().UnixMilli()
	w.watch.mu.Lock()
	defer w.watch.mu.Unlock()
	for id, b := range w.watch.sessions {
		switch {
		case id == who:
			own.life = b.life
		case b.Wall != 0:
			others = append(others, vote{b.life, b.Wall})
		}
	}
	return own, others
}

// refusal says why a session may not raise a worker id to the mark, "" if it may: the mark is too far
// beyond more than half of the clocks. If it is so of exactly half, the oldest session decides.
func (w *walls) refusal(mark uint64, who seq.Session) string {
	own, others := w.votes(who)
	oldest, beyond, votes := own, 0, append(others, own)
	for _, v := range votes {
		if v.life != 0 && (oldest.life == 0 || v.life < oldest.life) {
			oldest = v
		}
		if v.before(mark) {
			beyond++
		}
	}
	if beyond*2 < len(votes) || beyond*2 == len(votes) && !oldest.before(mark) {
		return ""
	}
	if len(votes) == 1 {
		return fmt.Sprintf("high-water mark %d is too far beyond the clock of this process when it started: if the clock is right now, restart it", mark)
	}
	return fmt.Sprintf("high-water mark %d is too far beyond the clocks of %d of %d AllocSvr", mark, beyond, len(votes))
}

// before says whether a mark is further ahead of the clock than it may be.
func (v vote) before(mark uint64) bool {
	return mark > uint64(max(0, v.wall+quorum.WorkerAhead.Milliseconds()))
}

// time returns what a session is told of the clocks, milliseconds since 1970: its own wall clock less
// the middle of its differences from all. Zero means that there is no other clock.
func (w *walls) time(who seq.Session) int64 {
	_, others := w.votes(who)
	if len(others) == 0 {
		return 0
	}
	now := w.wall()
	differences := []time.Duration{0} // from its own
	for _, v := range others {
		differences = append(differences, now.Sub(time.UnixMilli(v.wall)))
	}
	return now.Add(-quorum.Middle(differences)).UnixMilli()
}
