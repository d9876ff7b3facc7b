package quorum

import (
	"fmt"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// tells has stores answer with what their clocks show: offs are by how much each is ahead of
// now, and a store without one does not answer.
func (r *renewal) tells(now time.Time, offs map[int]time.Duration) {
	for i, off := range offs {
		r.renew(RenewReply{Time: now.Add(off).UnixMilli()}, i)
	}
}

func (r *renewal) wantTime(what string, want time.Time) {
	r.Helper()
	if got, known := r.StoreTime(); !known || !got.Equal(want) {
		r.Errorf("%s: got %v, %v, want %v", what, got, known, want)
	}
}

// Clocks of N-W stores may show anything: W stores have reached the time all the same, and no
// other W have reached a later one that right clocks have not.
func TestTheTimeOfTheStoresIsWhatWOfThemHaveReached(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, row := range []struct {
		n    int
		offs map[int]time.Duration
		want time.Duration
	}{
		{3, map[int]time.Duration{0: 0, 1: 0, 2: 0}, 0},
		{3, map[int]time.Duration{0: -time.Minute, 1: 0, 2: time.Second}, 0},
		{3, map[int]time.Duration{0: 0, 1: time.Second, 2: -year}, 0},
		{3, map[int]time.Duration{0: year, 1: 0, 2: -time.Second}, 0},
		{3, map[int]time.Duration{0: year, 2: 0}, 0},
		{3, map[int]time.Duration{0: -time.Minute, 2: 0}, -time.Minute},
		{4, map[int]time.Duration{0: year, 1: 0, 2: 0, 3: 0}, 0},
		{4, map[int]time.Duration{0: -year, 1: 0, 2: 0, 3: 0}, 0},
		{5, map[int]time.Duration{0: year, 1: year, 2: 0, 3: 0, 4: 0}, 0},
		{5, map[int]time.Duration{0: -year, 1: 0, 2: 0, 3: -year, 4: 0}, 0},
		{5, map[int]time.Duration{0: year, 1: 0, 2: -year, 3: 0, 4: 0}, 0},
	} {
		r := newRenewal(t, row.n, true)
		if _, known := r.StoreTime(); known {
			t.Error("the time is known before any store has told it")
		}
		r.tells(noon, row.offs)
		r.wantTime(fmt.Sprint(row), noon.Add(row.want))
		r.clock.Advance(time.Hour)
		r.wantTime(fmt.Sprint(row)+" an hour later", noon.Add(row.want+time.Hour))
	}
}

func TestTheTimeIsNotKnownWhileFewerThanWStoresTellIt(t *testing.T) {
	r := newRenewal(t, 3, true)
	r.tells(noon, map[int]time.Duration{0: 0})
	r.renew(RenewReply{}, 1, 2) // of the version before
	if got, known := r.StoreTime(); known {
		t.Errorf("one of three tells its clock: got %v", got)
	}
	r.tells(noon, map[int]time.Duration{1: 0})
	r.wantTime("two of three", noon)
	r.renew(RenewReply{}, 0) // it was put back to the version before
	if got, known := r.StoreTime(); known {
		t.Errorf("one is of the version before again: got %v", got)
	}
}

// Each reply replaces what the store told before, so that a clock that is set right is right.
func TestTheTimeFollowsClocksThatAreSet(t *testing.T) {
	r := newRenewal(t, 3, true)
	r.tells(noon, map[int]time.Duration{0: time.Hour, 1: time.Hour, 2: 0})
	r.wantTime("two are ahead", noon.Add(time.Hour))
	r.tells(noon, map[int]time.Duration{1: 0})
	r.wantTime("one was set right", noon)
	if got := r.ClockOffsets(); len(got) != 3 || got[r.now.Load().stores[0].store.Name] != time.Hour {
		t.Errorf("offsets: got %v, want the first an hour ahead", got)
	}
}

// A reply that waited, as for a process that was paused, does not put the time back.
func TestTheTimeIsNotPutBackByAReplyThatWaited(t *testing.T) {
	r := newRenewal(t, 3, true)
	r.tells(noon, map[int]time.Duration{0: 0, 1: 0, 2: 0})
	var sent [3]sentRenew
	for i := range sent {
		_, sent[i] = r.send(i)
	}
	r.clock.Advance(15 * time.Second)
	for i := range sent {
		r.reply(i, sent[i], RenewReply{Time: noon.UnixMilli()})
	}
	r.wantTime("after a pause", noon.Add(15*time.Second))
	for range 3000 { // each takes 15 s: no other tells more
		for i := range sent {
			_, sent[i] = r.send(i)
		}
		r.clock.Advance(15 * time.Second)
		for i := range sent {
			r.reply(i, sent[i], RenewReply{Time: noon.UnixMilli()})
		}
	}
	if got, _ := r.StoreTime(); got.After(noon.Add(30 * time.Minute)) {
		t.Errorf("slow replies are never taken in: got %v", got)
	}
}

// The clock of a store that is no member any more does not count, nor for another in its place.
func TestTheClockOfARemovedStoreDoesNotCount(t *testing.T) {
	r := newRenewal(t, 3, true)
	r.tells(noon, map[int]time.Duration{0: 0, 1: 0})
	_, stores := fakeStores(4, true)
	if err := r.Reconfigure(Ref{}, 2, stores[1:]); err != nil {
		t.Fatal(err)
	}
	if got, known := r.StoreTime(); known {
		t.Errorf("one of three was heard: got %v", got)
	}
	r.reply(2, sentRenew{number: 100}, RenewReply{UUID: stores[3].UUID, Time: noon.UnixMilli()})
	r.wantTime("and the new one", noon)
}

// A node's clock within the bound of rates is never far from the stores' time.
func TestTheTimeIsRightForADayAtAnyRateWithinTheBound(t *testing.T) {
	for _, rate := range []float64{1 - Rho, 1 + Rho} {
		r := newRenewal(t, 3, true)
		for at, every := time.Duration(0), 2*time.Second; at < 24*time.Hour; at += every {
			now := noon.Add(at)
			if got, known := r.StoreTime(); known && got.Sub(now).Abs() > every/10 {
				t.Fatalf("rate %v, after %v: off by %v", rate, at, got.Sub(now))
			}
			r.tells(now, map[int]time.Duration{0: 0, 1: -time.Minute, 2: 0})
			r.clock.Advance(time.Duration(float64(every) * rate))
		}
	}
}

func TestStoreTimeDoesNotAllocate(t *testing.T) {
	r := newRenewal(t, 3, true)
	r.tells(noon, map[int]time.Duration{0: 0, 1: 0, 2: 0})
	if got := testing.AllocsPerRun(100, func() { r.StoreTime() }); got != 0 {
		t.Errorf("%v allocations, want 0", got)
	}
}
