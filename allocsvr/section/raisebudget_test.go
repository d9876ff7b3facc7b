package section

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

func TestTheRaisesOfASectionAddUpToABoundAnHour(t *testing.T) {
	const jump, most = 1000, raisesAnHour * 1000
	var b raiseBudget
	now, ceiling := 100*time.Hour, uint64(0)
	lift := func(floor uint64) time.Duration { return b.lift(7, jump, ceiling, floor, now) }
	for ceiling < most {
		if wait := lift(ceiling + jump); wait != 0 {
			t.Fatalf("at %d: refused for %v", ceiling, wait)
		}
		if lift(ceiling+jump) != 0 || lift(ceiling+jump/2) != 0 {
			t.Errorf("at %d: a repeated raise is refused", ceiling)
		}
		ceiling += jump
		if ceiling == most/2 {
			now += 20 * time.Minute
		}
	}
	if wait := lift(ceiling + 1); wait != 45*time.Minute { // the first slot ends with the hour after it
		t.Errorf("one number more: refused for %v", wait)
	}
	if b.lift(8, jump, 0, jump, now) != 0 || b.take(9, jump, jump, now) != 0 {
		t.Error("another section is refused")
	}
	if wait := b.take(7, jump, most/2+1, now); wait != 65*time.Minute {
		t.Errorf("more than the first slot had: refused for %v", wait)
	}
	now += 45*time.Minute - 1
	if lift(ceiling+1) == 0 {
		t.Error("raised a moment too early")
	}
	now++
	if wait := lift(ceiling + jump); wait != 0 {
		t.Errorf("after the wait: refused for %v", wait)
	}
	now += 1000 * time.Hour
	if lift(ceiling+2*jump) != 0 || len(b.of) != 1 {
		t.Errorf("after a long time: %d sections have sums", len(b.of))
	}
}

// However the raises are spread, no hour has more than the bound.
func TestNoHourHasMoreRaisesThanTheBound(t *testing.T) {
	const jump = 1000
	var b raiseBudget
	type raise struct {
		at time.Duration
		n  uint64
	}
	var done []raise
	for k, now := uint64(1), time.Hour; now < 6*time.Hour; k, now = k+1, now+time.Duration(k%7)*17*time.Second {
		n := k * 7919 % jump
		if b.take(1, jump, n, now) == 0 {
			done = append(done, raise{now, n})
		}
	}
	for i, first := range done {
		var sum uint64
		for _, r := range done[i:] {
			if r.at-first.at < time.Hour {
				sum += r.n
			}
		}
		if sum > raisesAnHour*jump {
			t.Fatalf("the hour from %v on has %d, want %d at most", first.at, sum, raisesAnHour*jump)
		}
	}
	if len(done) < 100 {
		t.Errorf("%d raises were done", len(done))
	}
}

func TestASectionIsNotRaisedToItsEndStepByStep(t *testing.T) {
	o := newOwnedOf(t, seq.Space{Name: "user", Sections: 1, Step: ownerStep, MaxJump: 1000})
	o.confirming()
	raise := func(floor uint64, reach Reach) error {
		done := make(chan error, 1)
		go func() {
			_, err := o.Raise(t.Context(), o.c.space, seq.Plain(1), floor, reach)
			done <- err
		}()
		for {
			select {
			case err := <-done:
				return err
			case <-time.After(time.Millisecond):
				o.stepper.Flush(t.Context())
			}
		}
	}
	var err error
	begun, raised := o.confirmed(), 0
	for ; raised < 100 && err == nil; raised++ {
		err = raise(o.confirmed()+1000, Reach{})
	}
	if !errors.Is(err, seq.ErrJump) || !strings.Contains(err.Error(), "come again in ") || !strings.Contains(err.Error(), "force") {
		t.Fatalf("after %d raises: got %v", raised, err)
	}
	if raised < raisesAnHour || o.confirmed()-begun > 2*raisesAnHour*1000 { // a step takes some more each time
		t.Errorf("%d raises from %d to %d", raised, begun, o.confirmed())
	}
	if _, err := o.RaiseSection(t.Context(), 0, o.confirmed()+1000); !errors.Is(err, seq.ErrJump) || !strings.Contains(err.Error(), "come again") {
		t.Errorf("the whole section: got %v", err)
	}
	if err := raise(o.confirmed(), Reach{}); err != nil {
		t.Errorf("a raise below the ceiling: %v", err)
	}
	var events int
	o.record = func(context.Context, seq.SectionID, seq.Counter, uint64, uint64) error { events++; return nil }
	if err := raise(o.confirmed()+1000, Reach{Force: true}); err != nil || events != 1 {
		t.Errorf("with force: %v, %d events", err, events)
	}
	o.clock.Advance(raiseSlot + time.Hour)
	o.hold.End = o.clock.Now() + ownerLease
	if err := raise(o.confirmed()+1000, Reach{}); err != nil {
		t.Errorf("an hour later: %v", err)
	}
}
