package nodes

import (
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
)

func TestASessionThatComesBackIsGivenMoreTimeEachTime(t *testing.T) {
	const lease = time.Second
	f := newFlapping(lease)
	now := time.Duration(0)
	see := func(freeAt time.Duration, dead, sure bool) {
		f.observe([]quorum.SessionView{{Session: 1, Name: "a", FreeAt: freeAt, Dead: dead}}, sure, now)
	}
	spared := func(want time.Duration) { // from the end of its lease on
		t.Helper()
		freeAt := f.sessions[1].freeAt
		if want > 0 && !f.spared("a", freeAt+want-1) || f.spared("a", freeAt+want) {
			t.Errorf("count %d: not spared for %v", f.sessions[1].count, want)
		}
	}
	for _, want := range []time.Duration{0, lease, 2 * lease, 4 * lease, 8 * lease, 8 * lease} {
		see(now+lease, false, true)
		if n := f.sessions[1].count; f.steady(1, now) != (n == 0) || !f.steady(1, now+want) {
			t.Errorf("count %d: want it steady after %v", n, want)
		}
		freeAt := now + lease
		now += lease
		see(freeAt, false, false)
		if f.sessions[1].lapsed {
			t.Error("taken for lapsed by one who has heard nothing")
		}
		see(freeAt, true, true)
		spared(want)
	}
	see(now+lease, false, true)
	now += SteadyAfter
	see(now+lease, false, true)
	now += lease
	see(now, true, true)
	spared(0) // it was steady

	see(now+lease, false, true)
	freeAt := now + lease
	now += lease / 10
	see(now, true, true) // ended long before its time
	if f.spared("a", freeAt) {
		t.Error("spared, but it was ended")
	}
}

func TestWhoeverIsInheritedFromAgainIsSparedWhateverIsSeenOfIt(t *testing.T) {
	const lease = time.Second
	f := newFlapping(lease)
	now := time.Hour
	for _, want := range []time.Duration{lease, 2 * lease, 4 * lease, 8 * lease, 8 * lease} {
		f.inherit("a", now)
		f.inherit("a", now+lease/2) // the rest of it
		if f.spared("a", now+lease-1) {
			t.Error("the rest was not to be had")
		}
		if !f.spared("a", now+lease) || !f.spared("a", now+lease+want-1) || f.spared("a", now+lease+want) {
			t.Errorf("inherited from %d times: not spared for %v", f.from["a"].count, want)
		}
		now += lease + want
	}
	f.observe([]quorum.SessionView{{Session: 2, Name: "a", FreeAt: now + lease}}, true, now)
	if f.spared("a", now) {
		t.Error("spared for what another session was")
	}
}
