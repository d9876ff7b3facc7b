package stream

import (
	"testing"
	"time"
)

// paced is a pace with batches of so many keys in flight, where a reply takes trip.
func paced(trip time.Duration, batches ...int) *pace {
	p := &pace{}
	if trip > 0 {
		p.replied(trip, time.Unix(100, 0))
	}
	for _, n := range batches {
		p.sent(n)
	}
	return p
}

func TestKeysWaitForAReplyOnlyWhereThatPays(t *testing.T) {
	const near = spacing / 3
	rows := []struct {
		name    string
		pace    *pace
		waiting int
		want    bool
	}{
		{"nothing is in flight", paced(near), 60, false},
		{"few callers", paced(near, 4), 4, false},
		{"a crowd, and a reply is near", paced(near, 32), 32, true},
		{"room for one more on a longer way", paced(spacing, 32), 32, false},
		{"no room for a third", paced(spacing, 32, 32), 32, true},
		{"a far server", paced(100*spacing, 32, 32, 32, 32), 32, false},
		{"how near a reply is is not known", paced(0, 32), 32, false},
		{"enough for a batch of their own", paced(near, 32), beside, false},
		{"not enough beside two", paced(near, 200, 200), beside, true},
		{"enough beside two", paced(near, 200, 200), 2 * beside, false},
	}
	for _, row := range rows {
		if got := row.pace.hold(row.waiting); got != row.want {
			t.Errorf("%s: %d keys are held: %v, want %v", row.name, row.waiting, got, row.want)
		}
	}
}

func TestAStuckFlightHoldsNoOther(t *testing.T) {
	p := paced(50*time.Microsecond, 32)
	p.stuck(1)
	if p.hold(32) {
		t.Error("held by a batch that is stuck")
	}
	p.sent(32)
	if !p.hold(32) {
		t.Error("not held by the next batch")
	}
	p.ended(1, 32) // the stuck one after all
	if p.out != 1 || p.keys != 32 {
		t.Errorf("the stuck batch was counted twice: %d batches, %d keys", p.out, p.keys)
	}
	p.ended(2, 32)
	if p.out != 0 || p.keys != 0 {
		t.Errorf("%d batches and %d keys are left", p.out, p.keys)
	}
}

func TestTheShortestRoundTripIsForgotten(t *testing.T) {
	begin := time.Unix(100, 0)
	p := &pace{}
	p.sent(64)
	p.replied(20*time.Microsecond, begin)
	p.replied(time.Second, begin.Add(floorWindow)) // the former window still counts
	if !p.hold(64) {
		t.Error("a short trip was forgotten within its window")
	}
	p.replied(time.Second, begin.Add(2*floorWindow))
	if p.hold(64) {
		t.Error("a short trip is remembered though the network has become slow")
	}
}
