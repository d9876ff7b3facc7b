package quorum

import (
	"testing"
	"time"
)

func TestHalfOfTheClocksDoNotOutvoteOnesOwn(t *testing.T) {
	for _, row := range []struct {
		all  []time.Duration
		want time.Duration
	}{
		{[]time.Duration{5}, 5},
		{[]time.Duration{9, 0, 1}, 1},
		{[]time.Duration{-9, 0, -1}, -1},
		{[]time.Duration{9, 1}, 1},
		{[]time.Duration{-9, -1}, -1},
		{[]time.Duration{-9, 1}, 1},
		{[]time.Duration{9, -1}, -1},
		{[]time.Duration{9, 0}, 0},
	} {
		if got := Middle(append([]time.Duration{}, row.all...)); got != row.want {
			t.Errorf("%v: got %d, want %d", row.all, got, row.want)
		}
	}
}

func TestANodeKnowsHowFarItsClockIsFromTheStores(t *testing.T) {
	r := newRenewal(t, 3, true)
	wall := time.UnixMilli(1_000_000)
	r.cfg.Wall = func() time.Time { return wall }
	tell := func(store int, time int64) {
		_, sent, _ := r.prepareRenew(r.now.Load().stores[store])
		sent.at, sent.wall = r.clock.Now(), wall
		r.reply(store, sent, RenewReply{Time: time})
	}
	want := func(what string, ahead time.Duration, known bool) {
		t.Helper()
		if got, ok := r.ClockAhead(); got != ahead || ok != known {
			t.Errorf("%s: got %v %v, want %v %v", what, got, ok, ahead, known)
		}
	}
	want("nothing was heard", 0, false)
	tell(0, 940_000)
	tell(1, 0) // a build of before
	want("fewer than W told", 0, false)
	tell(1, 990_000)
	want("two told", 10*time.Second, true)
	tell(2, 939_000)
	want("all told", time.Minute, true)
	r.clock.Advance(time.Hour)
	want("nobody answers any more", 0, false)
}
